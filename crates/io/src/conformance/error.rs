//! Why a case file could not be read.

use std::path::PathBuf;

/// Why a case file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum CaseError {
    #[error("cannot read {}: {source}", file.display())]
    Io { file: PathBuf, source: std::io::Error },

    #[error("{} has more than {limit} bytes; split it into several files", file.display())]
    TooLarge { file: PathBuf, limit: u64 },

    #[error("{} is not JSON: {source}", file.display())]
    Syntax { file: PathBuf, source: serde_json::Error },

    #[error("{}: {}{field} {problem}", file.display(), of(case))]
    Malformed { file: PathBuf, case: Option<String>, field: String, problem: String },
}

fn of(case: &Option<String>) -> String {
    case.as_ref().map_or(String::new(), |case| format!("case {case}: "))
}
