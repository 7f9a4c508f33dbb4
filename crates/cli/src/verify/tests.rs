//! The known ways of getting the operator wrong are told apart.

use std::path::Path;

use outstride::{AttributeValue, Attributes, DType, Policy};
use outstride_io::onnx::{LayerModel, layer_model};
use outstride_io::{AnyTensor, Model, Source};

use super::canonical::Canonical;
use super::deviations::{deviations, pairs};
use super::expect::{Comparison, Question};
use crate::convolve::{Tensors, convolve};
use crate::random;

/// A layer of ONNX with its tensors.
struct Case {
    model: Model,
    input: AnyTensor,
    filter: AnyTensor,
    bias: Option<AnyTensor>,
}

fn ints(values: &[i64]) -> AttributeValue {
    AttributeValue::List(values.iter().map(|&value| AttributeValue::Int(value)).collect())
}

fn attributes(pairs: &[(&str, AttributeValue)]) -> Attributes {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

impl Case {
    fn new(input: &[usize], filter: &[usize], pairs: &[(&str, AttributeValue)]) -> Self {
        let made_up = |name: &str, shape: &[usize]| random::tensor(1, name, DType::F32, shape).unwrap();
        let filter = made_up("w", filter);
        let bytes = layer_model(&LayerModel {
            name: "up",
            domain: "",
            version: 22,
            attributes: &attributes(pairs),
            dtype: DType::F32,
            input,
            output: &[],
            filter: &filter,
            bias: None,
        });
        let model = Model::parse(Source::memory(Path::new("m.onnx"), bytes)).unwrap();
        Case { model, input: made_up("x", input), filter, bias: None }
    }

    fn tensors(&self) -> Tensors<'_> {
        Tensors { input: &self.input, filter: &self.filter, bias: self.bias.as_ref() }
    }

    /// What this layer's output is.
    fn output(&self) -> AnyTensor {
        let request = self.model.layers()[0].request();
        convolve(request.read(self.model.layers()[0].dialect).unwrap().into(), &self.tensors(), Policy::Spec)
            .unwrap()
    }

    fn canonical(&self) -> Canonical {
        let layer = &self.model.layers()[0];
        let dialect = layer.request().read(layer.dialect).unwrap();
        Canonical::new(&dialect.resolve(&self.tensors().operands(), Policy::Spec).unwrap(), &self.tensors())
    }

    fn compared(&self, expected: &AnyTensor) -> Comparison {
        let layer = &self.model.layers()[0];
        let (request, canonical) = (layer.request(), self.canonical());
        let question =
            Question { layer, request: &request, canonical: &canonical, dtype: DType::F32, tolerance: None };
        let comparison = question.compare(&self.output(), expected).unwrap();
        assert!(!comparison.agrees(), "the deviation changes nothing");
        comparison
    }

    /// What explains an output that someone else has.
    fn explained(&self, expected: &AnyTensor) -> Vec<String> {
        let comparison = self.compared(expected);
        serde_json::to_value(&comparison).unwrap()["explained_by"]
            .as_array()
            .unwrap()
            .iter()
            .map(|what| what.as_str().unwrap().to_owned())
            .collect()
    }
}

fn tensor(shape: &[usize], values: Vec<f64>) -> AnyTensor {
    AnyTensor::new(shape.to_vec(), values.into_iter().map(|value| value as f32).collect()).unwrap()
}

