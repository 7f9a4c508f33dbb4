//! Why a model or tensor file could not be read.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Why a model or tensor file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum FileError {
    #[error("cannot read {}: {error}", file.display())]
    Io { file: PathBuf, error: std::io::Error },

    #[error("cannot write {}: {error}", file.display())]
    Write { file: PathBuf, error: std::io::Error },

    #[error("{} has more than {limit} bytes, which is more than is read of such a file", file.display())]
    TooLarge { file: PathBuf, limit: u64 },

    #[error("the system has no {bytes} bytes for a part of {}", file.display())]
    OutOfMemory { file: PathBuf, bytes: u64 },

    /// The file breaks a rule of its format.
    #[error("{}: {place} {problem}", file.display())]
    Malformed { file: PathBuf, place: String, problem: String },

    /// The file is valid, but asks for something that is not read here.
    #[error("{}: {what} is not supported; {instead}", file.display())]
    Unsupported { file: PathBuf, what: String, instead: String },
}

impl FileError {
    pub(crate) fn malformed(
        file: &Path,
        place: impl Into<String>,
        expected: impl Display,
        found: impl Display,
    ) -> Self {
        let problem = format!("must be {expected}, got {found}");
        FileError::Malformed { file: file.to_owned(), place: place.into(), problem }
    }

    pub(crate) fn unsupported(file: &Path, what: impl Into<String>, instead: impl Into<String>) -> Self {
        FileError::Unsupported { file: file.to_owned(), what: what.into(), instead: instead.into() }
    }
}
