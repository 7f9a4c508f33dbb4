//! A problem written down in a dialect: loosely typed attributes and the types of its tensors.

use arbitrary::{Result, Unstructured};
use outstride::{AttributeValue, Attributes, DType, DialectName, Operands, Request, TensorType};

use crate::bytes::one_in;
use crate::problem::Problem;

/// A call as a stranger might hand it in.
#[derive(Debug)]
pub(crate) struct Spelled {
    pub(crate) dialect: DialectName,
    pub(crate) request: Request,
    pub(crate) data: OwnedType,
    pub(crate) filter: OwnedType,
    pub(crate) bias: Option<OwnedType>,
}

#[derive(Clone, Debug)]
pub(crate) struct OwnedType {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
}

impl OwnedType {
    fn as_type(&self) -> TensorType<'_> {
        TensorType::new(self.dtype, &self.shape)
    }
}

impl Spelled {
    /// Decodes a problem and spells it so that the dialect accepts it, under either policy.
    pub(crate) fn decode(dialect: DialectName, bytes: &mut Unstructured<'_>) -> Result<Self> {
        match dialect {
            DialectName::Onnx | DialectName::OrtNhwc => onnx(dialect, bytes),
            DialectName::OnednnGraph => onednn_graph(bytes),
            DialectName::Openvino | DialectName::OpenvinoGroup => openvino(dialect, bytes),
            DialectName::Torch => torch(bytes),
            DialectName::Tensorflow => tensorflow(bytes),
            DialectName::Jax => jax(bytes),
        }
    }

    pub(crate) fn operands(&self) -> Operands<'_> {
        let operands = Operands::new(self.data.as_type(), self.filter.as_type());
        match &self.bias {
            Some(bias) => operands.with_bias(bias.as_type()),
            None => operands,
        }
    }

    fn new(dialect: DialectName, dtype: DType, data: Vec<usize>, filter: Vec<usize>) -> Self {
        Spelled {
            dialect,
            request: Request::default(),
            data: OwnedType { dtype, shape: data },
            filter: OwnedType { dtype, shape: filter },
            bias: None,
        }
    }

    fn with_bias(mut self, bytes: &mut Unstructured<'_>, channels: usize) -> Result<Self> {
        if bytes.arbitrary()? {
            self.bias = Some(OwnedType { dtype: self.data.dtype, shape: vec![channels] });
        }
        Ok(self)
    }

    fn attributes(&mut self) -> &mut Attributes {
        &mut self.request.attributes
    }

    fn set(&mut self, name: &str, value: AttributeValue) {
        self.attributes().insert(name.to_owned(), value);
    }

    /// Writes a list out, unless it holds defaults only and the bytes say to leave it out.
    fn set_unless_default(
        &mut self,
        bytes: &mut Unstructured<'_>,
        name: &str,
        list: Vec<i64>,
        default: i64,
    ) -> Result<()> {
        if list.iter().any(|&entry| entry != default) || bytes.arbitrary()? {
            self.set(name, ints(list));
        }
        Ok(())
    }
}

fn ints(list: impl IntoIterator<Item = i64>) -> AttributeValue {
    AttributeValue::List(list.into_iter().map(AttributeValue::Int).collect())
}

fn pairs(list: impl IntoIterator<Item = (i64, i64)>) -> AttributeValue {
    AttributeValue::List(list.into_iter().map(|(low, high)| ints([low, high])).collect())
}

fn text(word: impl Into<String>) -> AttributeValue {
    AttributeValue::Text(word.into())
}

/// `(first, second, X…)`
fn channels_first(first: usize, second: usize, spatial: Vec<usize>) -> Vec<usize> {
    [vec![first, second], spatial].concat()
}

/// `(first, X…, second)`
fn channels_last(first: usize, second: usize, spatial: Vec<usize>) -> Vec<usize> {
    [vec![first], spatial, vec![second]].concat()
}

