//! What a call may cost: refused before anything is allocated, and empty tensors are no special case.

use std::sync::Arc;

use outstride::{
    ConvTranspose, Dialect, Error, Limits, Options, Path, Tensor, TensorView, TensorViewMut, jax,
    onednn_graph, onnx, openvino, ort_nhwc,
};

/// One element of memory posing as a tensor of any shape.
fn broadcast<'a>(element: &'a [f32; 1], shape: &[usize]) -> TensorView<'a, f32> {
    TensorView::from_parts(element, 0, shape, &vec![0; shape.len()]).unwrap()
}

fn with_strides(strides: &[i64]) -> onnx::ConvTranspose {
    onnx::ConvTranspose { strides: strides.to_vec(), ..Default::default() }
}

#[test]
fn an_output_beyond_the_limit_is_refused_before_it_is_allocated() {
    let op = ConvTranspose::new(&with_strides(&[1 << 40]), broadcast(&[1.0], &[1, 1, 1]), None).unwrap();
    let refused = op.run(broadcast(&[1.0], &[1, 1, 1 << 10])).unwrap_err();
    let Error::TooManyBytes { what, needed, limit } = refused.clone() else { panic!("{refused}") };
    assert_eq!((what, needed, limit), ("the output", (((1u128 << 10) - 1) * (1 << 40) + 1) * 4, 16 << 30));
    assert!(!refused.is_invalid());
    assert!(refused.to_string().contains("raise `Limits::max_bytes`"), "{refused}");
}

#[test]
fn the_limit_on_bytes_is_exact() {
    let op = ConvTranspose::new(&with_strides(&[1]), broadcast(&[1.0], &[1, 2, 3]), None).unwrap();
    let x = broadcast(&[1.0], &[1, 1, 8]);
    let bytes = 2 * 10 * 4;
    let with = |max_bytes| op.clone().with_limits(Limits { max_bytes, ..Limits::default() });
    assert_eq!(with(bytes).run(x.clone()).unwrap().shape(), [1, 2, 10]);
    assert!(matches!(with(bytes - 1).run(x), Err(Error::TooManyBytes { needed: 80, limit: 79, .. })));
}

#[test]
fn the_limit_on_work_is_exact() {
    let op = ConvTranspose::new(&with_strides(&[1]), broadcast(&[1.0], &[3, 2, 3]), None).unwrap();
    let x = broadcast(&[1.0], &[5, 3, 8]);
    let work = 5 * 3 * 2 * (8 * 3);
    let with = |limit| op.clone().with_limits(Limits { max_multiply_adds: limit, ..Limits::default() });
    assert!(with(work).run(x.clone()).is_ok());
    let refused = with(work - 1).run(x.clone()).unwrap_err();
    assert_eq!(refused, Error::TooMuchWork { needed: work, limit: work - 1 });
    assert!(refused.to_string().contains("raise `Limits::max_multiply_adds`"), "{refused}");

    let mut y = vec![7.0; 5 * 2 * 10];
    let into = TensorViewMut::from_slice(&[5, 2, 10], &mut y).unwrap();
    assert!(matches!(with(work - 1).run_into(x, into), Err(Error::TooMuchWork { .. })));
    assert!(y.iter().all(|&value| value == 7.0), "a refused call wrote");
}

#[test]
fn endless_work_on_a_bearable_output_is_refused() {
    let channels = 1 << 20;
    let op = ConvTranspose::new(&with_strides(&[1]), broadcast(&[1.0], &[channels, 1, 1]), None).unwrap();
    let refused = op.run(broadcast(&[1.0], &[1, channels, 1 << 31])).unwrap_err();
    assert_eq!(refused, Error::TooMuchWork { needed: 1 << 51, limit: 1 << 50 });
}

#[test]
fn a_filter_beyond_the_limit_is_refused_before_it_is_copied() {
    let huge = broadcast(&[1.0], &[1, 1, 1 << 40]);
    let refused = ConvTranspose::new(&with_strides(&[1]), huge, None).unwrap_err();
    assert_eq!(refused, Error::TooManyBytes { what: "the weights", needed: 1 << 42, limit: 16 << 30 });
    let empty = TensorView::<f32>::from_parts(&[], 0, &[0, 1, 1 << 40], &[0; 3]).unwrap();
    let refused = ConvTranspose::new(&with_strides(&[1]), empty, None).unwrap_err();
    assert!(matches!(refused, Error::TooManyBytes { what: "the weights", .. }), "{refused}");
}

#[test]
fn a_filter_of_uncountably_many_elements_is_refused() {
    let uncountable = broadcast(&[1.0], &[1 << 40, 1, 1 << 40]);
    let refused = ConvTranspose::new(&with_strides(&[1]), uncountable, None).unwrap_err();
    assert_eq!(refused.to_string(), "the element count of W exceeds what 64-bit sizes can hold");
}

