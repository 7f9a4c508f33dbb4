//! Rounding errors are no worse than those of plain summation.

use outstride::{Activation, Isa, Options, Path, Precision, TensorView};

use crate::layers::{Layer, Numbers, PATHS, expected, isas, prepare, prepare_with};

#[test]
fn the_error_stays_within_that_of_plain_summation() {
    let mut numbers = Numbers(0xacc);
    for _ in 0..40 {
        let layer = Layer::draw(&mut numbers, 1);
        let geometry = layer.geometry();
        let x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
        let w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
        let exact = expected(&layer, &x, &w, None, Activation::Identity);
        let kernel: usize = geometry.axes().iter().map(|axis| axis.kernel).product();
        let terms = (geometry.in_channels_per_group() * kernel) as f64;
        // Every partial sum of n products of values below 1 is below n: each addition errs by at most n·ε/2.
        let bound = terms * terms * f64::from(f32::EPSILON) / 2.0 + f64::from(f32::EPSILON);
        let (shape, _) = layer.stored(&geometry.input_shape());
        for isa in isas() {
            for path in PATHS {
                let op = prepare(&layer, &w, None, isa, path);
                let y = op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
                for (&got, &want) in y.data().iter().zip(&exact) {
                    let error = (f64::from(got) - f64::from(want)).abs();
                    assert!(error <= bound, "{isa} {path:?}: error {error:e} above {bound:e}, {layer:?}");
                }
            }
        }
    }
}

/// A layer of many channels: what matrix tiles are for.
fn wide_layer(numbers: &mut Numbers) -> (Layer, Vec<f32>, Vec<f32>) {
    let mut layer = Layer::draw(numbers, 0);
    layer.become_wide(numbers.pick(&[64, 100, 256]), 40);
    let geometry = layer.geometry();
    let x = numbers.reals(geometry.input_shape().iter().product());
    let w = numbers.reals(geometry.filter_shape().iter().product());
    (layer, x, w)
}

/// Also returns the path that was taken.
fn run(layer: &Layer, x: &[f32], w: &[f32], isa: Isa, path: Option<Path>) -> (Vec<f32>, Path) {
    let (shape, _) = layer.stored(&layer.geometry().input_shape());
    let op = prepare(layer, w, None, isa, path);
    let y = op.run(TensorView::from_slice(&shape, x).unwrap()).unwrap();
    (y.data().to_vec(), op.plan(&shape).unwrap().path())
}

/// The root of the mean square of the errors against sums in 64 bits.
fn error(got: &[f32], exact: &[f64]) -> f64 {
    let squares = got.iter().zip(exact).map(|(&got, &exact)| (f64::from(got) - exact).powi(2));
    (squares.sum::<f64>() / exact.len() as f64).sqrt()
}

fn exact(layer: &Layer, x: &[f32], w: &[f32]) -> Vec<f64> {
    let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
    expected(layer, &wide(x), &wide(w), None, Activation::Identity)
}

#[test]
fn every_instruction_set_errs_no_more_than_plain_summation() {
    let mut numbers = Numbers(0x5eed);
    for _ in 0..6 {
        let (layer, x, w) = wide_layer(&mut numbers);
        let exact = exact(&layer, &x, &w);
        // Portable panels are plain sums of rounded products.
        let plain = error(&run(&layer, &x, &w, Isa::Portable, Some(Path::Panel)).0, &exact);
        for isa in isas() {
            for path in PATHS {
                let (y, taken) = run(&layer, &x, &w, isa, path);
                let error = error(&y, &exact);
                // Transforms round once more on the way in and out.
                let most = if taken == Path::Winograd { 1.5 } else { 1.05 };
                assert!(error <= most * plain, "{isa} {path:?}: {error:e}, plain {plain:e}, {layer:?}");
            }
        }
    }
}

