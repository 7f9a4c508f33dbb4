//! JAX `jax.lax.conv_transpose`.

use super::resolve::{AxisRequest, Names, Placed, list_or, spatial_axes};
use super::{
    Call, Dialect, DialectName, FilterCall, IntegerOverflow, Operands, PadRule, Policy, Split, TensorType,
};
use crate::attributes::{Attributes, Reader, WordOrPairs};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

const NAMES: Names = Names {
    dialect: "jax",
    input: "lhs",
    filter: "rhs",
    bias: "bias",
    groups: "groups",
    strides: "strides",
    dilations: "rhs_dilation",
};

const ATTRIBUTES: &[&str] = &[
    "dimension_numbers",
    "padding",
    "rhs_dilation",
    "strides",
    "transpose_kernel",
    "use_consistent_padding",
];

/// The arguments of JAX's function. There are no groups and no bias.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvTranspose {
    /// Stride per spatial axis. Required.
    pub strides: Vec<i64>,
    /// How much is cropped, or added.
    pub padding: Padding,
    /// Dilation per spatial axis; empty means 1.
    pub rhs_dilation: Vec<i64>,
    /// The letters of the axes of lhs, rhs and output, such as `("NHWC", "HWIO", "NHWC")`, which is the default.
    pub dimension_numbers: Option<DimensionNumbers>,
    /// Take the kernel as a forward convolution's: not flipped, and its channel letters swapped.
    pub transpose_kernel: bool,
    /// Read explicit pads as a forward convolution's, cropping the output, rather than as padding of the input.
    pub use_consistent_padding: bool,
}

/// JAX's `padding`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Output size input × stride.
    #[default]
    Same,
    /// Output size input × stride plus the kernel's overhang.
    Valid,
    /// (low, high) per spatial axis.
    Explicit(Vec<(i64, i64)>),
}

/// One letter per axis of lhs, rhs and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimensionNumbers {
    /// lhs: `N`, `C` and one letter per spatial axis.
    pub lhs: String,
    /// rhs: `I`, `O` and the same spatial letters.
    pub rhs: String,
    /// The output: as lhs, in any order.
    pub out: String,
}

impl DimensionNumbers {
    fn default_for(spatial: usize) -> Result<Self, SpecError> {
        let letters = match spatial {
            1 => "H",
            2 => "HW",
            3 => "HWD",
            _ => {
                let name = "dimension_numbers";
                return Err(SpecError::MissingAttribute { dialect: "jax beyond three spatial axes", name });
            }
        };
        let data = format!("N{letters}C");
        Ok(DimensionNumbers { lhs: data.clone(), rhs: format!("{letters}IO"), out: data })
    }

    fn check(&self, spatial: usize) -> Result<(), SpecError> {
        let sorted = |letters: &str| {
            let mut letters: Vec<char> = letters.chars().collect();
            letters.sort_unstable();
            letters
        };
        let spatial_of = |text: &str, channels: [char; 2]| {
            let letters: String = text.chars().filter(|letter| !channels.contains(letter)).collect();
            sorted(&letters)
        };
        let expected = spatial_of(&self.lhs, ['N', 'C']);
        for (which, text, channels) in
            [("lhs", &self.lhs, ['N', 'C']), ("rhs", &self.rhs, ['I', 'O']), ("out", &self.out, ['N', 'C'])]
        {
            let all = sorted(text);
            let distinct = all.windows(2).all(|pair| pair[0] != pair[1]);
            let has_channels = channels.iter().all(|letter| text.contains(*letter));
            let agrees = spatial_of(text, channels) == expected && expected.len() == spatial;
            if !(distinct && has_channels && agrees) {
                let [first, second] = channels;
                let wanted = format!(
                    "{first}, {second} and {spatial} distinct spatial letters, the same in lhs, rhs and out"
                );
                let name = format!("dimension_numbers.{which}");
                return Err(NAMES.value(&name, None, &wanted, format!("`{text}`")));
            }
        }
        Ok(())
    }

    /// The spatial letters, in the order that `strides` and `padding` use.
    fn spatial_letters(&self) -> impl Iterator<Item = char> + '_ {
        self.lhs.chars().filter(|letter| !['N', 'C'].contains(letter))
    }

    fn data_layout(&self, text: &str) -> DataLayout {
        DataLayout {
            batch: Some(position(text, 'N')),
            channel: position(text, 'C'),
            spatial: self.spatial_letters().map(|letter| position(text, letter)).collect(),
        }
    }

    fn filter_layout(&self, transpose_kernel: bool) -> FilterLayout {
        let (input, output) = (position(&self.rhs, 'I'), position(&self.rhs, 'O'));
        let (input, output) = if transpose_kernel { (output, input) } else { (input, output) };
        FilterLayout {
            group: None,
            input,
            output,
            spatial: self.spatial_letters().map(|letter| position(&self.rhs, letter)).collect(),
            flipped: !transpose_kernel,
        }
    }
}