#[test]
fn an_axis_of_one_element_may_have_any_stride() {
    let strides = [isize::MIN, isize::MAX, isize::MIN];
    let filter = TensorView::from_parts(&[3i32], 0, &[1, 1, 1], &strides).unwrap();
    let x = TensorView::from_parts(&[5i32], 0, &[1, 1, 1], &strides).unwrap();
    let attributes = jax::ConvTranspose { strides: vec![2], ..Default::default() };
    let op = ConvTranspose::new(&attributes, filter, None).unwrap();
    assert_eq!(op.run(x).unwrap().data(), [15, 0]);
}

#[test]
fn a_large_kernel_over_one_input_is_done_at_once() {
    let kernel = 1 << 18;
    let weight = [2i32];
    let filter = TensorView::from_parts(&weight, 0, &[kernel, 1, 1], &[0; 3]).unwrap();
    let attributes =
        jax::ConvTranspose { strides: vec![1], padding: jax::Padding::Valid, ..Default::default() };
    let op = ConvTranspose::new(&attributes, filter, None).unwrap();
    let y = op.run(TensorView::from_slice(&[1, 1, 1], &[3]).unwrap()).unwrap();
    assert_eq!(y.data(), vec![6; kernel]);

    let op = ConvTranspose::new(&with_strides(&[1]), broadcast(&[2.0], &[1, 1, kernel]), None).unwrap();
    assert_eq!(op.run(broadcast(&[3.0], &[1, 1, 1])).unwrap().data(), vec![6.0; kernel]);

    // The outer axis, and channels enough for every path.
    for (groups, channels) in [(1, 1), (1, 20), (20, 20)] {
        let kernel = 1 << 14;
        let attributes = onnx::ConvTranspose { group: groups, ..with_strides(&[1, 1]) };
        let filter = broadcast(&[2.0], &[channels, channels / groups as usize, kernel, 1]);
        let op = ConvTranspose::new(&attributes, filter, None).unwrap();
        let y = op.run(broadcast(&[3.0], &[1, channels, 1, 1])).unwrap();
        let sum = 6.0 * (channels / groups as usize) as f32;
        assert_eq!(y.data(), vec![sum; channels * kernel]);
    }
}

#[test]
fn no_batch_gives_an_empty_output_of_the_right_shape() {
    let op = ConvTranspose::new(&with_strides(&[2]), broadcast(&[1.0], &[2, 3, 3]), Some(&[1.0; 3])).unwrap();
    let y = op.run(TensorView::from_slice(&[0, 2, 4], &[]).unwrap()).unwrap();
    assert_eq!((y.shape(), y.data()), ([0, 3, 9].as_slice(), [].as_slice()));
}

#[test]
fn no_input_channels_give_the_bias_alone() {
    let filter = TensorView::from_slice(&[0, 2, 3], &[]).unwrap();
    let op = ConvTranspose::new(&with_strides(&[2]), filter, Some(&[1.5, -2.0])).unwrap();
    let y = op.run(TensorView::from_slice(&[1, 0, 2], &[]).unwrap()).unwrap();
    assert_eq!(y.shape(), [1, 2, 5]);
    assert_eq!(y.data(), [1.5, 1.5, 1.5, 1.5, 1.5, -2.0, -2.0, -2.0, -2.0, -2.0]);

    let filter = TensorView::<f32>::from_slice(&[0, 2, 3], &[]).unwrap();
    let op = ConvTranspose::new(&openvino::ConvolutionBackpropData::default(), filter, None).unwrap();
    let y = op.run(TensorView::from_slice(&[1, 0, 2], &[]).unwrap()).unwrap();
    assert_eq!((y.shape(), y.data()), ([1, 2, 4].as_slice(), [0.0; 8].as_slice()));
}

#[test]
fn no_input_channels_give_the_bias_alone_in_every_group_and_gap() {
    let attributes = onednn_graph::ConvTranspose {
        strides: vec![6, 2],
        dilations: vec![1, 1],
        pads_begin: vec![6, 3],
        pads_end: vec![0, 0],
        output_padding: vec![3, 14],
        groups: 3,
        data_format: onednn_graph::DataFormat::Ncx,
        filter_format: onednn_graph::FilterFormat::Iox,
        ..Default::default()
    };
    let bias = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let filter = TensorView::from_slice(&[0, 2, 5, 5], &[]).unwrap();
    let op = ConvTranspose::new(&attributes, filter, Some(&bias)).unwrap();
    let y = op.run(TensorView::from_slice(&[1, 0, 3, 5], &[]).unwrap()).unwrap();
    assert_eq!(y.shape(), [1, 6, 14, 24]);
    assert!(y.data().chunks_exact(14 * 24).zip(bias).all(|(plane, bias)| plane.iter().all(|&v| v == bias)));
}

