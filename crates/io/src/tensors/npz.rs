//! numpy's `.npz`: a zip archive of `.npy` files.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::npy;
use crate::error::FileError;
use crate::model::TensorSource;
use crate::source::Source;
use crate::tensor::AnyTensor;

/// The largest archive that is read, and the most that is unpacked of it: a few packed bytes can stand for gigabytes.
const MAX_BYTES: u64 = 1 << 30;

pub(super) fn read(source: &Source) -> Result<BTreeMap<String, TensorSource>, FileError> {
    let no_archive = |error: ZipError| source.malformed("the file", "a zip archive of .npy files", error);
    let bytes = source.read_all(MAX_BYTES)?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(no_archive)?;
    let mut left = MAX_BYTES;
    let mut tensors = BTreeMap::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(no_archive)?;
        let file_name = entry.name().to_owned();
        let Some(name) = file_name.strip_suffix(".npy") else { continue };
        let mut unpacked = Vec::new();
        entry.take(left + 1).read_to_end(&mut unpacked).map_err(|error| no_archive(error.into()))?;
        left = match left.checked_sub(unpacked.len() as u64) {
            Some(left) => left,
            None => return Err(FileError::TooLarge { file: source.path().to_owned(), limit: MAX_BYTES }),
        };
        let inner = Source::memory(&source.path().join(&file_name), unpacked);
        let tensor = npy::read(&inner)?;
        tensors.insert(name.to_owned(), TensorSource { name: name.to_owned(), ..tensor });
    }
    Ok(tensors)
}

pub(super) fn write(path: &Path, tensors: &[(&str, &AnyTensor)]) -> Result<Vec<u8>, FileError> {
    let failed = |error: ZipError| FileError::Write { file: path.to_owned(), error: error.into() };
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, tensor) in tensors {
        archive.start_file(format!("{name}.npy"), options).map_err(failed)?;
        archive.write_all(&npy::write(tensor)).map_err(|error| failed(error.into()))?;
    }
    Ok(archive.finish().map_err(failed)?.into_inner())
}
