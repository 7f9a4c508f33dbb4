//! The reference engine against the operator written the other way round, and against hostile views and sizes.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use outstride::{
    Axis, ConvTranspose, Element, Epilogue, Error, Geometry, IntegerOverflow, Limits, Tensor, TensorView,
    TensorViewMut, bf16, f16, jax, onednn_graph,
};

use crate::bytes::{integer, one_in, size};
use crate::support::number::Number;
use crate::support::scatter;

/// Small enough that a call within them ends at once, large enough for every problem decoded here.
const LIMITS: Limits = Limits { max_bytes: 1 << 16, max_multiply_adds: 1 << 20 };

/// Packed weights are padded to whole vectors, so preparing may cost more.
const PREPARE_LIMITS: Limits = Limits { max_bytes: 1 << 22, ..LIMITS };

/// Computes decoded problems with the reference engine, directly and through a prepared operator.
pub fn reference(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that run out only end the decoding.
    let _ = decode_and_run(&mut bytes);
}

fn decode_and_run(bytes: &mut Unstructured<'_>) -> Result<()> {
    if one_in(bytes, 4)? {
        return match bytes.int_in_range(0..=2)? {
            0 => hostile_views::<i8>(bytes),
            1 => hostile_views::<f32>(bytes),
            _ => hostile_views::<f64>(bytes),
        };
    }
    let geometry = geometry(bytes)?;
    match bytes.int_in_range(0..=11)? {
        0 => compare::<f32>(bytes, &geometry, &[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]),
        1 => compare::<f64>(bytes, &geometry, &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]),
        2 => compare::<f16>(bytes, &geometry, &[f16::INFINITY, f16::NEG_INFINITY, f16::NAN]),
        3 => compare::<bf16>(bytes, &geometry, &[bf16::INFINITY, bf16::NEG_INFINITY, bf16::NAN]),
        4 => compare::<i8>(bytes, &geometry, &[i8::MIN, i8::MAX]),
        5 => compare::<i16>(bytes, &geometry, &[i16::MIN, i16::MAX]),
        6 => compare::<i32>(bytes, &geometry, &[i32::MIN, i32::MAX]),
        7 => compare::<i64>(bytes, &geometry, &[i64::MIN, i64::MAX]),
        8 => compare::<u8>(bytes, &geometry, &[u8::MAX]),
        9 => compare::<u16>(bytes, &geometry, &[u16::MAX]),
        10 => compare::<u32>(bytes, &geometry, &[u32::MAX]),
        _ => compare::<u64>(bytes, &geometry, &[u64::MAX]),
    }
}

/// One to six axes with every relation of kernel, stride, dilation, crop and output that there is.
fn geometry(bytes: &mut Unstructured<'_>) -> Result<Geometry> {
    let spatial = bytes.int_in_range(1..=6)?;
    let groups = bytes.int_in_range(1..=3)?;
    let batch = bytes.int_in_range(0..=2)?;
    let (in_per_group, out_per_group) = (bytes.int_in_range(0..=2)?, bytes.int_in_range(0..=2)?);
    // What is left of the work after the axes so far, so that many axes are short ones.
    let mut budget = 512;
    let mut axes = Vec::new();
    for _ in 0..spatial {
        let axis = Axis {
            input: bytes.int_in_range(0..=budget.min(5))?,
            kernel: bytes.int_in_range(1..=budget.clamp(1, 5))?,
            stride: bytes.int_in_range(1..=6)?,
            dilation: bytes.int_in_range(1..=4)?,
            output: bytes.int_in_range(0..=budget.min(24))?,
            pad_begin: bytes.int_in_range(-5..=10)?,
        };
        budget /= axis.output.max(axis.input.max(1) * axis.kernel);
        axes.push(axis);
    }
    Ok(Geometry::new(batch, groups, groups * in_per_group, groups * out_per_group, axes)
        .expect("small sizes make a geometry"))
}

/// Values from the bytes, with a few of the type's extreme values among them.
fn values<T: Number>(bytes: &mut Unstructured<'_>, length: usize, extremes: &[T]) -> Result<Vec<T>> {
    let mut values: Vec<T> = (0..length)
        .map(|position| {
            // Once the bytes have run out, values that tell positions apart.
            let byte = if bytes.is_empty() { (position * 7 % 11) as i8 - 3 } else { bytes.arbitrary()? };
            Ok(T::from_byte(byte))
        })
        .collect::<Result<_>>()?;
    if length > 0 && !extremes.is_empty() && one_in(bytes, 3)? {
        let position = bytes.choose_index(length)?;
        values[position] = *bytes.choose(extremes)?;
    }
    Ok(values)
}

