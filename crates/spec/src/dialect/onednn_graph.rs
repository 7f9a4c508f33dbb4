//! oneDNN Graph `ConvTranspose-1`.

use super::resolve::{AxisRequest, Names, Placed, at_least, list_or, spatial_axes};
use super::{Call, Dialect, DialectName, FilterCall, Operands, PadRule, Policy, Split, TensorType};
use crate::attributes::{Attributes, Reader};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

const NAMES: Names = Names {
    dialect: "onednn-graph",
    input: "data",
    filter: "filter",
    bias: "bias",
    groups: "groups",
    strides: "strides",
    dilations: "dilations",
};

const ATTRIBUTES: &[&str] = &[
    "auto_pad",
    "data_format",
    "dilations",
    "filter_format",
    "groups",
    "output_padding",
    "output_shape",
    "pads_begin",
    "pads_end",
    "strides",
    "weights_format",
];

const TYPES: &[DType] = &[DType::F32, DType::F16, DType::Bf16];

/// The attributes of oneDNN Graph's operator. `strides`, `pads_begin`, `pads_end` and `dilations` are required,
/// even where `auto_pad` makes the pads unused.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    /// Stride per spatial axis.
    pub strides: Vec<i64>,
    /// What is cropped at the beginning of each spatial axis.
    pub pads_begin: Vec<i64>,
    /// What is cropped at the end of each spatial axis.
    pub pads_end: Vec<i64>,
    /// Dilation per spatial axis.
    pub dilations: Vec<i64>,
    /// How pads are chosen where they are not written down.
    pub auto_pad: AutoPad,
    /// Extra size at the end of each spatial axis; empty means 0.
    pub output_padding: Vec<i64>,
    /// Spatial output sizes. The text gives equations for them but no attribute: this name is an extension.
    pub output_shape: Vec<i64>,
    /// Number of groups.
    pub groups: i64,
    /// The layout of data and output.
    pub data_format: DataFormat,
    /// The layout of the filter. The document calls it `filter_format`, the library `weights_format`; each has its
    /// own default, and without either the document's holds.
    pub filter_format: FilterFormat,
}

impl Default for ConvTranspose {
    fn default() -> Self {
        ConvTranspose {
            strides: Vec::new(),
            pads_begin: Vec::new(),
            pads_end: Vec::new(),
            dilations: Vec::new(),
            auto_pad: AutoPad::None,
            output_padding: Vec::new(),
            output_shape: Vec::new(),
            groups: 1,
            data_format: DataFormat::Nxc,
            filter_format: FilterFormat::Xio,
        }
    }
}

/// oneDNN's `auto_pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoPad {
    /// Pads as written.
    #[default]
    None,
    /// The kernel's overhang beyond the stride is cropped, the odd element at the end.
    SameUpper,
    /// The kernel's overhang beyond the stride is cropped, the odd element at the beginning.
    SameLower,
    /// No padding.
    Valid,
}

/// The layout of data and output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// `(N, X…, C)`
    #[default]
    Nxc,
    /// `(N, C, X…)`
    Ncx,
}

/// The layout of the filter. The input-channel axis counts all groups, the output-channel axis one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FilterFormat {
    /// `(X…, I, O)`
    #[default]
    Xio,
    /// `(O, I, X…)`
    Oix,
    /// `(X…, O, I)`
    Xoi,
    /// `(I, O, X…)`
    Iox,
}

impl AutoPad {
    fn parse(word: &str) -> Result<Self, SpecError> {
        match word.to_ascii_lowercase().as_str() {
            "none" => Ok(AutoPad::None),
            "same_upper" => Ok(AutoPad::SameUpper),
            "same_lower" => Ok(AutoPad::SameLower),
            "valid" => Ok(AutoPad::Valid),
            _ => Err(SpecError::Word {
                name: "auto_pad",
                expected: &["None", "same_upper", "same_lower", "valid"],
                found: word.into(),
            }),
        }
    }
}

impl DataFormat {
    fn parse(word: &str) -> Result<Self, SpecError> {
        match word {
            "NXC" => Ok(DataFormat::Nxc),
            "NCX" => Ok(DataFormat::Ncx),
            _ => Err(SpecError::Word { name: "data_format", expected: &["NXC", "NCX"], found: word.into() }),
        }
    }

    fn layout(self, spatial: usize) -> DataLayout {
        match self {
            DataFormat::Nxc => DataLayout::nxc(spatial),
            DataFormat::Ncx => DataLayout::ncx(spatial),
        }
    }
}

impl FilterFormat {
    fn parse(name: &'static str, word: &str) -> Result<Self, SpecError> {
        match word {
            "XIO" => Ok(FilterFormat::Xio),
            "OIX" => Ok(FilterFormat::Oix),
            "XOI" => Ok(FilterFormat::Xoi),
            "IOX" => Ok(FilterFormat::Iox),
            _ => Err(SpecError::Word { name, expected: &["XIO", "OIX", "XOI", "IOX"], found: word.into() }),
        }
    }

