//! The operator written the other way round: every input is scattered over the outputs it reaches. It shares nothing
//! with the library but the [`Geometry`], so that both being wrong in the same way is unlikely.

use outstride::{Axis, Geometry};

use super::number::Number;

/// Calls `visit(x, w, y)` for every product of the operator, with positions in row-major canonical tensors
/// `(N, C, in…)`, `(G, C/G, M/G, k…)` and `(N, M, out…)`.
pub(crate) fn for_each_product(geometry: &Geometry, mut visit: impl FnMut(usize, usize, usize)) {
    let axes = geometry.axes();
    let (in_per_group, out_per_group) = (geometry.in_channels_per_group(), geometry.out_channels_per_group());
    let spatial = |size: fn(&Axis) -> usize| axes.iter().map(size).collect::<Vec<_>>();
    let (inputs, kernels, outputs) =
        (spatial(|axis| axis.input), spatial(|axis| axis.kernel), spatial(|axis| axis.output));
    let volume = |sizes: &[usize]| sizes.iter().product::<usize>();

    for i in 0..volume(&inputs) {
        for t in 0..volume(&kernels) {
            let Some(o) = landing(axes, &unravel(i, &inputs), &unravel(t, &kernels)) else { continue };
            let o = ravel(&o, &outputs);
            for n in 0..geometry.batch() {
                for channel in 0..geometry.in_channels() {
                    let group = channel / in_per_group;
                    for m in 0..out_per_group {
                        let x = (n * geometry.in_channels() + channel) * volume(&inputs) + i;
                        let w = (channel * out_per_group + m) * volume(&kernels) + t;
                        let out_channel = group * out_per_group + m;
                        let y = (n * geometry.out_channels() + out_channel) * volume(&outputs) + o;
                        visit(x, w, y);
                    }
                }
            }
        }
    }
}

/// The sums of the operator, bias included, before activation and rounding, in the order of a row-major `(N, M, out…)`.
pub(crate) fn sums<T: Number>(geometry: &Geometry, x: &[T], w: &[T], bias: Option<&[T]>) -> Vec<T::Sum> {
    let mut sums = vec![T::Sum::default(); geometry.output_shape().iter().product()];
    for_each_product(geometry, |x_at, w_at, y_at| {
        sums[y_at] = T::add_product(sums[y_at], x[x_at].wide(), w[w_at].wide());
    });
    if let Some(bias) = bias {
        let volume: usize = geometry.axes().iter().map(|axis| axis.output).product();
        for (position, sum) in sums.iter_mut().enumerate() {
            *sum = T::add(*sum, bias[position / volume % geometry.out_channels()].wide());
        }
    }
    sums
}

/// Where the product of input `i` and kernel element `t` lands, if inside the output.
fn landing(axes: &[Axis], i: &[usize], t: &[usize]) -> Option<Vec<usize>> {
    axes.iter()
        .zip(i.iter().zip(t))
        .map(|(axis, (&i, &t))| {
            let full = i64::try_from(i * axis.stride + t * axis.dilation).ok()?;
            usize::try_from(full - axis.pad_begin).ok().filter(|&o| o < axis.output)
        })
        .collect()
}

pub(crate) fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (axis, &size) in shape.iter().enumerate().rev() {
        index[axis] = position % size;
        position /= size;
    }
    index
}

pub(crate) fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |position, (&i, &size)| position * size + i)
}