/// The place of a letter that [`DimensionNumbers::check`] has found to be there.
fn position(text: &str, letter: char) -> usize {
    text.chars().position(|other| other == letter).unwrap_or(0)
}

impl ConvTranspose {
    /// Reads the arguments of a call.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, ATTRIBUTES, attributes)?;
        let missing = |name| SpecError::MissingAttribute { dialect: NAMES.dialect, name };
        let padding = match reader.word_or_pairs("padding")?.ok_or(missing("padding"))? {
            WordOrPairs::Pairs(pairs) => Padding::Explicit(pairs),
            WordOrPairs::Word(word) => match word.as_str() {
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
        let dimension_numbers = match reader.texts("dimension_numbers")? {
            None => None,
            Some(texts) => match <[String; 3]>::try_from(texts) {
                Ok([lhs, rhs, out]) => Some(DimensionNumbers { lhs, rhs, out }),
                Err(texts) => {
                    let expected = "3: lhs, rhs and output".into();
                    return Err(SpecError::Length {
                        name: "dimension_numbers",
                        expected,
                        found: texts.len(),
                    });
                }
            },
        };
        Ok(ConvTranspose {
            strides: reader.required_ints("strides")?,
            padding,
            rhs_dilation: reader.ints("rhs_dilation")?,
            dimension_numbers,
            transpose_kernel: reader.flag("transpose_kernel")?,
            use_consistent_padding: reader.flag("use_consistent_padding")?,
        })
    }

    fn dimension_numbers(&self, spatial: usize) -> Result<DimensionNumbers, SpecError> {
        let numbers = match &self.dimension_numbers {
            Some(numbers) => numbers.clone(),
            None => DimensionNumbers::default_for(spatial)?,
        };
        numbers.check(spatial)?;
        Ok(numbers)
    }

    fn pad_rule(&self) -> PadRule {
        match (&self.padding, self.use_consistent_padding) {
            (Padding::Same, _) => PadRule::FitStride(Split::EndHeavy),
            (Padding::Valid, _) => PadRule::Unpadded,
            (Padding::Explicit(_), true) => PadRule::Written,
            (Padding::Explicit(_), false) => PadRule::PaddedInput,
        }
    }
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::Jax
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        let spatial = spatial_axes("rhs", filter.shape.len(), 2)?;
        if self.strides.is_empty() {
            return Err(SpecError::MissingAttribute { dialect: NAMES.dialect, name: "strides" });
        }
        let numbers = self.dimension_numbers(spatial)?;
        let layout = numbers.filter_layout(self.transpose_kernel);
        let dilation = list_or("rhs_dilation", &self.rhs_dilation, spatial, 1)?;
        let call = NAMES.filter_call(filter, layout, 1, &self.strides, &dilation)?;
        Ok(call.for_outputs(&numbers.data_layout(&numbers.out)))
    }

    fn resolve(&self, operands: &Operands<'_>, _policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, DType::NUMERIC)?;
        NAMES.refuse_bias(operands)?;
        let filter = self.filter(&operands.filter)?;
        let spatial = filter.kernel.len();
        let numbers = self.dimension_numbers(spatial)?;
        if let Padding::Explicit(pairs) = &self.padding
            && pairs.len() != spatial
        {
            let expected = format!("{spatial} pairs, one per spatial axis");
            return Err(SpecError::Length { name: "padding", expected, found: pairs.len() });
        }
        let input = numbers.data_layout(&numbers.lhs);
        let call = NAMES.call(operands, filter, input, self.pad_rule(), |axis| {
            let kernel = axis.effective_kernel();
            let overhang = (kernel - axis.stride()).max(0);
            let fitted = axis.input() * axis.stride();
            Ok(match &self.padding {
                Padding::Same => {
                    Placed { begin: AxisRequest::split(overhang, Split::EndHeavy), output: fitted }
                }
                Padding::Valid => Placed { begin: 0, output: fitted + overhang },
                Padding::Explicit(pairs) => {
                    let (low, high) = pairs[axis.index];
                    let (low, high) = (i128::from(low), i128::from(high));
                    if self.use_consistent_padding {
                        Placed { begin: low, output: axis.full() - low - high }
                    } else {
                        let output = (axis.input() - 1) * axis.stride() + 2 + low + high - kernel;
                        Placed { begin: kernel - 1 - low, output }
                    }
                }
            })
        })?;
        let output = numbers.data_layout(&numbers.out);
        Ok(Call { output, overflow: IntegerOverflow::Wrap, ..call })
    }
}
