//! The examples that the specifications publish, in both ONNX spellings, and beside each the same call with weights
//! that are not all ones: all-ones weights hide flipped kernels and swapped axes.

use outstride::{Axis, DType, DialectName, Geometry, IntegerOverflow, Operands, Policy, TensorType};

use crate::case::{Case, POLICIES, int, ints, text};
use crate::support::generate::Problem;
use crate::support::relayout::{channels_last, permute, unpermute};
use crate::support::run;

/// A published call: X is `(N, C, X…)`, W is `(C, M/group, k…)`.
struct Example {
    set: fn(Case) -> Case,
    x_shape: &'static [usize],
    x: Vec<f32>,
    w_shape: &'static [usize],
    w: Vec<f32>,
    /// What the call means, worked out by hand.
    axes: Vec<Axis>,
    groups: usize,
    y: Vec<f32>,
}

impl Example {
    fn geometry(&self) -> Geometry {
        let (batch, inputs) = (self.x_shape[0], self.x_shape[1]);
        Geometry::new(batch, self.groups, inputs, self.groups * self.w_shape[1], self.axes.clone()).unwrap()
    }

    #[track_caller]
    fn check(self) {
        self.check_values(&self.w, &self.y);

        let geometry = self.geometry();
        // Every weight has its own value and its own sign pattern, so no symmetry is left.
        let weights: Vec<f32> =
            (0..self.w.len()).map(|i| (i as f32 + 2.0) * if i % 3 == 1 { -1.0 } else { 1.0 }).collect();
        let problem = Problem {
            x: self.x.clone(),
            w: weights.clone(),
            bias: vec![0.0; geometry.out_channels()],
            geometry,
        };
        self.check_values(&weights, &run::expected(&problem, IntegerOverflow::Saturate));
    }

    /// Runs the example with these weights as `onnx` and, its data transposed, as `ort-nhwc`.
    #[track_caller]
    fn check_values(&self, w: &[f32], y: &[f32]) {
        let expected_shape = self.geometry().output_shape();
        let spatial = self.axes.len();
        for policy in POLICIES {
            let onnx = (self.set)(Case::new(DialectName::Onnx)).x(self.x_shape, &self.x).w(self.w_shape, w);
            let found = onnx.run(policy).unwrap();
            assert_eq!(found.shape(), expected_shape);
            assert_eq!(found.data(), y);

            let (shape, x) = permute(&self.x, self.x_shape, &channels_last(spatial));
            let nhwc = (self.set)(Case::new(DialectName::OrtNhwc)).x(&shape, &x).w(self.w_shape, w);
            let found = nhwc.run(policy).unwrap();
            let (shape, found) = unpermute(found.data(), found.shape(), &channels_last(spatial));
            assert_eq!(shape, expected_shape);
            assert_eq!(found, y);
        }
    }
}

fn counting(length: usize) -> Vec<f32> {
    (0..length).map(|i| i as f32).collect()
}

fn axis(input: usize, kernel: usize, stride: usize, output: usize, pad_begin: i64) -> Axis {
    Axis { input, kernel, stride, dilation: 1, output, pad_begin }
}

/// The 3×3 example with two output channels, whose planes are alike as long as all weights are.
fn example_3x3(set: fn(Case) -> Case, axes: [Axis; 2], plane: &[f32]) -> Example {
    Example {
        set,
        x_shape: &[1, 1, 3, 3],
        x: counting(9),
        w_shape: &[1, 2, 3, 3],
        w: vec![1.0; 18],
        axes: axes.into(),
        groups: 1,
        y: plane.repeat(2),
    }
}

const DEFAULT_PLANE: [f32; 25] = [
    0.0, 1.0, 3.0, 3.0, 2.0, //
    3.0, 8.0, 15.0, 12.0, 7.0, //
    9.0, 21.0, 36.0, 27.0, 15.0, //
    9.0, 20.0, 33.0, 24.0, 13.0, //
    6.0, 13.0, 21.0, 15.0, 8.0,
];

#[test]
fn convtranspose() {
    example_3x3(|case| case, [axis(3, 3, 1, 5, 0); 2], &DEFAULT_PLANE).check();
}

