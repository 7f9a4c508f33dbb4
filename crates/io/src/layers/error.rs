//! Why a layer could not be read.

use std::path::PathBuf;

/// Why a layers file or a problem string could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum LayerError {
    #[error("cannot read {}: {error}", file.display())]
    Io { file: PathBuf, error: std::io::Error },

    #[error("{} has more than {limit} bytes; a layers file is a list of shapes", file.display())]
    TooLarge { file: PathBuf, limit: u64 },

    #[error("{} is not JSON: {error}", file.display())]
    Syntax { file: PathBuf, error: serde_json::Error },

    #[error("{}: {}{field} {problem}", file.display(), layer.as_ref().map_or(String::new(), |id| format!("layer {id}: ")))]
    Malformed { file: PathBuf, layer: Option<String>, field: String, problem: String },

    #[error("problem string `{text}`: {problem}")]
    Problem { text: String, problem: String },
}