    fn layout(self, spatial: usize) -> FilterLayout {
        match self {
            FilterFormat::Xio => FilterLayout::xio(spatial),
            FilterFormat::Oix => FilterLayout::oix(spatial),
            FilterFormat::Xoi => FilterLayout::xoi(spatial),
            FilterFormat::Iox => FilterLayout::iox(spatial),
        }
    }
}

impl ConvTranspose {
    /// Reads the attributes of an operator of a graph.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, ATTRIBUTES, attributes)?;
        let format = |name| reader.text(name)?.map(|word| FilterFormat::parse(name, &word)).transpose();
        let filter_format = match (format("filter_format")?, format("weights_format")?) {
            (Some(document), Some(library)) if document != library => {
                return Err(SpecError::Conflict {
                    first: "filter_format",
                    second: "a different `weights_format`".into(),
                    fix: "they are two names of one attribute: keep one",
                });
            }
            (document, library) => document.or(library).unwrap_or_default(),
        };
        Ok(ConvTranspose {
            strides: reader.required_ints("strides")?,
            pads_begin: reader.required_ints("pads_begin")?,
            pads_end: reader.required_ints("pads_end")?,
            dilations: reader.required_ints("dilations")?,
            auto_pad: reader.text("auto_pad")?.map_or(Ok(AutoPad::None), |word| AutoPad::parse(&word))?,
            output_padding: reader.ints("output_padding")?,
            output_shape: reader.ints("output_shape")?,
            groups: reader.int("groups")?.unwrap_or(1),
            data_format: reader
                .text("data_format")?
                .map_or(Ok(DataFormat::Nxc), |word| DataFormat::parse(&word))?,
            filter_format,
        })
    }

    fn pad_rule(&self) -> PadRule {
        match (self.output_shape.is_empty(), self.auto_pad) {
            (false, AutoPad::SameUpper) => PadRule::FitOutputShape(Split::EndHeavy),
            (false, _) => PadRule::FitOutputShape(Split::BeginHeavy),
            (true, AutoPad::SameUpper) => PadRule::FitStride(Split::EndHeavy),
            (true, AutoPad::SameLower) => PadRule::FitStride(Split::BeginHeavy),
            (true, AutoPad::Valid) => PadRule::Unpadded,
            (true, AutoPad::None) => PadRule::Written,
        }
    }
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::OnednnGraph
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        let spatial = spatial_axes("filter", filter.shape.len(), 2)?;
        let required = [
            ("strides", &self.strides),
            ("pads_begin", &self.pads_begin),
            ("pads_end", &self.pads_end),
            ("dilations", &self.dilations),
        ];
        if let Some((name, _)) = required.into_iter().find(|(_, list)| list.is_empty()) {
            return Err(SpecError::MissingAttribute { dialect: NAMES.dialect, name });
        }
        let layout = self.filter_format.layout(spatial);
        let call = NAMES.filter_call(filter, layout, self.groups, &self.strides, &self.dilations)?;
        Ok(call.for_outputs(&self.data_format.layout(spatial)))
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, TYPES)?;
        spatial_axes("data", operands.input.shape.len(), 2)?;
        let filter = self.filter(&operands.filter)?;
        let spatial = filter.kernel.len();
        let pads_begin = list_or("pads_begin", &self.pads_begin, spatial, 0)?;
        let pads_end = list_or("pads_end", &self.pads_end, spatial, 0)?;
        let output_padding = list_or("output_padding", &self.output_padding, spatial, 0)?;
        let output_shape = list_or("output_shape", &self.output_shape, spatial, 0)?;
        for (name, list) in [
            ("pads_begin", &pads_begin),
            ("pads_end", &pads_end),
            ("output_padding", &output_padding),
            ("output_shape", &output_shape),
        ] {
            at_least(name, list, 0)?;
        }
        NAMES.call(operands, filter, self.data_format.layout(spatial), self.pad_rule(), |axis| {
            let index = axis.index;
            let padding = i128::from(output_padding[index]);
            if policy == Policy::Runtime && padding >= axis.stride() {
                return Err(SpecError::OutputPaddingTooLarge {
                    axis: index,
                    limit: i64::try_from(axis.stride()).unwrap_or(i64::MAX),
                    found: output_padding[index],
                    bound: "stride",
                });
            }
            let full = axis.full() + padding;
            Ok(match self.pad_rule() {
                PadRule::FitOutputShape(split) => {
                    let output = i128::from(output_shape[index]);
                    Placed { begin: AxisRequest::split(full - output, split), output }
                }
                PadRule::FitStride(split) => {
                    // The total leaves output_padding out, so the size is input × stride + output_padding.
                    let total = (axis.effective_kernel() - axis.stride()).max(0);
                    Placed { begin: AxisRequest::split(total, split), output: full - total }
                }
                PadRule::Unpadded => Placed { begin: 0, output: full },
                _ => {
                    let (begin, end) = (i128::from(pads_begin[index]), i128::from(pads_end[index]));
                    Placed { begin, output: full - begin - end }
                }
            })
        })
    }
}
