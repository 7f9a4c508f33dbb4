//! One problem, spelled in every dialect that can say it, gives the same values everywhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use outstride::{
    Axis, ConvTranspose, Dialect, DialectName, Geometry, IntegerOverflow, Limits, TensorView, jax,
    onednn_graph, onnx, openvino, ort_nhwc, tensorflow, torch,
};
use proptest::prelude::*;

use crate::support::generate::Problem;
use crate::support::relayout::{channels_last, flip, permute, spatial_first, unpermute};
use crate::support::run::{self, assert_same};

/// An axis in terms that all dialects share.
#[derive(Clone, Debug)]
struct SharedAxis {
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    begin: i64,
    end: i64,
    /// Additional outputs at the end, fewer than the stride.
    extra: i64,
}

impl SharedAxis {
    fn effective_kernel(&self) -> i64 {
        ((self.kernel - 1) * self.dilation + 1) as i64
    }

    fn full(&self) -> i64 {
        ((self.input - 1) * self.stride) as i64 + self.effective_kernel()
    }

    fn output(&self) -> i64 {
        self.full() - self.begin - self.end + self.extra
    }

    fn with_style(self, style: Style) -> Self {
        let overhang = self.effective_kernel() - self.stride as i64;
        match style {
            Style::Free => self,
            Style::Symmetric => {
                SharedAxis { end: self.begin.min(self.end), begin: self.begin.min(self.end), ..self }
            }
            Style::Unpadded => SharedAxis { begin: 0, end: 0, ..self },
            Style::Same => {
                let total = overhang.max(0);
                SharedAxis { begin: total / 2, end: total - total / 2, extra: (-overhang).max(0), ..self }
            }
        }
    }
}

/// Which crops a problem has, because some dialects can write some crops only.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Style {
    Free,
    Symmetric,
    Unpadded,
    /// Output size input × stride, the odd element at the end.
    Same,
}

#[derive(Clone, Debug)]
struct Shared {
    batch: usize,
    groups: usize,
    in_per_group: usize,
    out_per_group: usize,
    style: Style,
    axes: Vec<SharedAxis>,
}

fn shared_axes() -> impl Strategy<Value = SharedAxis> {
    (1usize..=4, 1usize..=4, 1usize..=4, 1usize..=3, 0i64..=3, 0i64..=3, 0i64..=3).prop_map(
        |(input, kernel, stride, dilation, begin, end, extra)| {
            let mut axis = SharedAxis { input, kernel, stride, dilation, begin: 0, end: 0, extra: 0 };
            axis.begin = begin.min(axis.full() - 1);
            axis.end = end.min(axis.full() - 1 - axis.begin);
            axis.extra = extra.min(stride as i64 - 1);
            axis
        },
    )
}

fn shared() -> impl Strategy<Value = Shared> {
    let style = prop::sample::select(vec![Style::Free, Style::Symmetric, Style::Unpadded, Style::Same]);
    let axes = (1usize..=3).prop_flat_map(|spatial| prop::collection::vec(shared_axes(), spatial));
    let channels = (1usize..=2, prop_oneof![2 => Just(1usize), 1 => 2usize..=3], 1usize..=3, 1usize..=3);
    (channels, style, axes).prop_map(|((batch, groups, in_per_group, out_per_group), style, axes)| Shared {
        batch,
        groups,
        in_per_group,
        out_per_group,
        style,
        axes: axes.into_iter().map(|axis| axis.with_style(style)).collect(),
    })
}

impl Shared {
    fn each<T>(&self, number: impl Fn(&SharedAxis) -> T) -> Vec<T> {
        self.axes.iter().map(number).collect()
    }

    fn geometry(&self) -> Geometry {
        let axes = self.each(|axis| Axis {
            input: axis.input,
            kernel: axis.kernel,
            stride: axis.stride,
            dilation: axis.dilation,
            output: axis.output() as usize,
            pad_begin: axis.begin,
        });
        let (inputs, outputs) = (self.groups * self.in_per_group, self.groups * self.out_per_group);
        Geometry::new(self.batch, self.groups, inputs, outputs, axes).unwrap()
    }