#[test]
fn no_output_channels_give_an_empty_output() {
    let filter = TensorView::<f32>::from_slice(&[2, 0, 3], &[]).unwrap();
    let op = ConvTranspose::new(&with_strides(&[2]), filter, Some(&[])).unwrap();
    let y = op.run(broadcast(&[1.0], &[1, 2, 4])).unwrap();
    assert_eq!((y.shape(), y.data()), ([1, 0, 9].as_slice(), [].as_slice()));
}

#[test]
fn no_spatial_output_gives_an_empty_tensor_where_the_dialect_allows_it() {
    let attributes = onednn_graph::ConvTranspose {
        strides: vec![1],
        dilations: vec![1],
        pads_begin: vec![2],
        pads_end: vec![2],
        ..Default::default()
    };
    let op = ConvTranspose::new(&attributes, broadcast(&[1.0], &[3, 1, 1]), Some(&[4.0])).unwrap();
    let y = op.run(broadcast(&[1.0], &[1, 2, 1])).unwrap();
    assert_eq!((y.shape(), y.data()), ([1, 0, 1].as_slice(), [].as_slice()));
}

#[test]
fn no_spatial_input_leaves_the_bias() {
    let op = ConvTranspose::new(&with_strides(&[1]), broadcast(&[1.0], &[1, 1, 3]), Some(&[4.0])).unwrap();
    let y = op.run(Tensor::from_vec(&[1, 1, 0], vec![]).unwrap().view()).unwrap();
    assert_eq!((y.shape(), y.data()), ([1, 1, 2].as_slice(), [4.0, 4.0].as_slice()));
}

#[test]
fn absurd_shapes_are_planned_or_refused() {
    let mut numbers = 0x5eedu64;
    let mut pick = |choices: &[i64]| {
        numbers ^= numbers << 13;
        numbers ^= numbers >> 7;
        numbers ^= numbers << 17;
        choices[(numbers >> 33) as usize % choices.len()]
    };
    let shape = |first: &[i64], axes: &[i64]| -> Vec<usize> {
        first.iter().chain(axes).map(|&size| size as usize).collect()
    };
    let (mut planned, mut refused) = (0, 0);
    for _ in 0..4000 {
        let rank = pick(&[1, 2, 3]) as usize;
        let mut axes = |choices: &[i64]| -> Vec<i64> { (0..rank).map(|_| pick(choices)).collect() };
        let sizes = [1, 1, 3, 1 << 12, 1 << 20, 1 << 30, 1 << 45, 1 << 56];
        let (strides, dilations) = (axes(&[1, 2, 3, 101, 1 << 30, 1 << 56]), axes(&sizes));
        let (kernel, input, pads) =
            (axes(&[1, 2, 3, 70]), axes(&sizes), axes(&[0, 1, 1 << 20, 1 << 30, 1 << 55]));
        let pads = [pads.clone(), pads].concat();
        let conv = onnx::ConvTranspose { strides, dilations, pads, ..Default::default() };
        let (channels, outputs) = (pick(&[1, 3, 300]), pick(&[1, 40]));
        let filter = shape(&[channels, outputs], &kernel);
        if filter.iter().product::<usize>() > 1 << 18 {
            continue;
        }
        let paths = [
            None,
            Some(Path::Panel),
            Some(Path::Tile),
            Some(Path::Winograd),
            Some(Path::Pixel),
            Some(Path::Fold),
        ];
        let path = paths[pick(&[0, 1, 2, 3, 4, 5]) as usize];
        let options = Options { path, limits: Limits::NONE, ..Default::default() };
        let last = pick(&[0, 1]) == 1;
        let dialect: Arc<dyn Dialect> = if last {
            Arc::new(ort_nhwc::ConvTranspose { conv, ..Default::default() })
        } else {
            Arc::new(conv)
        };
        let op = ConvTranspose::with_options(dialect, broadcast(&[1.0], &filter), None, &options).unwrap();
        let batch = pick(&[1, 2, 1 << 20, 1 << 40]);
        let input = if last {
            shape(&[&[batch], &input[..], &[channels]].concat(), &[])
        } else {
            shape(&[batch, channels], &input)
        };
        match op.plan(&input) {
            Ok(plan) => {
                planned += 1;
                assert!(plan.workspace_bytes() < 1 << 26, "{}\nin {input:?}", plan.explain());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(planned > 100 && refused > 100, "{planned} planned, {refused} refused");
}
