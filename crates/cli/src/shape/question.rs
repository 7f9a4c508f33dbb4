//! What is asked: a call in a dialect's own words, or a problem in neutral ones.

use anyhow::{Result, bail};
use outstride::{Attributes, DType, DialectName, Request};
use outstride_spec::neutral::Problem;

use super::ShapeArgs;
use super::options::{DialectChoice, NeutralArgs};

/// A question, with the element type and version that belong to both forms.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) form: Form,
    pub(super) bias: bool,
    pub(super) dtype: DType,
    pub(super) opset: Option<i64>,
}

#[derive(Debug)]
pub(super) enum Form {
    /// Shapes in the dialect's layouts, attributes as it spells them.
    Native { input: Vec<usize>, filter: Vec<usize>, request: Request },
    /// To be put into a dialect's words.
    Neutral(Problem),
}

impl Question {
    pub(super) fn from_args(args: &ShapeArgs) -> Result<Self> {
        let neutral = args.neutral.any() || matches!(args.dialect, DialectChoice::All);
        let native = !args.native.attributes.is_empty() || args.native.output_shape.is_some();
        if neutral && native {
            bail!(
                "--set and --output-shape speak one dialect's own words, which go neither with neutral options \
                 such as --stride nor with `--dialect all`; use the one or the other"
            );
        }
        if let DialectChoice::One(dialect) = args.dialect
            && args.opset.is_some()
            && !has_versions(dialect)
        {
            bail!("{dialect} has no opsets; --opset goes with onnx and ort-nhwc");
        }
        let form = if neutral { Form::Neutral(problem(args)?) } else { native_form(args)? };
        Ok(Question { form, bias: args.bias, dtype: args.dtype, opset: args.opset })
    }

    /// The version of a dialect's operator that is asked about.
    pub(super) fn version(&self, dialect: DialectName) -> Option<i64> {
        self.opset.filter(|_| has_versions(dialect))
    }
}

fn has_versions(dialect: DialectName) -> bool {
    matches!(dialect, DialectName::Onnx | DialectName::OrtNhwc)
}

fn native_form(args: &ShapeArgs) -> Result<Form> {
    let mut attributes = Attributes::new();
    for attribute in &args.native.attributes {
        if attributes.insert(attribute.name.clone(), attribute.value.clone()).is_some() {
            bail!("--set {} is given twice; keep one", attribute.name);
        }
    }
    let request =
        Request { attributes, output_shape: args.native.output_shape.clone(), ..Request::default() };
    Ok(Form::Native { input: args.input.clone(), filter: args.filter.clone(), request })
}

fn problem(args: &ShapeArgs) -> Result<Problem> {
    let NeutralArgs { stride, pads, dilation, output_padding, groups, auto_pad, output_size } = &args.neutral;
    if args.filter.len() < 3 {
        bail!("--filter has {} sizes; in neutral words it has at least 3: C,M/groups,k…", args.filter.len());
    }
    let spatial = args.filter.len() - 2;
    if args.input.len() != args.filter.len() {
        bail!(
            "--input has {} sizes and --filter {}; in neutral words, N,C,X… and C,M/groups,k…, they have equally many",
            args.input.len(),
            args.filter.len()
        );
    }
    let list = |name, list: &Option<Vec<i64>>| {
        list.as_ref().map(|list| per_axis(name, list, spatial, "one per spatial axis")).transpose()
    };
    let pads = match pads {
        None => None,
        Some(pads) => {
            let flat = per_axis("--pads", pads, 2 * spatial, "all beginnings, then all ends")?;
            let (begins, ends) = flat.split_at(spatial);
            Some(begins.iter().copied().zip(ends.iter().copied()).collect())
        }
    };
    let plain = Problem::new(&args.input, &args.filter);
    Ok(Problem {
        bias: args.bias,
        groups: groups.unwrap_or(1),
        strides: list("--stride", stride)?.unwrap_or(plain.strides),
        dilations: list("--dilation", dilation)?.unwrap_or(plain.dilations),
        pads,
        output_padding: list("--output-padding", output_padding)?,
        auto_pad: auto_pad.map(Into::into).unwrap_or_default(),
        output_size: list("--output-size", output_size)?,
        input: plain.input,
        filter: plain.filter,
    })
}

/// The list itself, or its one entry for all axes.
fn per_axis(name: &str, list: &[i64], length: usize, meaning: &str) -> Result<Vec<i64>> {
    match *list {
        [one] => Ok(vec![one; length]),
        _ if list.len() == length => Ok(list.to_vec()),
        _ => bail!(
            "{name} has {} entries; the filter asks for {length} ({meaning}), or one for all",
            list.len()
        ),
    }
}