#[test]
fn convtranspose_1d() {
    Example {
        set: |case| case,
        x_shape: &[1, 1, 3],
        x: counting(3),
        w_shape: &[1, 2, 3],
        w: vec![1.0; 6],
        axes: vec![axis(3, 3, 1, 5, 0)],
        groups: 1,
        y: [0.0, 1.0, 3.0, 3.0, 2.0].repeat(2),
    }
    .check();
}

#[test]
fn convtranspose_1d_by_hand_with_other_weights() {
    // 0·w, then 1·w one to the right, then 2·w two to the right, for w = [2, −3, 5] and [7, 11, 13].
    let expected = [0.0, 2.0, 1.0, -1.0, 10.0, 0.0, 7.0, 25.0, 35.0, 26.0];
    let w = [2.0, -3.0, 5.0, 7.0, 11.0, 13.0];
    Case::new(DialectName::Onnx).x(&[1, 1, 3], &counting(3)).w(&[1, 2, 3], &w).gives(&expected);
}

#[test]
fn convtranspose_3d() {
    const VOLUME: [f32; 210] = [
        0.0, 1.0, 3.0, 6.0, 9.0, 7.0, 4.0, //
        5.0, 12.0, 21.0, 27.0, 33.0, 24.0, 13.0, //
        15.0, 33.0, 54.0, 63.0, 72.0, 51.0, 27.0, //
        30.0, 63.0, 99.0, 108.0, 117.0, 81.0, 42.0, //
        25.0, 52.0, 81.0, 87.0, 93.0, 64.0, 33.0, //
        15.0, 31.0, 48.0, 51.0, 54.0, 37.0, 19.0, //
        20.0, 42.0, 66.0, 72.0, 78.0, 54.0, 28.0, //
        50.0, 104.0, 162.0, 174.0, 186.0, 128.0, 66.0, //
        90.0, 186.0, 288.0, 306.0, 324.0, 222.0, 114.0, //
        120.0, 246.0, 378.0, 396.0, 414.0, 282.0, 144.0, //
        90.0, 184.0, 282.0, 294.0, 306.0, 208.0, 106.0, //
        50.0, 102.0, 156.0, 162.0, 168.0, 114.0, 58.0, //
        60.0, 123.0, 189.0, 198.0, 207.0, 141.0, 72.0, //
        135.0, 276.0, 423.0, 441.0, 459.0, 312.0, 159.0, //
        225.0, 459.0, 702.0, 729.0, 756.0, 513.0, 261.0, //
        270.0, 549.0, 837.0, 864.0, 891.0, 603.0, 306.0, //
        195.0, 396.0, 603.0, 621.0, 639.0, 432.0, 219.0, //
        105.0, 213.0, 324.0, 333.0, 342.0, 231.0, 117.0, //
        60.0, 122.0, 186.0, 192.0, 198.0, 134.0, 68.0, //
        130.0, 264.0, 402.0, 414.0, 426.0, 288.0, 146.0, //
        210.0, 426.0, 648.0, 666.0, 684.0, 462.0, 234.0, //
        240.0, 486.0, 738.0, 756.0, 774.0, 522.0, 264.0, //
        170.0, 344.0, 522.0, 534.0, 546.0, 368.0, 186.0, //
        90.0, 182.0, 276.0, 282.0, 288.0, 194.0, 98.0, //
        40.0, 81.0, 123.0, 126.0, 129.0, 87.0, 44.0, //
        85.0, 172.0, 261.0, 267.0, 273.0, 184.0, 93.0, //
        135.0, 273.0, 414.0, 423.0, 432.0, 291.0, 147.0, //
        150.0, 303.0, 459.0, 468.0, 477.0, 321.0, 162.0, //
        105.0, 212.0, 321.0, 327.0, 333.0, 224.0, 113.0, //
        55.0, 111.0, 168.0, 171.0, 174.0, 117.0, 59.0,
    ];
    Example {
        set: |case| case,
        x_shape: &[1, 1, 3, 4, 5],
        x: counting(60),
        w_shape: &[1, 2, 3, 3, 3],
        w: vec![1.0; 54],
        axes: vec![axis(3, 3, 1, 5, 0), axis(4, 3, 1, 6, 0), axis(5, 3, 1, 7, 0)],
        groups: 1,
        y: VOLUME.repeat(2),
    }
    .check();
}