#[test]
fn every_deviation_is_recognised_by_what_comes_of_it() {
    let strided =
        [("strides", ints(&[2, 3])), ("pads", ints(&[1, 0, 0, 2])), ("output_padding", ints(&[1, 1]))];
    let grouped = [&strided[..], &[("group", AttributeValue::Int(2))]].concat();
    let square =
        [("strides", ints(&[2, 2])), ("dilations", ints(&[2, 2])), ("output_shape", ints(&[11, 11]))];
    let mut tried = 0;
    for case in [
        Case::new(&[2, 4, 5, 4], &[4, 3, 3, 2], &strided),
        Case::new(&[1, 4, 5, 4], &[4, 3, 3, 2], &grouped),
        Case::new(&[1, 3, 4, 4], &[3, 2, 3, 3], &square),
    ] {
        let layers = case.model.layers();
        for deviation in deviations(&layers[0], &layers[0].request(), &case.canonical()) {
            let Ok((shape, values)) = deviation.result.evaluate() else { continue };
            let explained = case.explained(&tensor(&shape, values));
            assert!(explained.contains(&deviation.what), "{}: {explained:?}", deviation.what);
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

#[test]
fn two_mistakes_at_once_are_both_named() {
    let words =
        [("strides", ints(&[2, 3])), ("pads", ints(&[1, 0, 0, 2])), ("group", AttributeValue::Int(2))];
    let case = Case::new(&[1, 4, 5, 4], &[4, 3, 3, 2], &words);
    let layers = case.model.layers();
    let (request, canonical) = (layers[0].request(), case.canonical());
    let known: Vec<_> = pairs(&layers[0], &request, &canonical).collect();
    let of = |parts: [&str; 2]| {
        let pair = known.iter().find(|pair| parts.iter().all(|part| pair.what.contains(part))).unwrap();
        let (shape, values) = pair.result.evaluate().unwrap();
        (pair.what.clone(), case.explained(&tensor(&shape, values)))
    };
    for parts in [
        ["the kernel is flipped", "the input channels of the groups are interleaved"],
        ["begin and end pads are exchanged", "the output is channels last"],
        ["the filter's memory is read with output channels", "a Tanh follows"],
    ] {
        let (what, explained) = of(parts);
        assert_eq!(explained, [what]);
    }
    // An outcome that one mistake has as well is put down to that one.
    let (_, explained) = of(["nothing is cropped at the beginning", "begin and end pads are exchanged"]);
    assert!(explained.iter().all(|what| !what.contains(", and ")), "{explained:?}");
}

#[test]
fn what_several_mistakes_lead_to_is_put_down_to_each() {
    let words =
        |pads: &[i64]| [("strides", ints(&[2])), ("pads", ints(pads)), ("output_padding", ints(&[1]))];
    let case = Case::new(&[1, 2, 4], &[2, 3, 3], &words(&[1, 1]));
    let theirs = Case::new(&[1, 2, 4], &[2, 3, 3], &words(&[0, 2])).output();
    let text = case.compared(&theirs).to_string();
    let expected = "explained by each of these alone:\n  \
                    begin and end pads are exchanged (SAME_UPPER and SAME_LOWER swapped)\n  \
                    nothing is cropped at the beginning (pads ignored)\n  \
                    output_padding is added at the beginning instead of the end";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn single_elements_are_those_of_the_whole() {
    let words =
        [("strides", ints(&[2, 1])), ("pads", ints(&[1, 0, 0, 0])), ("group", AttributeValue::Int(2))];
    let case = Case::new(&[2, 4, 3, 2], &[4, 3, 3, 2], &words);
    let canonical = case.canonical();
    let (shape, values) = canonical.evaluate().unwrap();
    for (flat, &value) in values.iter().enumerate() {
        let index = tensor(&shape, values.clone()).index_of(flat);
        assert_eq!(canonical.element(&index).unwrap(), value, "{index:?}");
    }
}

#[test]
fn someone_who_swaps_same_upper_and_same_lower_is_found_out() {
    let same = |word: &str| {
        let words = [("strides", ints(&[2])), ("auto_pad", AttributeValue::Text(word.into()))];
        Case::new(&[1, 2, 5], &[2, 3, 3], &words)
    };
    let explained = same("SAME_UPPER").explained(&same("SAME_LOWER").output());
    assert_eq!(explained, ["begin and end pads are exchanged (SAME_UPPER and SAME_LOWER swapped)"]);
}

#[test]
fn someone_who_reads_the_words_as_openvino_does_is_found_out() {
    let words = [("strides", ints(&[2])), ("auto_pad", AttributeValue::Text("SAME_UPPER".into()))];
    let case = Case::new(&[1, 2, 5], &[2, 3, 3], &words);
    let unpadded = Case::new(&[1, 2, 5], &[2, 3, 3], &words[..1]);
    let explained = case.explained(&unpadded.output());
    assert!(explained.iter().any(|what| what.contains("as in openvino,")), "{explained:?}");
}

#[test]
fn someone_who_splits_a_negative_total_is_found_out() {
    // The full extent is 9; 12 asks for three more, of which a floor puts two in front.
    let words = [("strides", ints(&[4])), ("output_shape", ints(&[12]))];
    let case = Case::new(&[1, 1, 3], &[1, 1, 1], &words);
    let right: Vec<f64> =
        (0..12).map(|index| f64::from(case.output().values().get(index).unwrap())).collect();
    let shifted = [vec![0.0; 2], right[..10].to_vec()].concat();
    let explained = case.explained(&tensor(&[1, 1, 12], shifted));
    assert_eq!(explained, ["a negative padding total is halved with floor instead of being taken as 0"]);
}

#[test]
fn what_nobody_knows_is_looked_for_among_shifts_and_otherwise_left_open() {
    let case = Case::new(&[1, 1, 4], &[1, 1, 3], &[("strides", ints(&[2])), ("pads", ints(&[1, 1]))]);
    let output = case.output();
    let value = |index: usize| f64::from(output.values().get(index).unwrap());
    let noise = (0..7).map(|index| value(index) * value(index) + 1.0).collect();
    assert!(case.explained(&tensor(&[1, 1, 7], noise)).is_empty());
    let unpadded = Case::new(&[1, 1, 4], &[1, 1, 3], &[("strides", ints(&[2])), ("pads", ints(&[2, 0]))]);
    let explained = case.explained(&unpadded.output());
    assert_eq!(explained, ["1 more element is cropped at the beginning of axis 0"]);
}
