//! TensorFlow `conv1d_transpose`, `conv2d_transpose`, `conv3d_transpose`.

use super::resolve::{AxisRequest, Names, Placed, at_least, broadcast_or};
use super::{
    Call, Dialect, DialectName, FilterCall, IntegerOverflow, Operands, PadRule, Policy, Split, TensorType,
};
use crate::attributes::{Attributes, Reader, WordOrPairs};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

const NAMES: Names = Names {
    dialect: "tensorflow",
    input: "input",
    filter: "filters",
    bias: "bias",
    groups: "groups",
    strides: "strides",
    dilations: "dilations",
};

const ATTRIBUTES: &[&str] = &["data_format", "dilations", "output_shape", "padding", "strides"];

const TYPES: &[DType] = &[DType::F16, DType::Bf16, DType::F32, DType::F64, DType::I32];

/// The arguments of TensorFlow's functions. There are no groups and no bias.
///
/// input is `(N, X…, C)` or `(N, C, X…)` by `data_format`; filters is `(k…, M, C)`, always.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvTranspose {
    /// 1, 2 or 3 for the function of that rank; `None` takes it from the filters.
    pub spatial: Option<usize>,
    /// The *full* shape of the output, in the order of `data_format`. Required.
    pub output_shape: Vec<i64>,
    /// One entry, one per spatial axis, or one per axis with 1 for batch and channels. Required.
    pub strides: Vec<i64>,
    /// How `output_shape` is reached.
    pub padding: Padding,
    /// Where the channels are.
    pub data_format: DataFormat,
    /// As `strides`; empty means 1.
    pub dilations: Vec<i64>,
}

/// TensorFlow's `padding`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// A forward convolution of the output has `ceil(output / stride)` elements.
    #[default]
    Same,
    /// A forward convolution of the output stays inside it.
    Valid,
    /// (beginning, end) for every axis in the order of `data_format`, 2-D only; zero for batch and channels.
    Explicit(Vec<(i64, i64)>),
}

/// TensorFlow's `data_format`, whose spelling depends on the rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// `NWC`, `NHWC`, `NDHWC`
    #[default]
    ChannelsLast,
    /// `NCW`, `NCHW`, `NCDHW`
    ChannelsFirst,
}

impl DataFormat {
    const WORDS: &'static [&'static str] = &["NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"];

    /// The format and the number of spatial axes the word stands for.
    fn parse(word: &str) -> Result<(Self, usize), SpecError> {
        match Self::WORDS.iter().position(|known| *known == word) {
            Some(index) if index % 2 == 0 => Ok((DataFormat::ChannelsLast, index / 2 + 1)),
            Some(index) => Ok((DataFormat::ChannelsFirst, index / 2 + 1)),
            None => Err(SpecError::Word { name: "data_format", expected: Self::WORDS, found: word.into() }),
        }
    }

    fn layout(self, spatial: usize) -> DataLayout {
        match self {
            DataFormat::ChannelsLast => DataLayout::nxc(spatial),
            DataFormat::ChannelsFirst => DataLayout::ncx(spatial),
        }
    }
}