fn onnx(dialect: DialectName, bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let problem = Problem::decode(bytes, 4, 3)?;
    let dtype = *bytes.choose(&[DType::F32, DType::F16, DType::F64])?;
    let arrange = if dialect == DialectName::Onnx { channels_first } else { channels_last };
    let data = arrange(problem.batch, problem.in_channels(), problem.each(|axis| axis.input));
    let filter =
        channels_first(problem.in_channels(), problem.out_per_group, problem.each(|axis| axis.kernel));
    let mut spelled = Spelled::new(dialect, dtype, data, filter).with_bias(bytes, problem.out_channels())?;
    spelled.set_unless_default(bytes, "strides", problem.each(|axis| axis.stride), 1)?;
    spelled.set_unless_default(bytes, "dilations", problem.each(|axis| axis.dilation), 1)?;
    spelled.set_unless_default(bytes, "output_padding", problem.each(|axis| axis.extra), 0)?;
    if problem.groups != 1 || bytes.arbitrary()? {
        spelled.set("group", AttributeValue::Int(problem.groups as i64));
    }
    if bytes.arbitrary()? {
        spelled.set("kernel_shape", ints(problem.each(|axis| axis.kernel as i64)));
    }
    let auto_pad = *bytes.choose(&["NOTSET", "", "SAME_UPPER", "SAME_LOWER", "VALID"])?;
    if !auto_pad.is_empty() || bytes.arbitrary()? {
        spelled.set("auto_pad", text(auto_pad));
    }
    if bytes.arbitrary()? {
        spelled.set("output_shape", ints(problem.each(|axis| axis.output())));
    }
    if ["", "NOTSET"].contains(&auto_pad) && bytes.arbitrary()? {
        let pads = [problem.each(|axis| axis.begin), problem.each(|axis| axis.end)].concat();
        spelled.set_unless_default(bytes, "pads", pads, 0)?;
    }
    if dialect == DialectName::OrtNhwc && bytes.arbitrary()? {
        let (name, params) = *bytes.choose(&outstride::Activation::NAMES)?;
        spelled.set("activation", text(name));
        let params = (0..params).map(|_| Ok(AttributeValue::Float(bytes.arbitrary()?)));
        spelled.set("activation_params", AttributeValue::List(params.collect::<Result<_>>()?));
    }
    spelled.request.version = *bytes.choose(&[None, Some(1), Some(11), Some(22), Some(13)])?;
    Ok(spelled)
}

fn onednn_graph(bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let problem = Problem::decode(bytes, 4, 3)?;
    let dtype = *bytes.choose(&[DType::F32, DType::F16, DType::Bf16])?;
    let data_format = *bytes.choose(&["NXC", "NCX"])?;
    let arrange = if data_format == "NCX" { channels_first } else { channels_last };
    let data = arrange(problem.batch, problem.in_channels(), problem.each(|axis| axis.input));
    let (i, o, kernel) = (problem.in_channels(), problem.out_per_group, problem.each(|axis| axis.kernel));
    let filter_format = *bytes.choose(&["XIO", "OIX", "XOI", "IOX"])?;
    let filter = match filter_format {
        "XIO" => [kernel, vec![i, o]].concat(),
        "XOI" => [kernel, vec![o, i]].concat(),
        "OIX" => channels_first(o, i, kernel),
        _ => channels_first(i, o, kernel),
    };
    let mut spelled = Spelled::new(DialectName::OnednnGraph, dtype, data, filter)
        .with_bias(bytes, problem.out_channels())?;
    if data_format != "NXC" || bytes.arbitrary()? {
        spelled.set("data_format", text(data_format));
    }
    if filter_format != "XIO" || bytes.arbitrary()? {
        let name = *bytes.choose(&["filter_format", "weights_format"])?;
        spelled.set(name, text(filter_format));
    }
    spelled.set("strides", ints(problem.each(|axis| axis.stride)));
    spelled.set("dilations", ints(problem.each(|axis| axis.dilation)));
    spelled.set("pads_begin", ints(problem.each(|axis| axis.begin)));
    spelled.set("pads_end", ints(problem.each(|axis| axis.end)));
    spelled.set_unless_default(bytes, "output_padding", problem.each(|axis| axis.extra), 0)?;
    if problem.groups != 1 || bytes.arbitrary()? {
        spelled.set("groups", AttributeValue::Int(problem.groups as i64));
    }
    let auto_pad =
        *bytes.choose(&["", "None", "same_upper", "SAME_LOWER", "Valid", "SAME_UPPER", "same_lower"])?;
    if !auto_pad.is_empty() {
        spelled.set("auto_pad", text(auto_pad));
    }
    if bytes.arbitrary()? {
        spelled.set("output_shape", ints(problem.each(|axis| axis.output())));
    }
    Ok(spelled)
}

