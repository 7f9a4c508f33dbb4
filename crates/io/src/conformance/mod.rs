//! Conformance cases: calls of one dialect with the results that real implementations gave.
//!
//! ```
//! use std::path::Path;
//! use outstride_io::conformance::{CaseFile, Expected};
//!
//! let text = br#"{"format": 1, "dialect": "torch", "cases": [{
//!     "id": "torch-1", "op": "conv_transpose1d", "attributes": {"stride": 2},
//!     "inputs": {"input": {"dtype": "f32", "shape": [1, 1, 1], "data": [3]},
//!                "weight": {"dtype": "f32", "shape": [1, 1, 2], "data": [1, 10]}},
//!     "expected": {"output": {"dtype": "f32", "shape": [1, 1, 2], "data": [3, 30]}},
//!     "tolerance": {"abs": 0, "rel": 0}}]}"#;
//! let file = CaseFile::parse(Path::new("torch.json"), text)?;
//! assert!(matches!(file.cases[0].expected, Expected::Output(_)));
//! # Ok::<(), outstride_io::conformance::CaseError>(())
//! ```

mod error;
mod inputs;
mod read;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use outstride_spec::{Attributes, DialectName, Policy};

use crate::tensor::AnyTensor;

pub use error::CaseError;
pub use inputs::{CaseInputs, InputError};

/// The largest file that is read: far beyond any in use, and no trap for a path such as `/dev/zero`.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The cases of one dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseFile {
    /// The dialect of all cases.
    pub dialect: DialectName,
    /// In the order of the file.
    pub cases: Vec<Case>,
}

/// One call and what must come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The case's name.
    pub id: String,
    /// How the call is spelt.
    pub dialect: DialectName,
    /// The operator's or function's name.
    pub op: String,
    /// The opset of `onnx`, the version of other dialects, where given.
    pub version: Option<i64>,
    /// Exactly as the dialect spells them.
    pub attributes: Attributes,
    /// The inputs by the dialect's own names, in its own layouts; [`inputs`](Self::inputs) gives them their roles.
    pub tensors: BTreeMap<String, AnyTensor>,
    /// What the specification's text says.
    pub expected: Expected,
    /// What the dialect's own runtime did, where that differs.
    pub runtime: Option<Expected>,
    /// How far an output may be off.
    pub tolerance: Tolerance,
}

/// What must come of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// This result.
    Output(AnyTensor),
    /// A refusal. Kind and reason explain it to people; another reason for refusing is as good.
    Error {
        /// A short name, such as `bad-value`.
        kind: String,
        /// A sentence, possibly empty.
        reason: String,
    },
}

/// An element `a` passes for `e` where `|a − e| ≤ abs + rel·|e|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// The absolute part.
    pub abs: f64,
    /// The part in proportion to the expected value.
    pub rel: f64,
}

impl CaseFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let io_error = |source| CaseError::Io { file: path.to_owned(), source };
        let mut text = Vec::new();
        let file = File::open(path).map_err(io_error)?;
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(io_error)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(CaseError::TooLarge { file: path.to_owned(), limit: MAX_FILE_BYTES });
        }
        Self::parse(path, &text)
    }

    /// Reads the contents of a file; `path` only serves the messages.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, CaseError> {
        read::case_file(path, text)
    }
}

impl Case {
    /// What must come of the call under a policy.
    pub fn expected_under(&self, policy: Policy) -> &Expected {
        match policy {
            Policy::Spec => &self.expected,
            Policy::Runtime => self.runtime.as_ref().unwrap_or(&self.expected),
        }
    }
}
