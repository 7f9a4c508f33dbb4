//! Minimal filtering computes what plain sums do.

use outstride_kernels::{Filtering, Isa, Kernels, WinogradInput, WinogradOutput, kernels};

#[test]
fn products_of_points_make_the_sums_of_taps() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels) {
        for filtering in Filtering::ALL {
            for axes in 1..=filtering.most_axes() {
                check(kernels, filtering, axes);
            }
        }
    }
}

/// One tile of one channel against the definition.
fn check(kernels: &Kernels<f64>, filtering: Filtering, axes: usize) {
    let lanes = kernels.lanes();
    let (points, taps, outputs) = (filtering.points(), filtering.taps(), filtering.outputs());
    let count = points.pow(axes as u32);
    let inputs: Vec<f64> = (0..count).map(|index| ((index * 7 + 3) % 11) as f64 - 5.0).collect();
    let weights: Vec<f64> = (0..taps.pow(axes as u32)).map(|index| ((index * 5) % 7) as f64 - 3.0).collect();
    let strides: Vec<isize> = (0..axes).rev().map(|axis| points.pow(axis as u32) as isize).collect();
    let tile = [inputs.as_ptr()];
    let input = WinogradInput { filtering, tiles: &tile, strides: &strides, channels: 1, point_len: 1 };
    let mut products = vec![0.0; count];
    // SAFETY: the tile has all its inputs.
    unsafe { kernels.winograd_input(&input, &mut products) };
    for (point, product) in products.iter_mut().enumerate() {
        *product *= (0..weights.len())
            .map(|tap| weights[tap] * coefficient(filtering, axes, point, tap))
            .sum::<f64>();
    }
    let wide: Vec<f64> = products.iter().flat_map(|&product| std::iter::repeat_n(product, lanes)).collect();
    let of_points: Vec<(*const f64, usize)> =
        (0..count).map(|point| (wide[lanes * point..].as_ptr(), lanes)).collect();
    let places: Vec<usize> = (0..outputs.pow(axes as u32)).map(|output| lanes * output).collect();
    let output = WinogradOutput {
        filtering,
        axes,
        points: &of_points,
        places: &places,
        bias: &vec![1.0; lanes],
        rows: None,
    };
    let mut out = vec![f64::NAN; lanes * places.len()];
    // SAFETY: every point has a vector of products, and every output a place for one.
    assert!(unsafe { kernels.winograd_output(&output, &mut out) });
    for (index, columns) in out.chunks_exact(lanes).enumerate() {
        let sum: f64 = (0..weights.len())
            .map(|tap| weights[tap] * inputs[sum_of_digits(index, outputs, tap, taps, points, axes)])
            .sum();
        for &column in columns {
            let error: f64 = column - (sum + 1.0);
            assert!(
                error.abs() < 1e-12,
                "{kernels:?}, {filtering:?}, {axes} axes, output {index}: {column} for {}",
                sum + 1.0
            );
        }
    }
}

fn coefficient(filtering: Filtering, axes: usize, point: usize, tap: usize) -> f64 {
    let digit = |number: usize, base: usize, axis: usize| number / base.pow(axis as u32) % base;
    (0..axes)
        .map(|axis| {
            filtering.weights_of_point(digit(point, filtering.points(), axis))
                [digit(tap, filtering.taps(), axis)]
        })
        .product()
}

/// The number of the input that an output reads at a tap.
fn sum_of_digits(
    output: usize,
    outputs: usize,
    tap: usize,
    taps: usize,
    points: usize,
    axes: usize,
) -> usize {
    let digit = |number: usize, base: usize, axis: usize| number / base.pow(axis as u32) % base;
    (0..axes)
        .map(|axis| (digit(output, outputs, axis) + digit(tap, taps, axis)) * points.pow(axis as u32))
        .sum()
}