    /// `(C, M/G, k…)`
    fn filter_shape(&self) -> Vec<usize> {
        [vec![self.groups * self.in_per_group, self.out_per_group], self.each(|axis| axis.kernel)].concat()
    }
}

/// A problem in one dialect's words and layouts.
struct Spelling {
    dialect: Arc<dyn Dialect>,
    /// Which canonical axis each axis of data and output is.
    data_order: Vec<usize>,
    filter_shape: Vec<usize>,
    filter: Vec<f32>,
    has_bias: bool,
}

/// Spells a problem in the ways of one family of dialects.
type Family = fn(&Shared, &[f32]) -> Vec<Spelling>;

fn spellings(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    let mut families: Vec<Family> = vec![onnx_family, onednn_calls, openvino_calls, torch_calls];
    if shared.groups == 1 {
        families.extend([tensorflow_calls as Family, jax_calls]);
    }
    families.into_iter().flat_map(|family| family(shared, w)).collect()
}

fn channels_first(spatial: usize) -> Vec<usize> {
    (0..spatial + 2).collect()
}

fn strides(shared: &Shared) -> Vec<i64> {
    shared.each(|axis| axis.stride as i64)
}

fn dilations(shared: &Shared) -> Vec<i64> {
    shared.each(|axis| axis.dilation as i64)
}

/// Whether `SAME` of the dialects that never pad outwards reaches input × stride.
fn same_is_reached_by_cropping(shared: &Shared) -> bool {
    shared.style == Style::Same && shared.axes.iter().all(|axis| axis.extra == 0)
}

fn onnx_family(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    let written = onnx::ConvTranspose {
        strides: strides(shared),
        dilations: dilations(shared),
        group: shared.groups as i64,
        pads: [shared.each(|axis| axis.begin), shared.each(|axis| axis.end)].concat(),
        output_padding: shared.each(|axis| axis.extra),
        ..Default::default()
    };
    let mut forms = vec![written.clone()];
    if same_is_reached_by_cropping(shared) {
        let same =
            onnx::ConvTranspose { auto_pad: onnx::AutoPad::SameUpper, pads: vec![], ..written.clone() };
        forms.push(onnx::ConvTranspose { output_shape: shared.each(|axis| axis.output()), ..same.clone() });
        forms.push(same);
    }
    let spatial = shared.axes.len();
    let of = |dialect: Arc<dyn Dialect>, data_order| Spelling {
        dialect,
        data_order,
        filter_shape: shared.filter_shape(),
        filter: w.to_vec(),
        has_bias: true,
    };
    forms
        .into_iter()
        .flat_map(|conv| {
            let nhwc = ort_nhwc::ConvTranspose { conv: conv.clone(), ..Default::default() };
            [of(Arc::new(conv), channels_first(spatial)), of(Arc::new(nhwc), channels_last(spatial))]
        })
        .collect()
}

fn onednn_calls(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    use onednn_graph::{AutoPad, DataFormat, FilterFormat};
    let spatial = shared.axes.len();
    let mut spellings = Vec::new();
    for (data_format, data_order) in
        [(DataFormat::Ncx, channels_first(spatial)), (DataFormat::Nxc, channels_last(spatial))]
    {
        for (filter_format, filter_order) in [
            (FilterFormat::Iox, channels_first(spatial)),
            (FilterFormat::Oix, [vec![1, 0], (2..2 + spatial).collect()].concat()),
            (FilterFormat::Xio, spatial_first(spatial, [0, 1])),
            (FilterFormat::Xoi, spatial_first(spatial, [1, 0])),
        ] {
            let auto_pads: &[AutoPad] = if same_is_reached_by_cropping(shared) {
                &[AutoPad::None, AutoPad::SameUpper]
            } else {
                &[AutoPad::None]
            };
            for &auto_pad in auto_pads {
                let (filter_shape, filter) = permute(w, &shared.filter_shape(), &filter_order);
                let call = onednn_graph::ConvTranspose {
                    strides: strides(shared),
                    dilations: dilations(shared),
                    pads_begin: shared.each(|axis| axis.begin),
                    pads_end: shared.each(|axis| axis.end),
                    output_padding: shared.each(|axis| axis.extra),
                    groups: shared.groups as i64,
                    auto_pad,
                    data_format,
                    filter_format,
                    ..Default::default()
                };
                let data_order = data_order.clone();
                spellings.push(Spelling {
                    dialect: Arc::new(call),
                    data_order,
                    filter_shape,
                    filter,
                    has_bias: true,
                });
            }
        }
    }
    spellings
}

