//! The definition of the operator, written for reading. Everything else is tested against it.
//!
//! ```text
//! y[n, g·Mg + m, o] = activation( bias[g·Mg + m]
//!                               + Σ  x[n, g·Cg + c, i] · w[g·Cg + c, m, t]   over c, i, t with  o = i·s + t·d − begin )
//! ```
//!
//! Only products of real inputs and real weights are summed, so a non-finite value reaches exactly the outputs it
//! belongs to.

use outstride_spec::Geometry;

use crate::element::{Element, Wide};
use crate::epilogue::Epilogue;
use crate::error::Error;
use crate::tensor::{TensorView, TensorViewMut};

/// Computes the operator from tensors in canonical order: `x` is `(N, C, in…)`, `w` is `(G, C/G, M/G, k…)`, `y` is
/// `(N, M, out…)`; strides are free, and element types may differ as long as all are floats or all integers.
///
/// ```
/// use outstride::{Axis, Epilogue, Geometry, Tensor, reference};
///
/// let axis = Axis { input: 2, kernel: 2, stride: 3, dilation: 1, output: 5, pad_begin: 0 };
/// let geometry = Geometry::new(1, 1, 1, 1, vec![axis])?;
/// let x = Tensor::from_vec(&[1, 1, 2], vec![0.0f32, 1.0])?;
/// let w = Tensor::from_vec(&[1, 1, 1, 2], vec![f32::INFINITY, 1.0])?;
/// let mut y = Tensor::from_vec(&[1, 1, 5], vec![-1.0f32; 5])?;
/// reference::conv_transpose(&geometry, &Epilogue::default(), x.view(), w.view(), None::<&[f32]>, y.view_mut())?;
/// assert!(y.data()[0].is_nan());
/// assert_eq!(y.data()[1..], [0.0, 0.0, f32::INFINITY, 1.0]);
/// # Ok::<(), outstride::Error>(())
/// ```
pub fn conv_transpose<X, W, B, Y>(
    geometry: &Geometry,
    epilogue: &Epilogue,
    x: TensorView<'_, X>,
    w: TensorView<'_, W>,
    bias: Option<&[B]>,
    mut y: TensorViewMut<'_, Y>,
) -> Result<(), Error>
where
    X: Element,
    W: Element<Wide = X::Wide>,
    B: Element<Wide = X::Wide>,
    Y: Element<Wide = X::Wide>,
{
    check_shapes(geometry, x.shape(), w.shape(), bias.map(<[B]>::len), y.shape())?;
    if y.shape().contains(&0) {
        return Ok(());
    }
    let spatial_output: Vec<usize> = geometry.axes().iter().map(|axis| axis.output).collect();
    let channels = geometry.in_channels_per_group();
    let mut taps = Vec::new();
    for_each_index(&spatial_output, |output| {
        if channels > 0 {
            collect_taps(geometry, output, &x.strides()[2..], &w.strides()[3..], &mut taps);
        }
        for n in 0..geometry.batch() {
            for out_channel in 0..geometry.out_channels() {
                let group = out_channel / geometry.out_channels_per_group();
                let m = out_channel % geometry.out_channels_per_group();
                let mut sum = X::Wide::default();
                for c in 0..channels {
                    let x_base = at(x.offset(), x.strides(), &[n, group * channels + c]);
                    let w_base = at(w.offset(), w.strides(), &[group, c, m]);
                    for tap in &taps {
                        let value = x.data()[x_base.wrapping_add_signed(tap.x)];
                        let weight = w.data()[w_base.wrapping_add_signed(tap.w)];
                        sum = sum.plus_product(value.widen(), weight.widen());
                    }
                }
                if let Some(bias) = bias {
                    sum = sum.plus(bias[out_channel].widen());
                }
                let result = Y::narrow(sum.activate(&epilogue.activation), epilogue.overflow);
                let y_base = at(y.offset(), y.strides(), &[n, out_channel]);
                let position = at(y_base, &y.strides()[2..], output);
                y.data_mut()[position] = result;
            }
        }
    });
    Ok(())
}

/// One (kernel index, input index) pair of all axes together, as distances in memory.
struct Tap {
    x: isize,
    w: isize,
}

/// The taps that feed one output position: the product of the axes' own lists.
fn collect_taps(
    geometry: &Geometry,
    output: &[usize],
    x_strides: &[isize],
    w_strides: &[isize],
    taps: &mut Vec<Tap>,
) {
    taps.clear();
    taps.push(Tap { x: 0, w: 0 });
    for (index, axis) in geometry.axes().iter().enumerate() {
        let of_axis: Vec<Tap> = axis
            .contributions(output[index])
            .map(|(t, i)| Tap { x: i as isize * x_strides[index], w: t as isize * w_strides[index] })
            .collect();
        let outer = std::mem::take(taps);
        taps.extend(outer.iter().flat_map(|outer| {
            of_axis.iter().map(|inner| Tap { x: outer.x + inner.x, w: outer.w + inner.w })
        }));
    }
}

/// The position of an element, given the indices of the leading axes.
fn at(offset: usize, strides: &[isize], index: &[usize]) -> usize {
    let reach: isize = index.iter().zip(strides).map(|(&index, &stride)| index as isize * stride).sum();
    offset.wrapping_add_signed(reach)
}

/// Calls `visit` with every index of a shape, the last axis fastest.
fn for_each_index(shape: &[usize], mut visit: impl FnMut(&[usize])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        visit(&index);
        let Some(axis) = (0..shape.len()).rev().find(|&axis| index[axis] + 1 < shape[axis]) else { return };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn check_shapes(
    geometry: &Geometry,
    x: &[usize],
    w: &[usize],
    bias: Option<usize>,
    y: &[usize],
) -> Result<(), Error> {
    for (tensor, expected, found) in [
        ("the input", geometry.input_shape(), x),
        ("the filter", geometry.filter_shape(), w),
        ("the output", geometry.output_shape(), y),
    ] {
        if expected != found {
            return Err(Error::CanonicalShape { tensor, expected, found: found.to_vec() });
        }
    }
    match bias {
        Some(found) if found != geometry.out_channels() => {
            Err(Error::BiasLength { expected: geometry.out_channels(), found })
        }
        _ => Ok(()),
    }
}
