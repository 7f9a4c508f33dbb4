//! A layer's meaning in another dialect's words, and its weights in the other's layout.

use anyhow::{Context as _, Result, bail};
use outstride::{
    Activation, AttributeValue, Axis, Call, DType, DialectName, Element, Geometry, Operands, Policy, Request,
    TensorType, bf16, f16,
};
use outstride_io::{AnyTensor, Storable};
use outstride_spec::neutral::{AutoPad, Problem, Spelling};

use super::Target;
use crate::convolve::{values_of, with_element};
use crate::model::Resolved;
use crate::relayout::Order;

/// A layer in a dialect's words.
#[derive(Debug)]
pub(super) struct Translation {
    pub(super) name: String,
    pub(super) geometry: Geometry,
    pub(super) dtype: DType,
    pub(super) request: Request,
    pub(super) input: Vec<usize>,
    pub(super) output: Vec<usize>,
    pub(super) filter: AnyTensor,
    pub(super) bias: Option<AnyTensor>,
    /// What a reader should know.
    pub(super) notes: Vec<String>,
}

impl Translation {
    pub(super) fn new(
        name: &str,
        source: &Resolved,
        filter: &AnyTensor,
        bias: Option<&AnyTensor>,
        target: Target,
    ) -> Result<Self> {
        let geometry = &source.call.geometry;
        let mut translation = Translation {
            name: name.to_owned(),
            geometry: geometry.clone(),
            dtype: source.dtype,
            request: Request::default(),
            input: geometry.input_shape(),
            output: geometry.output_shape(),
            filter: filter.clone(),
            bias: bias.cloned(),
            notes: Vec::new(),
        };
        let Some(dialect) = target.dialect(geometry.groups()) else {
            if source.call.activation != Activation::Identity {
                bail!("a problem string has no activation; run {} afterwards", source.call.activation.name());
            }
            return Ok(translation);
        };
        let problem = problem(geometry, dialect);
        let mut spelling = problem.spell(dialect)?;
        if dialect == DialectName::OnednnGraph {
            as_the_library_reads(&mut spelling, &problem);
        }
        let mut request = spelling.request;
        translation.notes.extend(spelling.note);
        add_activation(&mut request, &source.call, dialect)?;
        let call = resolve(&request, dialect, &spelling.input, &spelling.filter, source.dtype)?;
        check(&call, &source.call)?;
        let source_order = Order::of_filter(&source.call.filter, filter.shape(), geometry.groups());
        let target_order = Order::of_filter(&call.filter, &spelling.filter, geometry.groups());
        translation.filter = relaid(filter, &source_order, &target_order, &spelling.filter)?;
        translation.input = spelling.input;
        translation.output = call.output_shape();
        translation.request = request;
        Ok(translation)
    }
}

/// The meaning in neutral words, all pads written out, in the form that the dialect is most likely to have words for.
fn problem(geometry: &Geometry, dialect: DialectName) -> Problem {
    let axes = geometry.axes();
    let spatial = axes.len();
    let mut pads: Vec<(i64, i64)> = axes.iter().map(|axis| (axis.pad_begin, axis.pad_end())).collect();
    let mut extra = vec![0; spatial];
    for (pad, extra) in pads.iter_mut().zip(&mut extra) {
        // PyTorch pads both ends alike, so that a smaller end becomes output padding; elsewhere that is for ends below 0.
        let end = if dialect == DialectName::Torch { pad.0.max(0) } else { 0 };
        if pad.1 < end {
            *extra = end - pad.1;
            pad.1 = end;
        }
    }
    Problem {
        input: geometry.input_shape(),
        filter: [geometry.in_channels(), geometry.out_channels_per_group()]
            .into_iter()
            .chain(axes.iter().map(|axis| axis.kernel))
            .collect(),
        // Where a dialect takes none, it is added behind.
        bias: false,
        groups: geometry.groups() as i64,
        strides: axes.iter().map(|axis| axis.stride as i64).collect(),
        dilations: axes.iter().map(|axis| axis.dilation as i64).collect(),
        pads: Some(pads),
        output_padding: Some(extra).filter(|extra| extra.iter().any(|&extra| extra != 0)),
        auto_pad: AutoPad::None,
        output_size: None,
    }
}

/// oneDNN's document and its library differ in the filter formats that they know; this one is the library's.
fn as_the_library_reads(spelling: &mut Spelling, problem: &Problem) {
    let words = [("data_format", "NCX"), ("weights_format", "IOX")];
    let words = words.map(|(name, word)| (name.to_owned(), AttributeValue::Text(word.to_owned())));
    spelling.request.attributes.extend(words);
    spelling.input = problem.input.clone();
    spelling.filter = problem.filter.clone();
}

fn add_activation(request: &mut Request, source: &Call, dialect: DialectName) -> Result<()> {
    use AttributeValue::{Float, List, Text};
    let parameters = match source.activation {
        Activation::Identity => return Ok(()),
        Activation::LeakyRelu { alpha } => vec![alpha],
        Activation::Clip { min, max } => vec![min, max],
        Activation::HardSigmoid { alpha, beta } => vec![alpha, beta],
        _ => Vec::new(),
    };
    if dialect != DialectName::OrtNhwc {
        bail!(
            "`activation`: {dialect} has none; write {} as an operator of its own",
            source.activation.name()
        );
    }
    request.attributes.insert("activation".into(), Text(source.activation.name().into()));
    if !parameters.is_empty() {
        let parameters = parameters.into_iter().map(|value| Float(f64::from(value))).collect();
        request.attributes.insert("activation_params".into(), List(parameters));
    }
    Ok(())
}

fn resolve(
    request: &Request,
    dialect: DialectName,
    input: &[usize],
    filter: &[usize],
    dtype: DType,
) -> Result<Call> {
    let operands = Operands::new(TensorType::new(dtype, input), TensorType::new(dtype, filter));
    Ok(request.read(dialect)?.resolve(&operands, Policy::Spec)?)
}

/// The translation must mean what the layer meant.
fn check(translated: &Call, source: &Call) -> Result<()> {
    let pairs = translated.geometry.axes().iter().zip(source.geometry.axes());
    for (index, (translated, source)) in pairs.enumerate() {
        if translated != source {
            let describe = |axis: &Axis| format!("size {} after cropping {}", axis.output, axis.pad_begin);
            bail!(
                "the pads on axis {index} would come to {} instead of {}",
                describe(translated),
                describe(source)
            );
        }
    }
    Ok(())
}

fn relaid(filter: &AnyTensor, source: &Order, target: &Order, shape: &[usize]) -> Result<AnyTensor> {
    with_element!(filter.values().dtype(), relaid_in(filter, source, target, shape))
}

fn relaid_in<T: Element + Storable>(
    filter: &AnyTensor,
    source: &Order,
    target: &Order,
    shape: &[usize],
) -> Result<AnyTensor> {
    let values = target.scatter(&source.gather(values_of::<T>(filter)?));
    AnyTensor::new(shape.to_vec(), values).context("a filter's shape and values do not agree")
}
