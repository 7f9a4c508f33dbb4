//! Why a request was refused. Every variant names the tensor or attribute, the axis where there is one, what was
//! expected and what came.

use crate::dtype::DType;

/// Why a dialect's request could not be resolved to a [`Geometry`](crate::Geometry).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum SpecError {
    #[error("{dialect} has no attribute `{name}`; it knows {}", join(known))]
    UnknownAttribute { dialect: &'static str, name: String, known: &'static [&'static str] },

    #[error("the required attribute `{name}` is missing; {dialect} has no default for it, so write it out")]
    MissingAttribute { dialect: &'static str, name: &'static str },

    #[error("attribute `{name}` must be {expected}, got {found}")]
    AttributeType { name: String, expected: &'static str, found: String },

    #[error("`{name}` must be one of {}, got `{found}`", join(expected))]
    Word { name: &'static str, expected: &'static [&'static str], found: String },

    #[error("{name}{} must be {expected}, got {found}", at(axis))]
    Value { name: String, axis: Option<usize>, expected: String, found: String },

    #[error("`{name}` has {found} entries, expected {expected}")]
    Length { name: &'static str, expected: String, found: usize },

    #[error("`{first}` cannot be combined with {second}; {fix}")]
    Conflict { first: &'static str, second: String, fix: &'static str },

    #[error("{tensor} has rank {found}, expected {expected}")]
    Rank { tensor: &'static str, expected: String, found: usize },

    #[error("{tensor} has {found} {what} on axis {axis}, expected {expected} to match {reference}")]
    Channels {
        tensor: &'static str,
        what: &'static str,
        axis: usize,
        expected: usize,
        found: usize,
        reference: &'static str,
    },

    #[error("`{attribute}` is {groups}, which does not divide the {channels} {what} into whole groups")]
    Groups { attribute: &'static str, groups: i64, what: &'static str, channels: usize },

    #[error("{tensor} must have shape [{expected}], one value per output channel, got {found:?}")]
    BiasShape { tensor: &'static str, expected: usize, found: Vec<usize> },

    #[error(
        "`kernel_shape` is {attribute:?} but the spatial shape of W is {filter:?}; correct it or leave it out"
    )]
    KernelShape { attribute: Vec<i64>, filter: Vec<usize> },

    #[error(
        "`output_padding`[{axis}] is {found}, but must be less than {limit}, the {bound}; \
         larger values would only append bias"
    )]
    OutputPaddingTooLarge { axis: usize, limit: i64, found: i64, bound: &'static str },

    #[error("`output_shape`[{axis}] is {found}, but this input, kernel and stride reach {limit} at most")]
    OutputShapeTooLarge { axis: usize, limit: i64, found: i64 },

    #[error(
        "`output_shape` gives {found} on spatial axis {axis}: a forward convolution of that size yields {forward}, \
         but the input has {input}; {expected}"
    )]
    OutputShapeInconsistent { axis: usize, found: i64, forward: i64, input: usize, expected: String },

    #[error("`output_shape` says {found} for the {what}, but the tensors say {expected}")]
    OutputShapeMismatch { what: &'static str, expected: usize, found: i64 },

    #[error("the output would have size {size} on spatial axis {axis}; reduce the pads")]
    EmptyOutput { axis: usize, size: i64 },

    #[error("activation `{name}` with {params} parameters is not one of {}", activations())]
    Activation { name: String, params: usize },

    #[error("{tensor} has element type {found}; {dialect} allows {}", join_types(allowed))]
    DTypeNotAllowed { tensor: &'static str, dialect: &'static str, found: DType, allowed: &'static [DType] },

    #[error(
        "{tensor} has element type {found}, but {reference} has {expected}; {dialect} wants one type throughout"
    )]
    MixedDTypes {
        tensor: &'static str,
        dialect: &'static str,
        expected: DType,
        found: DType,
        reference: &'static str,
    },

    #[error("{dialect} takes no {tensor}")]
    UnexpectedTensor { dialect: &'static str, tensor: &'static str },

    #[error("the {what}{} exceeds what 64-bit sizes can hold", at(axis))]
    Overflow { what: String, axis: Option<usize> },
}

impl SpecError {
    /// A stable, short name of the reason, for machines: the kinds that conformance case files use.
    pub fn kind(&self) -> &'static str {
        match self {
            SpecError::UnknownAttribute { .. } => "unknown-attribute",
            SpecError::MissingAttribute { .. } => "missing-attribute",
            SpecError::AttributeType { .. } | SpecError::Value { .. } => "bad-value",
            SpecError::Word { name: "auto_pad" | "padding", .. } => "bad-auto-pad",
            SpecError::Word { .. } => "bad-format",
            SpecError::Length { .. } => "bad-length",
            SpecError::Conflict { .. } => "conflicting-attributes",
            SpecError::Rank { .. } => "bad-rank",
            SpecError::Channels { .. } => "channel-mismatch",
            SpecError::Groups { .. } => "bad-groups",
            SpecError::BiasShape { .. } => "bias-shape",
            SpecError::KernelShape { .. } => "kernel-shape-mismatch",
            SpecError::OutputPaddingTooLarge { .. } => "output-padding-too-large",
            SpecError::OutputShapeTooLarge { .. } => "output-shape-too-large",
            SpecError::OutputShapeInconsistent { .. } => "output-shape-inconsistent",
            SpecError::OutputShapeMismatch { what: "batch", .. } => "batch-mismatch",
            SpecError::OutputShapeMismatch { .. } => "channel-mismatch",
            SpecError::EmptyOutput { .. } => "empty-output",
            SpecError::Activation { .. } => "bad-activation",
            SpecError::DTypeNotAllowed { .. } | SpecError::MixedDTypes { .. } => "unsupported-dtype",
            SpecError::UnexpectedTensor { .. } => "unexpected-tensor",
            SpecError::Overflow { .. } => "overflow",
        }
    }
}

fn at(axis: &Option<usize>) -> String {
    axis.map_or(String::new(), |axis| format!("[{axis}]"))
}

fn join(words: &[&str]) -> String {
    words.join(", ")
}

fn join_types(types: &[DType]) -> String {
    types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ")
}

fn activations() -> String {
    crate::Activation::NAMES.map(|(name, params)| format!("{name} ({params})")).join(", ")
}