fn openvino_calls(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    let spatial = shared.axes.len();
    let written = openvino::ConvolutionBackpropData {
        strides: strides(shared),
        dilations: dilations(shared),
        pads_begin: shared.each(|axis| axis.begin),
        pads_end: shared.each(|axis| axis.end),
        output_padding: shared.each(|axis| axis.extra),
        ..Default::default()
    };
    let mut forms = vec![written.clone()];
    if same_is_reached_by_cropping(shared) {
        forms.push(openvino::ConvolutionBackpropData {
            // OpenVINO's lower crops the odd element where everybody else's upper does.
            auto_pad: openvino::AutoPad::SameLower,
            output_shape: Some(shared.each(|axis| axis.output())),
            ..written
        });
    }
    let of = |dialect: Arc<dyn Dialect>, filter_shape| Spelling {
        dialect,
        data_order: channels_first(spatial),
        filter_shape,
        filter: w.to_vec(),
        has_bias: false,
    };
    let mut spellings = Vec::new();
    for conv in forms {
        let grouped =
            [vec![shared.groups, shared.in_per_group], shared.filter_shape()[1..].to_vec()].concat();
        if shared.groups == 1 {
            spellings.push(of(Arc::new(conv.clone()), shared.filter_shape()));
        }
        spellings.push(of(Arc::new(openvino::GroupConvolutionBackpropData(conv)), grouped));
    }
    spellings
}

fn torch_calls(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    if shared.axes.iter().any(|axis| axis.begin != axis.end) {
        return vec![];
    }
    let call = torch::ConvTranspose {
        stride: strides(shared),
        dilation: dilations(shared),
        padding: shared.each(|axis| axis.begin),
        output_padding: shared.each(|axis| axis.extra),
        groups: shared.groups as i64,
        ..Default::default()
    };
    let sized = torch::ConvTranspose {
        output_padding: vec![],
        output_size: Some(shared.each(|axis| axis.output())),
        ..call.clone()
    };
    [call, sized]
        .into_iter()
        .map(|call| Spelling {
            dialect: Arc::new(call),
            data_order: channels_first(shared.axes.len()),
            filter_shape: shared.filter_shape(),
            filter: w.to_vec(),
            has_bias: true,
        })
        .collect()
}

fn tensorflow_calls(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    use tensorflow::{DataFormat, Padding};
    let spatial = shared.axes.len();
    let (filter_shape, filter) = permute(w, &shared.filter_shape(), &spatial_first(spatial, [1, 0]));
    let mut spellings = Vec::new();
    for (data_format, data_order) in [
        (DataFormat::ChannelsLast, channels_last(spatial)),
        (DataFormat::ChannelsFirst, channels_first(spatial)),
    ] {
        let mut paddings = Vec::new();
        if shared.style == Style::Unpadded {
            paddings.push(Padding::Valid);
        }
        if shared.style == Style::Same {
            paddings.push(Padding::Same);
        }
        if spatial == 2 {
            let canonical = [vec![(0, 0); 2], shared.each(|axis| (axis.begin, axis.end))].concat();
            paddings.push(Padding::Explicit(data_order.iter().map(|&axis| canonical[axis]).collect()));
        }
        let canonical: Vec<i64> = shared.geometry().output_shape().iter().map(|&size| size as i64).collect();
        for padding in paddings {
            let call = tensorflow::ConvTranspose {
                output_shape: data_order.iter().map(|&axis| canonical[axis]).collect(),
                strides: strides(shared),
                dilations: dilations(shared),
                padding,
                data_format,
                ..Default::default()
            };
            spellings.push(Spelling {
                dialect: Arc::new(call),
                data_order: data_order.clone(),
                filter_shape: filter_shape.clone(),
                filter: filter.clone(),
                has_bias: false,
            });
        }
    }
    spellings
}

