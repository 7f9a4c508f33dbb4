//! What each dialect's tables say about a call that was accepted, read straight from the attributes a second time.

use outstride::{AttributeValue, Attributes, DialectName, Policy};

use crate::spelling::Spelled;

/// One spatial axis as the dialect's tables have it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExpectedAxis {
    pub(crate) input: i128,
    pub(crate) kernel: i128,
    pub(crate) stride: i128,
    pub(crate) dilation: i128,
    pub(crate) begin: i128,
    pub(crate) output: i128,
}

/// The axes of an accepted call. Panics where the call should not have been accepted.
pub(crate) fn expected_axes(spelled: &Spelled, policy: Policy) -> Vec<ExpectedAxis> {
    let places = Places::of(spelled);
    (0..places.data.len())
        .map(|axis| {
            let table = Table { spelled, policy, axis, spatial: places.data.len() };
            let sizes = Sizes {
                input: spelled.data.shape[places.data[axis]] as i128,
                kernel: spelled.filter.shape[places.filter[axis]] as i128,
                stride: table.entry(&["strides", "stride"], 1),
                dilation: table.entry(&["dilations", "dilation", "rhs_dilation"], 1),
            };
            assert!(sizes.kernel >= 1 && sizes.stride >= 1 && sizes.dilation >= 1, "accepted {sizes:?}");
            let (begin, output) = match spelled.dialect {
                DialectName::Onnx | DialectName::OrtNhwc => table.onnx(&sizes),
                DialectName::OnednnGraph => table.onednn_graph(&sizes),
                DialectName::Openvino | DialectName::OpenvinoGroup => table.openvino(&sizes),
                DialectName::Torch => table.torch(&sizes),
                DialectName::Tensorflow => table.tensorflow(&sizes, places.data[axis]),
                DialectName::Jax => table.jax(&sizes),
            };
            let Sizes { input, kernel, stride, dilation } = sizes;
            ExpectedAxis { input, kernel, stride, dilation, begin, output }
        })
        .collect()
}

/// Which axes of the tensors are the spatial ones.
struct Places {
    data: Vec<usize>,
    filter: Vec<usize>,
}

impl Places {
    fn of(spelled: &Spelled) -> Self {
        let attributes = &spelled.request.attributes;
        let rank = spelled.filter.shape.len();
        let (data_start, filter_start, spatial) = match spelled.dialect {
            DialectName::Onnx | DialectName::Openvino => (2, 2, rank - 2),
            DialectName::OrtNhwc => (1, 2, rank - 2),
            DialectName::OpenvinoGroup => (2, 3, rank - 3),
            DialectName::Torch => (spelled.data.shape.len() + 2 - rank, 2, rank - 2),
            DialectName::OnednnGraph => {
                let spatial_last = ["filter_format", "weights_format"]
                    .iter()
                    .any(|name| ["OIX", "IOX"].contains(&word(attributes, name)));
                let data_start = if word(attributes, "data_format") == "NCX" { 2 } else { 1 };
                (data_start, if spatial_last { 2 } else { 0 }, rank - 2)
            }
            DialectName::Tensorflow => {
                let channels_first = word(attributes, "data_format").starts_with("NC");
                (if channels_first { 2 } else { 1 }, 0, rank - 2)
            }
            DialectName::Jax => match attributes.get("dimension_numbers") {
                None => (1, 0, rank - 2),
                Some(numbers) => return Self::of_letters(numbers),
            },
        };
        Places {
            data: (data_start..data_start + spatial).collect(),
            filter: (filter_start..filter_start + spatial).collect(),
        }
    }

    fn of_letters(numbers: &AttributeValue) -> Self {
        let AttributeValue::List(texts) = numbers else { panic!("accepted dimension_numbers {numbers}") };
        let letters = |index: usize| match &texts[index] {
            AttributeValue::Text(text) => text.chars().collect::<Vec<_>>(),
            other => panic!("accepted dimension_numbers with {other}"),
        };
        let (lhs, rhs) = (letters(0), letters(1));
        let data: Vec<usize> = (0..lhs.len()).filter(|&axis| !['N', 'C'].contains(&lhs[axis])).collect();
        let filter = data.iter().map(|&axis| rhs.iter().position(|&letter| letter == lhs[axis]));
        Places { filter: filter.map(|place| place.expect("rhs has the letters of lhs")).collect(), data }
    }
}

#[derive(Debug)]
struct Sizes {
    input: i128,
    kernel: i128,
    stride: i128,
    dilation: i128,
}

impl Sizes {
    fn effective_kernel(&self) -> i128 {
        (self.kernel - 1) * self.dilation + 1
    }

