//! The operator is the adjoint of a plain convolution: `⟨conv(y), x⟩ = ⟨y, convT(x)⟩` for all x and y.

use outstride::Geometry;
use proptest::prelude::*;

use crate::support::generate::{Problem, geometries, values};
use crate::support::run::{SATURATE, reference};
use crate::support::scatter::{ravel, unravel};

/// The plain, strided, dilated, grouped convolution that maps outputs of the geometry back to its inputs: every input
/// position gathers the outputs under its kernel, where outputs outside the tensor count as zero.
fn plain_convolution(geometry: &Geometry, y: &[i64], w: &[i64]) -> Vec<i64> {
    let axes = geometry.axes();
    let kernel_shape: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
    let kernel_volume: usize = kernel_shape.iter().product();
    let (input_shape, output_shape) = (geometry.input_shape(), geometry.output_shape());
    let (in_per_group, out_per_group) = (geometry.in_channels_per_group(), geometry.out_channels_per_group());
    let gather = |position: usize| -> i64 {
        let index = unravel(position, &input_shape);
        let (batch, channel) = (index[0], index[1]);
        let mut sum = 0;
        for m in 0..out_per_group {
            for t in 0..kernel_volume {
                let mut from = vec![batch, channel / in_per_group * out_per_group + m];
                for (axis, (i, t)) in axes.iter().zip(index[2..].iter().zip(unravel(t, &kernel_shape))) {
                    let place = (i * axis.stride + t * axis.dilation) as i64 - axis.pad_begin;
                    from.extend(usize::try_from(place).ok().filter(|&place| place < axis.output));
                }
                if from.len() == output_shape.len() {
                    let weight = w[(channel * out_per_group + m) * kernel_volume + t];
                    sum += y[ravel(&from, &output_shape)] * weight;
                }
            }
        }
        sum
    };
    (0..input_shape.iter().product()).map(gather).collect()
}

fn dot(a: &[i64], b: &[i64]) -> i64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

proptest! {
    #[test]
    fn it_is_the_adjoint_of_a_plain_convolution(geometry in geometries(), seed: u64) {
        let mut problem = Problem::<i64>::new(geometry.clone(), seed);
        problem.bias.fill(0);
        let y: Vec<i64> = values(!seed, geometry.output_shape().iter().product());
        let forward = plain_convolution(&geometry, &y, &problem.w);
        let transposed = reference(&problem, &SATURATE);
        prop_assert_eq!(dot(&forward, &problem.x), dot(&y, &transposed));
    }
}

#[test]
fn the_plain_convolution_is_the_one_everybody_knows() {
    let axis = outstride::Axis { input: 3, kernel: 3, stride: 2, dilation: 1, output: 7, pad_begin: 0 };
    let geometry = Geometry::new(1, 1, 1, 1, vec![axis]).unwrap();
    let y = [1, 2, 3, 4, 5, 6, 7];
    assert_eq!(plain_convolution(&geometry, &y, &[1, 10, 100]), [321, 543, 765]);
}