fn openvino(dialect: DialectName, bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let grouped = dialect == DialectName::OpenvinoGroup;
    let problem = Problem::decode(bytes, 3, if grouped { 3 } else { 1 })?;
    let dtype = *bytes.choose(DType::NUMERIC)?;
    let data = channels_first(problem.batch, problem.in_channels(), problem.each(|axis| axis.input));
    let filter =
        channels_first(problem.in_per_group, problem.out_per_group, problem.each(|axis| axis.kernel));
    let filter = if grouped { [vec![problem.groups], filter].concat() } else { filter };
    let mut spelled = Spelled::new(dialect, dtype, data, filter);
    for (name, list, default) in [
        ("strides", problem.each(|axis| axis.stride), 1),
        ("dilations", problem.each(|axis| axis.dilation), 1),
        ("pads_begin", problem.each(|axis| axis.begin), 0),
        ("pads_end", problem.each(|axis| axis.end), 0),
    ] {
        let default_only = list.iter().all(|&entry| entry == default);
        spelled.set(name, ints(if default_only && bytes.arbitrary()? { Vec::new() } else { list }));
    }
    spelled.set_unless_default(bytes, "output_padding", problem.each(|axis| axis.extra), 0)?;
    let auto_pad =
        *bytes.choose(&["", "explicit", "same_upper", "same_lower", "valid", "SAME_UPPER", "Same_Lower"])?;
    if !auto_pad.is_empty() {
        spelled.set("auto_pad", text(auto_pad));
    }
    if bytes.arbitrary()? {
        spelled.request.output_shape = Some(problem.each(|axis| axis.output()));
    }
    Ok(spelled)
}

fn torch(bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let problem = Problem::decode(bytes, 3, 3)?;
    let dtype = *bytes.choose(&[DType::F32, DType::F16, DType::Bf16, DType::F64, DType::I64])?;
    let mut data = channels_first(problem.batch, problem.in_channels(), problem.each(|axis| axis.input));
    if one_in(bytes, 4)? {
        data.remove(0);
    }
    let filter =
        channels_first(problem.in_channels(), problem.out_per_group, problem.each(|axis| axis.kernel));
    let mut spelled =
        Spelled::new(DialectName::Torch, dtype, data, filter).with_bias(bytes, problem.out_channels())?;
    // Cropping both ends by the smaller of the two crops leaves at least as much as the problem did.
    let padding = |axis: &crate::problem::AxisProblem| axis.begin.min(axis.end);
    for (name, list, default) in [
        ("stride", problem.each(|axis| axis.stride), 1),
        ("dilation", problem.each(|axis| axis.dilation), 1),
        ("padding", problem.each(padding), 0),
        ("output_padding", problem.each(|axis| axis.extra), 0),
    ] {
        match list.as_slice() {
            &[first, ref rest @ ..] if rest.iter().all(|&entry| entry == first) && bytes.arbitrary()? => {
                let one = AttributeValue::Int(first);
                let listed = bytes.arbitrary()?;
                spelled.set(name, if listed { AttributeValue::List(vec![one]) } else { one });
            }
            _ => spelled.set_unless_default(bytes, name, list, default)?,
        }
    }
    if problem.groups != 1 || bytes.arbitrary()? {
        spelled.set("groups", AttributeValue::Int(problem.groups as i64));
    }
    if one_in(bytes, 4)? {
        let mut sizes = problem.each(|axis| axis.full() - 2 * padding(axis) + axis.extra);
        if bytes.arbitrary()? {
            let others = spelled.data.shape.len() - sizes.len();
            sizes.splice(0..0, vec![7; others]);
        }
        spelled.set("output_size", ints(sizes));
    }
    if one_in(bytes, 8)? {
        spelled.set("padding_mode", text("zeros"));
    }
    if one_in(bytes, 8)? {
        spelled.request.op = Some(format!("conv_transpose{}d", problem.axes.len()));
    }
    Ok(spelled)
}