impl ConvTranspose {
    /// Reads the arguments of a call of the function with `spatial` spatial axes.
    pub fn from_attributes(attributes: &Attributes, spatial: Option<usize>) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, ATTRIBUTES, attributes)?;
        let required = |name| SpecError::MissingAttribute { dialect: NAMES.dialect, name };
        let strides = reader.int_or_ints("strides")?;
        if strides.is_empty() {
            return Err(required("strides"));
        }
        let padding = match reader.word_or_pairs("padding")? {
            None => Padding::Same,
            Some(WordOrPairs::Pairs(pairs)) => Padding::Explicit(pairs),
            Some(WordOrPairs::Word(word)) => match word.as_str() {
                "SAME" => Padding::Same,
                "VALID" => Padding::Valid,
                _ => {
                    return Err(SpecError::Word {
                        name: "padding",
                        expected: &["SAME", "VALID", "a list of pairs"],
                        found: word,
                    });
                }
            },
        };
        let (data_format, spatial) = match reader.text("data_format")? {
            None => (DataFormat::ChannelsLast, spatial),
            Some(word) => {
                let (format, axes) = DataFormat::parse(&word)?;
                if spatial.is_some_and(|spatial| spatial != axes) {
                    let expected = DataFormat::WORDS;
                    return Err(SpecError::Word { name: "data_format", expected, found: word });
                }
                (format, Some(axes))
            }
        };
        Ok(ConvTranspose {
            spatial,
            output_shape: reader.required_ints("output_shape")?,
            strides,
            padding,
            data_format,
            dilations: reader.int_or_ints("dilations")?,
        })
    }

    /// The spatial entries of a list that may carry entries for batch and channels, which must be 1.
    fn spatial_entries(
        &self,
        name: &'static str,
        list: &[i64],
        spatial: usize,
    ) -> Result<Vec<i64>, SpecError> {
        if list.len() != spatial + 2 {
            return broadcast_or(name, list, spatial, 1);
        }
        let layout = self.data_format.layout(spatial);
        for axis in [layout.batch.unwrap_or(0), layout.channel] {
            if list[axis] != 1 {
                return Err(NAMES.value(name, Some(axis), "1 for batch and channels", list[axis]));
            }
        }
        Ok(layout.spatial.iter().map(|&axis| list[axis]).collect())
    }

    /// The explicit pads of the spatial axes, checked.
    fn explicit_pads(&self, layout: &DataLayout) -> Result<Vec<(i64, i64)>, SpecError> {
        let Padding::Explicit(pairs) = &self.padding else { return Ok(Vec::new()) };
        if layout.spatial.len() != 2 || pairs.len() != 4 {
            let expected = "4 pairs in the order of `data_format`, for 2-D only".into();
            return Err(SpecError::Length { name: "padding", expected, found: pairs.len() });
        }
        for axis in [layout.batch.unwrap_or(0), layout.channel] {
            if pairs[axis] != (0, 0) {
                let found = format!("{:?}", pairs[axis]);
                return Err(NAMES.value("padding", Some(axis), "(0, 0) for batch and channels", found));
            }
        }
        let pads: Vec<_> = layout.spatial.iter().map(|&axis| pairs[axis]).collect();
        for &(begin, end) in &pads {
            at_least("padding", &[begin, end], 0)?;
        }
        Ok(pads)
    }
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::Tensorflow
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        let spatial = filter.shape.len().saturating_sub(2);
        if !(1..=3).contains(&spatial) || self.spatial.is_some_and(|expected| expected != spatial) {
            return Err(SpecError::Rank {
                tensor: "filters",
                expected: self.spatial.map_or("3, 4 or 5".into(), |spatial| (spatial + 2).to_string()),
                found: filter.shape.len(),
            });
        }
        if self.strides.is_empty() {
            return Err(SpecError::MissingAttribute { dialect: NAMES.dialect, name: "strides" });
        }
        let strides = self.spatial_entries("strides", &self.strides, spatial)?;
        let dilations = self.spatial_entries("dilations", &self.dilations, spatial)?;
        let call = NAMES.filter_call(filter, FilterLayout::xoi(spatial), 1, &strides, &dilations)?;
        Ok(call.for_outputs(&self.data_format.layout(spatial)))
    }

    fn resolve(&self, operands: &Operands<'_>, _policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, TYPES)?;
        NAMES.refuse_bias(operands)?;
        let filter = self.filter(&operands.filter)?;
        let layout = self.data_format.layout(filter.kernel.len());
        let sizes = &self.output_shape;
        if sizes.len() != layout.rank() {
            let expected =
                format!("{}: the full shape of the output, batch and channels included", layout.rank());
            return Err(SpecError::Length { name: "output_shape", expected, found: sizes.len() });
        }
        let explicit = self.explicit_pads(&layout)?;
        let rule = match self.padding {
            Padding::Same => PadRule::FitOutputShape(Split::EndHeavy),
            Padding::Valid => PadRule::Unpadded,
            Padding::Explicit(_) => PadRule::Written,
        };
        let spatial = layout.spatial.clone();
        let (batch_axis, channel_axis) = (layout.batch.unwrap_or(0), layout.channel);
        let call = NAMES.call(operands, filter, layout, rule, |axis| {
            let size = sizes[spatial[axis.index]];
            let output = i128::from(size);
            let kernel = axis.effective_kernel();
            let (forward, begin) = match &self.padding {
                Padding::Same => {
                    let begin = AxisRequest::split(axis.full() - output, Split::EndHeavy);
                    (ceil_div(output, axis.stride()), begin)
                }
                Padding::Valid => (ceil_div(output - kernel + 1, axis.stride()), 0),
                Padding::Explicit(_) => {
                    let (low, high) = explicit[axis.index];
                    let padded = output + i128::from(low) + i128::from(high);
                    ((padded - kernel).div_euclid(axis.stride()) + 1, i128::from(low))
                }
            };
            if size < 0 || forward != axis.input() {
                return Err(SpecError::OutputShapeInconsistent {
                    axis: axis.index,
                    found: size,
                    forward: i64::try_from(forward).unwrap_or(i64::MAX),
                    input: usize::try_from(axis.input()).unwrap_or(usize::MAX),
                    expected: self.consistent_sizes(axis, &explicit),
                });
            }
            Ok(Placed { begin, output })
        })?;
        let geometry = &call.geometry;
        for (what, axis, expected) in
            [("batch", batch_axis, geometry.batch()), ("channels", channel_axis, geometry.out_channels())]
        {
            if usize::try_from(sizes[axis]) != Ok(expected) {
                return Err(SpecError::OutputShapeMismatch { what, expected, found: sizes[axis] });
            }
        }
        Ok(Call { overflow: IntegerOverflow::Wrap, ..call })
    }
}

impl ConvTranspose {
    /// The sizes that would pass the consistency test, for the message.
    fn consistent_sizes(&self, axis: &AxisRequest, explicit: &[(i64, i64)]) -> String {
        let reach = (axis.input() - 1) * axis.stride();
        let smallest = match &self.padding {
            Padding::Same => reach + 1,
            Padding::Valid => reach + axis.effective_kernel(),
            Padding::Explicit(_) => {
                let (low, high) = explicit[axis.index];
                reach + axis.effective_kernel() - i128::from(low) - i128::from(high)
            }
        };
        format!("use {smallest} to {}", smallest + axis.stride() - 1)
    }
}

fn ceil_div(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}