fn compare<T: Number>(bytes: &mut Unstructured<'_>, geometry: &Geometry, extremes: &[T]) -> Result<()> {
    let count = |shape: Vec<usize>| shape.into_iter().product::<usize>();
    let x = values(bytes, count(geometry.input_shape()), extremes)?;
    // The independent sums are 128 bits wide, which a product of two extreme 64-bit integers would exceed.
    let w_extremes = if T::DTYPE.is_float() || size_of::<T>() < 8 { extremes } else { &[] };
    let w = values(bytes, count(geometry.filter_shape()), w_extremes)?;
    let bias =
        if bytes.arbitrary()? { Some(values(bytes, geometry.out_channels(), extremes)?) } else { None };
    let overflow = *bytes.choose(&[IntegerOverflow::Saturate, IntegerOverflow::Wrap])?;

    let found = run_reference(geometry, overflow, &x, &w, bias.as_deref());
    let sums = scatter::sums(geometry, &x, &w, bias.as_deref());
    assert_same(geometry, &found, sums.iter().map(|&sum| T::rounded(sum, overflow)));
    if bias.is_none() {
        compare_through_operator(geometry, &x, &w);
    }
    Ok(())
}

fn assert_same<T: Number>(geometry: &Geometry, found: &[T], expected: impl Iterator<Item = T>) {
    for (position, (expected, &found)) in expected.zip(found).enumerate() {
        assert!(expected.same(found), "{geometry}: element {position} is {found:?}, expected {expected:?}");
    }
}

/// Runs into poisoned memory that is longer than the output.
fn run_reference<T: Number>(
    geometry: &Geometry,
    overflow: IntegerOverflow,
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
) -> Vec<T> {
    let view = |shape: &[usize], data| TensorView::from_slice(shape, data).expect("a packed tensor");
    let shape = geometry.output_shape();
    let length: usize = shape.iter().product();
    let mut memory = vec![T::poison(); length + 4];
    let y = TensorViewMut::from_slice(&shape, &mut memory[2..length + 2]).expect("a packed tensor");
    outstride::reference::conv_transpose(
        geometry,
        &Epilogue { overflow, ..Epilogue::default() },
        view(&geometry.input_shape(), x),
        view(&geometry.filter_shape(), w),
        bias,
        y,
    )
    .expect("shapes that agree with their geometry");
    let (before, rest) = memory.split_at(2);
    let (y, after) = rest.split_at(length);
    assert!(before.iter().chain(after).all(|&guard| guard == T::poison()), "wrote outside the output");
    y.to_vec()
}

/// The same geometry through the dialect that can spell it: JAX any crop, oneDNN groups.
fn compare_through_operator<T: Number>(geometry: &Geometry, x: &[T], w: &[T]) {
    let axes = geometry.axes();
    let spatial = axes.len();
    let strides = axes.iter().map(|axis| axis.stride as i64).collect();
    let dilations = axes.iter().map(|axis| axis.dilation as i64).collect();
    let dialect: Arc<dyn outstride::Dialect> = if geometry.groups() == 1 {
        let letters = &"ABDEFG"[..spatial];
        let data = format!("NC{letters}");
        Arc::new(jax::ConvTranspose {
            strides,
            rhs_dilation: dilations,
            padding: jax::Padding::Explicit(
                axes.iter().map(|axis| (axis.pad_begin, axis.pad_end())).collect(),
            ),
            dimension_numbers: Some(jax::DimensionNumbers {
                lhs: data.clone(),
                rhs: format!("OI{letters}"),
                out: data,
            }),
            transpose_kernel: true,
            use_consistent_padding: true,
        })
    } else {
        if ![f32::DTYPE, f16::DTYPE, bf16::DTYPE].contains(&T::DTYPE)
            || axes.iter().any(|axis| axis.pad_begin < 0)
        {
            return;
        }
        Arc::new(onednn_graph::ConvTranspose {
            strides,
            dilations,
            pads_begin: axes.iter().map(|axis| axis.pad_begin).collect(),
            pads_end: axes.iter().map(|axis| axis.pad_end().max(0)).collect(),
            output_padding: axes.iter().map(|axis| (-axis.pad_end()).max(0)).collect(),
            groups: geometry.groups() as i64,
            data_format: onednn_graph::DataFormat::Ncx,
            filter_format: onednn_graph::FilterFormat::Iox,
            ..Default::default()
        })
    };
    let filter_shape: Vec<usize> = [geometry.in_channels(), geometry.out_channels_per_group()]
        .into_iter()
        .chain(axes.iter().map(|axis| axis.kernel))
        .collect();
    let filter = TensorView::from_slice(&filter_shape, w).expect("a packed tensor");
    let input_shape = geometry.input_shape();
    let input = TensorView::from_slice(&input_shape, x).expect("a packed tensor");
    let op = ConvTranspose::from_dialect(dialect, filter, None, PREPARE_LIMITS).expect("a valid filter");
    let op = op.with_limits(LIMITS);
    let call = op.resolve(&input_shape).expect("a valid call");
    assert_eq!(&call.geometry, geometry);
    let found = op.run(input).expect("a call within the limits");
    assert_eq!(found.shape(), geometry.output_shape());
    let sums = scatter::sums(geometry, x, w, None);
    assert_same(geometry, found.data(), sums.iter().map(|&sum| T::rounded(sum, call.overflow)));
}

