//! The number of threads changes nothing, not even the last bit.

use std::sync::Arc;

use outstride::TensorView;

use crate::layers::{Layer, Numbers, PATHS, Scoped, isas, prepare};

#[test]
fn results_are_the_same_bits_for_every_number_of_threads() {
    let mut numbers = Numbers(0xd1ce);
    for _ in 0..60 {
        let layer = Layer::draw(&mut numbers, 1);
        let geometry = layer.geometry();
        let mut x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
        let mut w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
        // What is not finite is summed in a way of its own, which must not reach its neighbours either.
        match numbers.below(4) {
            0 => *numbers.one_of(&mut x) = f32::INFINITY,
            1 => *numbers.one_of(&mut w) = f32::NEG_INFINITY,
            _ => (),
        }
        let (shape, _) = layer.stored(&geometry.input_shape());
        for isa in isas() {
            for path in PATHS {
                let op = prepare(&layer, &w, None, isa, path);
                let run = |threads: usize| {
                    let op = op.clone().with_executor(Arc::new(Scoped(threads)));
                    op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap()
                };
                let alone = run(1);
                for threads in [1, 2, 3, 8] {
                    let both = run(threads);
                    let differs =
                        both.data().iter().zip(alone.data()).position(|(a, b)| a.to_bits() != b.to_bits());
                    if let Some(at) = differs {
                        let (got, expected) = (both.data()[at], alone.data()[at]);
                        panic!(
                            "{threads} threads, {isa} {path:?}: {got:e} for {expected:e} at {at}, {layer:?}"
                        );
                    }
                }
            }
        }
    }
}