fn tensorflow(bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let problem = Problem::decode(bytes, 3, 1)?;
    let spatial = problem.axes.len();
    let dtype = *bytes.choose(&[DType::F32, DType::F16, DType::Bf16, DType::F64, DType::I32])?;
    let last: bool = bytes.arbitrary()?;
    let arrange = |batch, channels, sizes| {
        if last { channels_last(batch, channels, sizes) } else { channels_first(batch, channels, sizes) }
    };
    let data = arrange(problem.batch, problem.in_channels(), problem.each(|axis| axis.input));
    let filter =
        [problem.each(|axis| axis.kernel), vec![problem.out_channels(), problem.in_channels()]].concat();
    let mut spelled = Spelled::new(DialectName::Tensorflow, dtype, data, filter);
    let (channels_last_word, channels_first_word) =
        [("NWC", "NCW"), ("NHWC", "NCHW"), ("NDHWC", "NCDHW")][spatial - 1];
    if !last {
        spelled.set("data_format", text(channels_first_word));
    } else if bytes.arbitrary()? {
        spelled.set("data_format", text(channels_last_word));
    }
    let output = match bytes.int_in_range(0..=if spatial == 2 { 2 } else { 1 })? {
        0 => {
            if bytes.arbitrary()? {
                spelled.set("padding", text("SAME"));
            }
            problem.each(|axis| axis.input as i64 * axis.stride - axis.extra)
        }
        1 => {
            spelled.set("padding", text("VALID"));
            problem.each(|axis| axis.full() + axis.extra)
        }
        _ => {
            let mut padding = problem.each(|axis| (axis.begin, axis.end));
            padding.insert(0, (0, 0));
            padding.insert(if last { 3 } else { 1 }, (0, 0));
            spelled.set("padding", pairs(padding));
            problem.each(|axis| axis.output())
        }
    };
    let full_list = |batch: i64, channels: i64, entries: Vec<i64>| {
        let (front, back) =
            if last { (vec![batch], vec![channels]) } else { (vec![batch, channels], vec![]) };
        [front, entries, back].concat()
    };
    spelled.set("output_shape", ints(full_list(problem.batch as i64, problem.out_channels() as i64, output)));
    for (name, list) in
        [("strides", problem.each(|axis| axis.stride)), ("dilations", problem.each(|axis| axis.dilation))]
    {
        let uniform = list.iter().all(|&entry| entry == list[0]);
        spelled.set(
            name,
            match bytes.int_in_range(0..=2)? {
                0 if uniform => AttributeValue::Int(list[0]),
                1 => ints(full_list(1, 1, list)),
                _ => ints(list),
            },
        );
    }
    if one_in(bytes, 8)? {
        spelled.request.op = Some(format!("conv{spatial}d_transpose"));
    }
    Ok(spelled)
}

fn jax(bytes: &mut Unstructured<'_>) -> Result<Spelled> {
    let problem = Problem::decode(bytes, 4, 1)?;
    let spatial = problem.axes.len();
    let dtype = *bytes.choose(DType::NUMERIC)?;
    let transpose_kernel: bool = bytes.arbitrary()?;
    let letters = &"HWDT"[..spatial];
    let (mut lhs, mut rhs, mut out) =
        (format!("N{letters}C"), format!("{letters}IO"), format!("N{letters}C"));
    let named = spatial > 3 || bytes.arbitrary()?;
    if named {
        for word in [&mut lhs, &mut rhs, &mut out] {
            shuffle(bytes, word)?;
        }
    }
    let (input, output) = if transpose_kernel { ('O', 'I') } else { ('I', 'O') };
    // The problem's axes are in the order of the spatial letters of lhs.
    let order: Vec<char> = lhs.chars().filter(|letter| letters.contains(*letter)).collect();
    let axis_of = |letter: char| &problem.axes[order.iter().position(|&other| other == letter).unwrap_or(0)];
    let data = lhs.chars().map(|letter| match letter {
        'N' => problem.batch,
        'C' => problem.in_channels(),
        _ => axis_of(letter).input,
    });
    let filter = rhs.chars().map(|letter| match letter {
        _ if letter == input => problem.in_channels(),
        _ if letter == output => problem.out_channels(),
        _ => axis_of(letter).kernel,
    });
    let mut spelled = Spelled::new(DialectName::Jax, dtype, data.collect(), filter.collect());
    if named {
        spelled.set("dimension_numbers", AttributeValue::List([lhs, rhs, out].map(text).into()));
    }
    if transpose_kernel || bytes.arbitrary()? {
        spelled.set("transpose_kernel", AttributeValue::Bool(transpose_kernel));
    }
    spelled.set("strides", ints(problem.each(|axis| axis.stride)));
    spelled.set_unless_default(bytes, "rhs_dilation", problem.each(|axis| axis.dilation), 1)?;
    let padding = match bytes.int_in_range(0..=3)? {
        0 => text("SAME"),
        1 => text("VALID"),
        2 => {
            spelled.set("use_consistent_padding", AttributeValue::Bool(true));
            pairs(problem.each(|axis| (axis.begin, axis.end - axis.extra)))
        }
        _ => pairs(problem.each(|axis| {
            let reach = axis.effective_kernel() - 1;
            (reach - axis.begin, reach - axis.end + axis.extra)
        })),
    };
    spelled.set("padding", padding);
    Ok(spelled)
}

fn shuffle(bytes: &mut Unstructured<'_>, word: &mut String) -> Result<()> {
    let mut letters: Vec<char> = word.chars().collect();
    for last in (1..letters.len()).rev() {
        letters.swap(last, bytes.int_in_range(0..=last)?);
    }
    *word = letters.into_iter().collect();
    Ok(())
}