fn jax_calls(shared: &Shared, w: &[f32]) -> Vec<Spelling> {
    let spatial = shared.axes.len();
    let reach = |axis: &SharedAxis| axis.effective_kernel() - 1;
    let mut paddings = vec![
        (jax::Padding::Explicit(shared.each(|axis| (axis.begin, axis.end - axis.extra))), true),
        (
            jax::Padding::Explicit(
                shared.each(|axis| (reach(axis) - axis.begin, reach(axis) - axis.end + axis.extra)),
            ),
            false,
        ),
    ];
    if shared.style == Style::Same {
        paddings.push((jax::Padding::Same, false));
    }
    let mut spellings = Vec::new();
    for (padding, use_consistent_padding) in paddings {
        for transpose_kernel in [false, true] {
            let channels = if transpose_kernel { [1, 0] } else { [0, 1] };
            let (filter_shape, mut filter) =
                permute(w, &shared.filter_shape(), &spatial_first(spatial, channels));
            if !transpose_kernel {
                filter = flip(&filter, &filter_shape, 0..spatial);
            }
            let call = jax::ConvTranspose {
                strides: strides(shared),
                rhs_dilation: dilations(shared),
                padding: padding.clone(),
                transpose_kernel,
                use_consistent_padding,
                ..Default::default()
            };
            spellings.push(Spelling {
                dialect: Arc::new(call),
                data_order: channels_last(spatial),
                filter_shape,
                filter,
                has_bias: false,
            });
        }
    }
    spellings
}

fn check(shared: &Shared, seed: u64) -> BTreeSet<DialectName> {
    let geometry = shared.geometry();
    let with_bias = Problem::<f32>::new(geometry.clone(), seed);
    let without = Problem { bias: vec![0.0; with_bias.bias.len()], ..with_bias.clone() };
    let mut spoken = BTreeSet::new();
    for spelling in spellings(shared, &with_bias.w) {
        let what = format!("{:?}", spelling.dialect);
        let (problem, bias) =
            if spelling.has_bias { (&with_bias, Some(with_bias.bias.as_slice())) } else { (&without, None) };
        let filter = TensorView::from_slice(&spelling.filter_shape, &spelling.filter).unwrap();
        let op = ConvTranspose::from_dialect(spelling.dialect.clone(), filter, bias, Limits::default())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let (shape, x) = permute(&problem.x, &geometry.input_shape(), &spelling.data_order);
        let y = op
            .run(TensorView::from_slice(&shape, &x).unwrap())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let (shape, y) = unpermute(y.data(), y.shape(), &spelling.data_order);
        assert_eq!(shape, geometry.output_shape(), "{what}");
        assert_same(&what, &geometry, &y, &run::expected(problem, IntegerOverflow::Saturate));
        spoken.insert(spelling.dialect.name());
    }
    spoken
}

proptest! {
    #[test]
    fn dialects_that_mean_the_same_compute_the_same(shared in shared(), seed: u64) {
        check(&shared, seed);
    }
}

#[test]
fn a_problem_without_crops_can_be_said_in_every_dialect() {
    let axis =
        |input, kernel, stride| SharedAxis { input, kernel, stride, dilation: 2, begin: 0, end: 0, extra: 1 };
    for axes in [
        vec![axis(3, 2, 2)],
        vec![axis(2, 3, 2), axis(3, 1, 4)],
        vec![axis(2, 2, 2), axis(1, 3, 2), axis(2, 1, 3)],
    ] {
        let shared =
            Shared { batch: 2, groups: 1, in_per_group: 3, out_per_group: 2, style: Style::Unpadded, axes };
        assert_eq!(check(&shared, 7), BTreeSet::from(DialectName::ALL));
    }
}