const ATTRIBUTES_PLANE: [f32; 80] = [
    0.0, 0.0, 1.0, 1.0, 3.0, 2.0, 2.0, 0.0, //
    0.0, 0.0, 1.0, 1.0, 3.0, 2.0, 2.0, 0.0, //
    0.0, 0.0, 1.0, 1.0, 3.0, 2.0, 2.0, 0.0, //
    3.0, 3.0, 7.0, 4.0, 9.0, 5.0, 5.0, 0.0, //
    3.0, 3.0, 7.0, 4.0, 9.0, 5.0, 5.0, 0.0, //
    3.0, 3.0, 7.0, 4.0, 9.0, 5.0, 5.0, 0.0, //
    6.0, 6.0, 13.0, 7.0, 15.0, 8.0, 8.0, 0.0, //
    6.0, 6.0, 13.0, 7.0, 15.0, 8.0, 8.0, 0.0, //
    6.0, 6.0, 13.0, 7.0, 15.0, 8.0, 8.0, 0.0, //
    0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
];

#[test]
fn convtranspose_attributes() {
    let axes = [axis(3, 3, 3, 10, 0), axis(3, 3, 2, 8, 0)];
    let by_output_shape: fn(Case) -> Case =
        |case| case.set("strides", ints([3, 2])).set("output_shape", ints([10, 8]));
    let by_output_padding: fn(Case) -> Case =
        |case| case.set("strides", ints([3, 2])).set("output_padding", ints([1, 1]));
    let by_everything: fn(Case) -> Case = |case| {
        case.set("strides", ints([3, 2]))
            .set("output_shape", ints([10, 8]))
            .set("kernel_shape", ints([3, 3]))
            .set("output_padding", ints([1, 1]))
    };
    for set in [by_output_shape, by_output_padding, by_everything] {
        example_3x3(set, axes, &ATTRIBUTES_PLANE).check();
    }
}

#[test]
fn convtranspose_pads() {
    let plane = [
        1.0, 1.0, 3.0, //
        1.0, 1.0, 3.0, //
        7.0, 4.0, 9.0, //
        7.0, 4.0, 9.0, //
        7.0, 4.0, 9.0, //
        13.0, 7.0, 15.0, //
        13.0, 7.0, 15.0,
    ];
    let set = |case: Case| case.set("strides", ints([3, 2])).set("pads", ints([1, 2, 1, 2]));
    example_3x3(set, [axis(3, 3, 3, 7, 1), axis(3, 3, 2, 3, 2)], &plane).check();
}

#[test]
fn convtranspose_dilations() {
    let dilated = Axis { input: 3, kernel: 2, stride: 1, dilation: 2, output: 5, pad_begin: 0 };
    Example {
        set: |case| case.set("dilations", ints([2, 2])),
        x_shape: &[1, 1, 3, 3],
        x: vec![3.0, 8.0, 1.0, 9.0, 5.0, 7.0, 3.0, 2.0, 6.0],
        w_shape: &[1, 1, 2, 2],
        w: vec![7.0, 2.0, 1.0, 9.0],
        axes: vec![dilated; 2],
        groups: 1,
        y: vec![
            21.0, 56.0, 13.0, 16.0, 2.0, //
            63.0, 35.0, 67.0, 10.0, 14.0, //
            24.0, 22.0, 76.0, 76.0, 21.0, //
            9.0, 5.0, 88.0, 45.0, 63.0, //
            3.0, 2.0, 33.0, 18.0, 54.0,
        ],
    }
    .check();
}

#[test]
fn convtranspose_autopad_same() {
    let plane = [
        0.0, 0.0, 1.0, 1.0, 3.0, 2.0, //
        0.0, 0.0, 1.0, 1.0, 3.0, 2.0, //
        3.0, 3.0, 8.0, 5.0, 12.0, 7.0, //
        3.0, 3.0, 7.0, 4.0, 9.0, 5.0, //
        9.0, 9.0, 20.0, 11.0, 24.0, 13.0, //
        6.0, 6.0, 13.0, 7.0, 15.0, 8.0,
    ];
    let set = |case: Case| case.set("auto_pad", text("SAME_UPPER")).set("strides", ints([2, 2]));
    example_3x3(set, [axis(3, 3, 2, 6, 0); 2], &plane).check();
}

