//! Bytes of files, read piece by piece: a model may hold gigabytes of weights, of which most questions need none.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::FileError;

/// How much of a pipe or device is read: these have no size that could be asked for beforehand.
const MAX_STREAM_BYTES: u64 = 1 << 30;

/// The bytes of a file or of memory. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Source(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    length: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    File(Mutex<File>),
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file without reading it. What is no regular file, such as a pipe, is read into memory.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let io_error = |error| FileError::Io { file: path.to_owned(), error };
        let file = File::open(path).map_err(io_error)?;
        let metadata = file.metadata().map_err(io_error)?;
        if metadata.is_file() {
            let content = Content::File(Mutex::new(file));
            return Ok(Source(Arc::new(Inner { path: path.to_owned(), length: metadata.len(), content })));
        }
        let mut bytes = Vec::new();
        file.take(MAX_STREAM_BYTES + 1).read_to_end(&mut bytes).map_err(io_error)?;
        if bytes.len() as u64 > MAX_STREAM_BYTES {
            return Err(FileError::TooLarge { file: path.to_owned(), limit: MAX_STREAM_BYTES });
        }
        Ok(Self::memory(path, bytes))
    }

    /// Bytes in memory; `path` only serves the messages.
    pub fn memory(path: &Path, bytes: Vec<u8>) -> Self {
        let (length, content) = (bytes.len() as u64, Content::Memory(bytes));
        Source(Arc::new(Inner { path: path.to_owned(), length, content }))
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// How many bytes there are.
    pub fn length(&self) -> u64 {
        self.0.length
    }

    /// All bytes, where they are at most `limit`.
    pub fn read_all(&self, limit: u64) -> Result<Vec<u8>, FileError> {
        if self.length() > limit {
            return Err(FileError::TooLarge { file: self.path().to_owned(), limit });
        }
        self.read(0..self.length())
    }

    /// Some of the bytes. A range beyond the end is an error, and allocates nothing.
    pub fn read(&self, range: Range<u64>) -> Result<Vec<u8>, FileError> {
        if range.start > range.end || range.end > self.length() {
            let expected = format!("within the {} bytes of the file", self.length());
            return Err(self.malformed(format!("bytes {} to {}", range.start, range.end), expected, "more"));
        }
        let io_error = |error| FileError::Io { file: self.path().to_owned(), error };
        let length = range.end - range.start;
        let no_memory = || FileError::OutOfMemory { file: self.path().to_owned(), bytes: length };
        let size = usize::try_from(length).map_err(|_| no_memory())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| no_memory())?;
        match &self.0.content {
            Content::Memory(all) => bytes.extend_from_slice(&all[range.start as usize..range.end as usize]),
            Content::File(file) => {
                // A thread that panicked while it held the lock left at worst another position, which is set here.
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                file.seek(SeekFrom::Start(range.start)).map_err(io_error)?;
                (&mut *file).take(length).read_to_end(&mut bytes).map_err(io_error)?;
                if bytes.len() != size {
                    let expected = format!("{length} bytes at {}", range.start);
                    return Err(self.malformed("the file", expected, format!("{} bytes", bytes.len())));
                }
            }
        }
        Ok(bytes)
    }

    /// The error for a place in this file.
    pub(crate) fn malformed(
        &self,
        place: impl Into<String>,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> FileError {
        FileError::malformed(self.path(), place, expected, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked_against_the_length() {
        let source = Source::memory(Path::new("x"), vec![1, 2, 3]);
        assert_eq!(source.read(1..3).unwrap(), [2, 3]);
        assert!(source.read(3..3).unwrap().is_empty());
        for bad in [0..4, 4..4, u64::MAX - 1..u64::MAX] {
            let message = source.read(bad).unwrap_err().to_string();
            assert!(message.contains("within the 3 bytes of the file"), "{message}");
        }
        assert!(source.read_all(2).unwrap_err().to_string().contains("more than 2 bytes"));
    }
}