/// Views of a little memory with any shape, strides and offset: whatever is not refused must be computed in bounded
/// time and memory, and a broadcast or reversed view must give what a copy of it gives.
fn hostile_views<T: Number>(bytes: &mut Unstructured<'_>) -> Result<()> {
    let memory: Vec<T> = (0..32).map(|position| T::from_byte((position * 5 % 13) as i8 - 6)).collect();
    let spatial = bytes.int_in_range(1..=3)?;
    let dialect = hostile_attributes(bytes, spatial)?;
    let Some(filter) = hostile_view(bytes, &memory, spatial + 2)? else { return Ok(()) };
    let Some(x) = hostile_view(bytes, &memory, spatial + 2)? else { return Ok(()) };
    let op = match ConvTranspose::from_dialect(Arc::new(dialect.clone()), filter.clone(), None, LIMITS) {
        Ok(op) => op,
        Err(error) => {
            check_error(&error);
            return Ok(());
        }
    };
    match op.run(x.clone()) {
        Err(error) => check_error(&error),
        Ok(y) => {
            let call = op.resolve(x.shape()).expect("a call that ran resolves");
            assert_eq!(y.shape(), call.output_shape());
            assert!(!op.plan(x.shape()).expect("a call that ran has a plan").explain().is_empty());
            if let (Some(x), Some(filter)) = (packed(&x), packed(&filter)) {
                let op =
                    ConvTranspose::new(&dialect, filter.view(), None).expect("the copy of a valid filter");
                assert_eq!(op.run(x.view()).expect("the copy of a valid call"), y);
            }
        }
    }
    Ok(())
}

fn hostile_attributes(bytes: &mut Unstructured<'_>, spatial: usize) -> Result<jax::ConvTranspose> {
    let pair = |bytes: &mut Unstructured<'_>| Ok((integer(bytes)?, integer(bytes)?));
    Ok(jax::ConvTranspose {
        strides: (0..spatial).map(|_| small_or_huge(bytes)).collect::<Result<_>>()?,
        rhs_dilation: (0..spatial).map(|_| small_or_huge(bytes)).collect::<Result<_>>()?,
        padding: match bytes.int_in_range(0..=2)? {
            0 => jax::Padding::Same,
            1 => jax::Padding::Valid,
            _ => jax::Padding::Explicit((0..spatial).map(|_| pair(bytes)).collect::<Result<_>>()?),
        },
        dimension_numbers: None,
        transpose_kernel: bytes.arbitrary()?,
        use_consistent_padding: bytes.arbitrary()?,
    })
}

fn check_error(error: &Error) {
    assert!(!error.to_string().is_empty());
    let refused_for_its_cost = matches!(error, Error::TooManyBytes { .. } | Error::TooMuchWork { .. });
    assert_eq!(error.is_invalid(), !refused_for_its_cost, "{error}");
}

fn small_or_huge(bytes: &mut Unstructured<'_>) -> Result<i64> {
    if one_in(bytes, 4)? { integer(bytes) } else { bytes.int_in_range(1..=4) }
}

fn hostile_view<'a, T>(
    bytes: &mut Unstructured<'_>,
    memory: &'a [T],
    rank: usize,
) -> Result<Option<TensorView<'a, T>>> {
    let mut shape = Vec::new();
    let mut strides = Vec::new();
    for _ in 0..rank {
        shape.push(if one_in(bytes, 8)? { size(bytes)? } else { bytes.int_in_range(1..=3)? });
        strides.push(match bytes.int_in_range(0..=7)? {
            0..=5 => bytes.int_in_range(-3..=3)?,
            6 => 0,
            _ => bytes.arbitrary()?,
        });
    }
    let offset = if one_in(bytes, 8)? { size(bytes)? } else { bytes.int_in_range(0..=memory.len())? };
    Ok(TensorView::from_parts(memory, offset, &shape, &strides).ok())
}

/// A row-major copy, unless it would be a large one.
fn packed<T: Number>(view: &TensorView<'_, T>) -> Option<Tensor<T>> {
    let shape = view.shape();
    let length = shape.iter().try_fold(1usize, |length, &size| length.checked_mul(size))?;
    if length > 1 << 12 {
        return None;
    }
    let elements =
        (0..length).map(|position| *view.get(&scatter::unravel(position, shape)).expect("an element"));
    Tensor::from_vec(shape, elements.collect()).ok()
}