#[test]
fn convtranspose_group_2() {
    let second_plane = [
        9.0, 19.0, 30.0, 21.0, 11.0, //
        21.0, 44.0, 69.0, 48.0, 25.0, //
        36.0, 75.0, 117.0, 81.0, 42.0, //
        27.0, 56.0, 87.0, 60.0, 31.0, //
        15.0, 31.0, 48.0, 33.0, 17.0,
    ];
    Example {
        set: |case| case.set("group", int(2)),
        x_shape: &[1, 2, 3, 3],
        x: counting(18),
        w_shape: &[2, 1, 3, 3],
        w: vec![1.0; 18],
        axes: vec![axis(3, 3, 1, 5, 0); 2],
        groups: 2,
        y: [DEFAULT_PLANE, second_plane].concat(),
    }
    .check();
}

/// The output shape of an OpenVINO layer in 2-D, and the pads it implies on every axis.
fn openvino_layer(set: fn(Case) -> Case, input: usize, policy: Policy) -> (Vec<usize>, Vec<(i64, i64)>) {
    let data = [1, 20, input, input];
    let operands =
        Operands::new(TensorType::new(DType::F32, &data), TensorType::new(DType::F32, &[20, 10, 3, 3]));
    let request = set(Case::new(DialectName::Openvino)).request;
    let call = request.read(DialectName::Openvino).unwrap().resolve(&operands, policy).unwrap();
    let pads = call.geometry.axes().iter().map(|axis| (axis.pad_begin, axis.pad_end())).collect();
    (call.output_shape(), pads)
}

fn layer(case: Case, pad: i64, stride: i64, output_padding: i64, auto_pad: &str) -> Case {
    case.set("dilations", ints([1, 1]))
        .set("pads_begin", ints([pad, pad]))
        .set("pads_end", ints([pad, pad]))
        .set("strides", ints([stride, stride]))
        .set("output_padding", ints([output_padding, output_padding]))
        .set("auto_pad", text(auto_pad))
}

#[test]
fn openvino_example_1_upsamples_to_447() {
    for policy in POLICIES {
        let (shape, pads) = openvino_layer(|case| layer(case, 1, 2, 0, "explicit"), 224, policy);
        assert_eq!((shape, pads), (vec![1, 10, 447, 447], vec![(1, 1); 2]));
    }
}

#[test]
fn openvino_example_2_adds_output_padding_to_reach_8() {
    for policy in POLICIES {
        let (shape, pads) = openvino_layer(|case| layer(case, 0, 3, 2, "explicit"), 2, policy);
        assert_eq!((shape, pads), (vec![1, 10, 8, 8], vec![(0, -2); 2]));
    }
}

#[test]
fn openvino_example_3_is_given_450_as_an_input() {
    // Twice the reach of stride 1: what is beyond 226 is zero, at the end.
    for policy in POLICIES {
        let set = |case| layer(case, 1, 1, 0, "valid").output_size([450, 450]);
        let (shape, pads) = openvino_layer(set, 224, policy);
        assert_eq!((shape, pads), (vec![1, 10, 450, 450], vec![(0, 226 - 450); 2]));
    }
}

#[test]
fn onednn_sizes_follow_the_document_s_equation() {
    // output = stride·(input − 1) + output_padding + ((filter − 1)·dilation + 1) − pads_begin − pads_end
    let case = Case::new(DialectName::OnednnGraph)
        .x(&[1, 4, 5, 2], &[1.0; 40])
        .w(&[3, 2, 2, 3], &[1.0; 36])
        .set("strides", ints([2, 3]))
        .set("dilations", ints([2, 1]))
        .set("pads_begin", ints([1, 0]))
        .set("pads_end", ints([2, 1]))
        .set("output_padding", ints([1, 2]));
    let y = case.run(Policy::Spec).unwrap();
    assert_eq!(y.shape(), [1, 2 * 3 + 1 + 5 - 3, 3 * 4 + 2 + 2 - 1, 3]);
}
