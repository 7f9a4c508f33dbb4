//! Outputs too large for the caches, which are written past them line by line where that can be.

use std::sync::Arc;

use outstride::{Activation, Element, TensorView, TensorViewMut, bf16};

use crate::layers::{Layer, Numbers, Scoped, expected, isas, nearest, prepare};

fn check<T: Element<Wide = f64>>(size: usize, groups: usize, in_channels: usize) {
    let mut numbers = Numbers(0x57);
    let mut layer = Layer::draw(&mut numbers, 0);
    layer.become_large(size, groups, in_channels, 32);
    let geometry = layer.geometry();
    let x: Vec<T> = numbers.values(geometry.input_shape().iter().product());
    let w: Vec<T> = numbers.values(geometry.filter_shape().iter().product());
    let bias: Vec<T> = numbers.values(layer.out_channels);
    let expected = expected(&layer, &x, &w, Some(&bias), Activation::Relu);
    assert!(size_of_val(expected.as_slice()) >= 1 << 25, "it is not large");
    let (x_shape, _) = layer.stored(&geometry.input_shape());
    let (y_shape, _) = layer.stored(&geometry.output_shape());
    let mut memory: Vec<T> = vec![nearest(-77.0); expected.len() + 64];
    // From the begin of a line, and from within one.
    let aligned = memory.as_ptr().align_offset(64);
    for begin in [aligned, aligned + 3] {
        for isa in isas() {
            let op = prepare(&layer, &w, Some(&bias), isa, None).with_activation(Activation::Relu);
            let op = op.with_executor(Arc::new(Scoped(2)));
            memory.fill(nearest(-77.0));
            let y = &mut memory[begin..begin + expected.len()];
            let view = TensorViewMut::from_slice(&y_shape, y).unwrap();
            op.run_into(TensorView::from_slice(&x_shape, &x).unwrap(), view).unwrap();
            let differs = memory[begin..].iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "{} on {isa} from {begin} on", T::DTYPE);
        }
    }
}

#[test]
fn large_outputs_equal_the_reference() {
    check::<f32>(256, 1, 8);
    check::<f32>(256, 32, 32);
    check::<bf16>(364, 1, 8);
}