    fn full(&self) -> i128 {
        (self.input - 1) * self.stride + self.effective_kernel()
    }
}

/// One axis of a call, with its dialect's attributes at hand.
struct Table<'a> {
    spelled: &'a Spelled,
    policy: Policy,
    axis: usize,
    spatial: usize,
}

impl Table<'_> {
    fn attributes(&self) -> &Attributes {
        &self.spelled.request.attributes
    }

    fn list(&self, name: &str) -> Vec<i128> {
        let int = |value: &AttributeValue| match value {
            AttributeValue::Int(value) => i128::from(*value),
            other => panic!("accepted `{name}` with {other}"),
        };
        match self.attributes().get(name) {
            None => Vec::new(),
            Some(AttributeValue::List(items)) => items.iter().map(int).collect(),
            Some(one) => vec![int(one)],
        }
    }

    /// The axis's entry of the attribute under whichever of its names is there.
    fn entry(&self, names: &[&str], default: i128) -> i128 {
        let list = names.iter().map(|name| self.list(name)).find(|list| !list.is_empty()).unwrap_or_default();
        match list.len() {
            0 => default,
            1 => list[0],
            length if length == self.spatial => list[self.axis],
            length => {
                assert_eq!((self.spelled.dialect, length), (DialectName::Tensorflow, self.spatial + 2));
                let channels_first = word(self.attributes(), "data_format").starts_with("NC");
                list[self.axis + if channels_first { 2 } else { 1 }]
            }
        }
    }

    fn non_negative(&self, name: &str) -> i128 {
        let entry = self.entry(&[name], 0);
        assert!(entry >= 0, "accepted `{name}` {entry}");
        entry
    }

    fn auto_pad(&self) -> String {
        word(self.attributes(), "auto_pad").to_ascii_lowercase()
    }

    fn onnx(&self, sizes: &Sizes) -> (i128, i128) {
        let extra = self.non_negative("output_padding");
        let bound = match self.policy {
            Policy::Spec => sizes.stride.max(sizes.dilation),
            Policy::Runtime => sizes.stride,
        };
        assert!(extra < bound, "accepted output_padding {extra}");
        let full = sizes.full() + extra;
        let auto_pad = self.auto_pad();
        let pads = self.list("pads");
        assert!(pads.is_empty() || ["", "notset"].contains(&auto_pad.as_str()), "accepted pads and auto_pad");
        assert!(pads.iter().all(|&pad| pad >= 0), "accepted pads {pads:?}");
        let placed = match (self.list("output_shape").get(self.axis), auto_pad.as_str()) {
            (Some(&output), auto_pad) => {
                assert!(output < sizes.full() + sizes.stride, "accepted output_shape {output}");
                let total = (full - output).max(0);
                (if auto_pad == "same_upper" { end_heavy(total) } else { begin_heavy(total) }, output)
            }
            (None, "same_upper" | "same_lower") => {
                let total = (sizes.effective_kernel() + extra - sizes.stride).max(0);
                (if auto_pad == "same_upper" { end_heavy(total) } else { begin_heavy(total) }, full - total)
            }
            (None, "valid") => (0, full),
            (None, _) if pads.is_empty() => (0, full),
            (None, _) => {
                let (begin, end) = (pads[self.axis], pads[self.axis + self.spatial]);
                (begin, full - begin - end)
            }
        };
        assert!(placed.1 > 0, "accepted output size {}", placed.1);
        placed
    }

    fn onednn_graph(&self, sizes: &Sizes) -> (i128, i128) {
        let extra = self.non_negative("output_padding");
        assert!(self.policy == Policy::Spec || extra < sizes.stride, "accepted output_padding {extra}");
        let (begin, end) = (self.non_negative("pads_begin"), self.non_negative("pads_end"));
        let full = sizes.full() + extra;
        let auto_pad = self.auto_pad();
        match (self.list("output_shape").get(self.axis), auto_pad.as_str()) {
            (Some(&output), auto_pad) => {
                let total = (full - output).max(0);
                (if auto_pad == "same_upper" { end_heavy(total) } else { begin_heavy(total) }, output)
            }
            (None, "same_upper" | "same_lower") => {
                let total = (sizes.effective_kernel() - sizes.stride).max(0);
                (if auto_pad == "same_upper" { end_heavy(total) } else { begin_heavy(total) }, full - total)
            }
            (None, "valid") => (0, full),
            (None, _) => (begin, full - begin - end),
        }
    }

    fn openvino(&self, sizes: &Sizes) -> (i128, i128) {
        let full = sizes.full() + self.non_negative("output_padding");
        let (begin, end) = (self.non_negative("pads_begin"), self.non_negative("pads_end"));
        let auto_pad = self.auto_pad();
        let explicit = ["", "explicit"].contains(&auto_pad.as_str());
        match (&self.spelled.request.output_shape, auto_pad.as_str(), self.policy) {
            (None, _, _) if explicit => (begin, full - begin - end),
            (None, _, _) => (0, full),
            (Some(sizes), auto_pad, policy) => {
                let output = i128::from(sizes[self.axis]);
                let total = (full - output).max(0);
                let begin = match (auto_pad, policy) {
                    ("same_upper", _) => begin_heavy(total),
                    ("same_lower", _) | (_, Policy::Spec) => end_heavy(total),
                    (_, Policy::Runtime) if explicit => begin,
                    (_, Policy::Runtime) => 0,
                };
                (begin, output)
            }
        }
    }

    fn torch(&self, sizes: &Sizes) -> (i128, i128) {
        let (padding, output_padding) = (self.non_negative("padding"), self.non_negative("output_padding"));
        let smallest = sizes.full() - 2 * padding;
        let output_size = self.list("output_size");
        let extra = match output_size.len() {
            0 => output_padding,
            length => output_size[length - self.spatial + self.axis] - smallest,
        };
        assert!((0..sizes.stride.max(sizes.dilation)).contains(&extra), "accepted output padding {extra}");
        assert!(output_size.is_empty() || extra < sizes.stride, "accepted output_size {output_size:?}");
        assert!(sizes.input > 0 && smallest + extra > 0, "accepted {sizes:?}");
        (padding, smallest + extra)
    }

    fn tensorflow(&self, sizes: &Sizes, place: usize) -> (i128, i128) {
        let output = self.list("output_shape")[place];
        assert!(output >= 0, "accepted output_shape {output}");
        // The forward convolution of the output has as many elements as there are strided starts within `span`.
        let starts = |span: i128| if span <= 0 { 0 } else { (span - 1) / sizes.stride + 1 };
        let (begin, forward) = match self.attributes().get("padding") {
            Some(AttributeValue::List(pairs)) => {
                let AttributeValue::List(pair) = &pairs[place] else { panic!("accepted {pairs:?}") };
                let [AttributeValue::Int(low), AttributeValue::Int(high)] = pair[..] else {
                    panic!("accepted {pairs:?}")
                };
                assert!(low >= 0 && high >= 0, "accepted {pairs:?}");
                let padded = output + i128::from(low) + i128::from(high);
                (i128::from(low), starts(padded - sizes.effective_kernel() + 1))
            }
            Some(AttributeValue::Text(word)) if word == "VALID" => {
                (0, starts(output - sizes.effective_kernel() + 1))
            }
            _ => (end_heavy((sizes.full() - output).max(0)), starts(output)),
        };
        assert_eq!(forward, sizes.input, "accepted output_shape {output} for {sizes:?}");
        (begin, output)
    }

    fn jax(&self, sizes: &Sizes) -> (i128, i128) {
        let reach = sizes.effective_kernel() - 1;
        let fitted = sizes.input * sizes.stride;
        let overhang = (sizes.effective_kernel() - sizes.stride).max(0);
        match self.attributes().get("padding") {
            Some(AttributeValue::Text(word)) if word == "SAME" => (end_heavy(overhang), fitted),
            Some(AttributeValue::Text(word)) if word == "VALID" => (0, fitted + overhang),
            Some(AttributeValue::List(pairs)) => {
                let AttributeValue::List(pair) = &pairs[self.axis] else { panic!("accepted {pairs:?}") };
                let [AttributeValue::Int(low), AttributeValue::Int(high)] = pair[..] else {
                    panic!("accepted {pairs:?}")
                };
                let (low, high) = (i128::from(low), i128::from(high));
                match self.attributes().get("use_consistent_padding") {
                    Some(AttributeValue::Bool(true)) => (low, sizes.full() - low - high),
                    // The stride-dilated input, padded, under a forward convolution with stride 1.
                    _ => (reach - low, (sizes.input - 1) * sizes.stride + 1 + low + high - reach),
                }
            }
            other => panic!("accepted padding {other:?}"),
        }
    }
}

fn word<'a>(attributes: &'a Attributes, name: &str) -> &'a str {
    match attributes.get(name) {
        Some(AttributeValue::Text(word)) => word,
        _ => "",
    }
}

/// The beginning's part of a total whose odd element goes to the end.
fn end_heavy(total: i128) -> i128 {
    total / 2
}

/// The beginning's part of a total whose odd element goes to the beginning.
fn begin_heavy(total: i128) -> i128 {
    total - total / 2
}