#[test]
fn numbers_near_zero_are_not_lost() {
    let mut numbers = Numbers(0xdead);
    for (x_scale, w_scale) in [(-100, 0), (0, -100), (-60, -60), (-45, -30)] {
        let (layer, mut x, mut w) = wide_layer(&mut numbers);
        x.iter_mut().for_each(|value| *value *= 2f32.powi(x_scale));
        w.iter_mut().for_each(|value| *value *= 2f32.powi(w_scale));
        // Sums that read nothing but zeros must stay zero, whatever surrounds them.
        x.iter_mut().take(1000).for_each(|value| *value = 0.0);
        let exact = exact(&layer, &x, &w);
        let terms = layer.in_channels as f64 * 4.0;
        let scale = f64::from(x_scale + w_scale).exp2();
        for isa in isas() {
            for path in PATHS {
                for (got, exact) in run(&layer, &x, &w, isa, path).0.into_iter().zip(&exact) {
                    let bound =
                        terms * f64::from(f32::EPSILON) * scale + f64::from(f32::from_bits(1)) * terms;
                    let error = (f64::from(got) - exact).abs();
                    assert!(error <= bound, "{isa} {path:?}: {got:e} for {exact:e}, {layer:?}");
                }
            }
        }
    }
}

/// Inputs of either sign, and such as come out of a rectifier; of the fewest channels that are transformed to four outputs, too.
#[test]
fn filters_of_three_taps_err_little_more_than_plain_summation() {
    let mut numbers = Numbers(0x3a9);
    for (in_channels, kernel, stride) in [(64, 3, 1), (64, 5, 2), (65, 6, 2), (130, 3, 1), (200, 6, 2)] {
        for least in [-1.0, 0.0] {
            let mut layer = Layer::draw(&mut numbers, 0);
            layer.become_wide(in_channels, 24);
            layer.become_of_kernel(kernel, stride);
            let geometry = layer.geometry();
            let mut x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
            let w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
            x.iter_mut().for_each(|value| *value = value.max(least));
            let exact = exact(&layer, &x, &w);
            let plain = error(&run(&layer, &x, &w, Isa::Portable, Some(Path::Panel)).0, &exact);
            for isa in isas() {
                let (y, taken) = run(&layer, &x, &w, isa, Some(Path::Winograd));
                let error = error(&y, &exact);
                assert_eq!(taken, Path::Winograd);
                assert!(error <= 2.0 * plain, "{isa}: {error:e}, plain {plain:e}, {layer:?}");
            }
        }
    }
}

/// Filters of many weights are transformed in a way of their own, which needs fewer of them.
#[test]
fn large_filters_err_little_more_than_plain_summation() {
    let mut numbers = Numbers(0xb16);
    let mut layer = Layer::draw(&mut numbers, 0);
    layer.become_wide(640, 128);
    let geometry = layer.geometry();
    let x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
    let w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
    let exact = exact(&layer, &x, &w);
    let plain = error(&run(&layer, &x, &w, Isa::Portable, Some(Path::Panel)).0, &exact);
    for isa in isas() {
        let error = error(&run(&layer, &x, &w, isa, Some(Path::Winograd)).0, &exact);
        assert!(error <= 1.25 * plain, "{isa}: {error:e}, plain {plain:e}");
    }
}

#[test]
fn strict_precision_forbids_parts_and_transforms() {
    let (layer, _, w) = wide_layer(&mut Numbers(1));
    let shape = layer.stored(&layer.geometry().input_shape()).0;
    let path_of = |precision, path| {
        let op = prepare_with(&layer, &w, None, &Options { precision, path, ..Default::default() });
        op.plan(&shape).unwrap().path()
    };
    assert_eq!(path_of(Precision::Full, Some(Path::Winograd)), Path::Winograd);
    for path in [None, Some(Path::Tile), Some(Path::Winograd)] {
        assert!(matches!(path_of(Precision::Strict, path), Path::Panel | Path::Pixel), "{path:?}");
    }
    if Isa::best() >= Isa::Amx {
        assert_eq!(path_of(Precision::Full, Some(Path::Tile)), Path::Tile);
    }
}
