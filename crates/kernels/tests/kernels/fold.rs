//! Rows of products that are added up.

use outstride_kernels::{FoldTap, FoldedRows, Isa, Real, kernels};

const CHANNELS: usize = 3;
const CHANNEL_STRIDE: usize = 500;
const ROWS: [usize; 2] = [7, 110];
const PITCH: usize = 50;

/// Checks rows against the definition, with products around them that belong to nobody.
fn check<T: Real>(len: usize, outputs: usize, firsts: &[isize]) {
    let mut products: Vec<f64> =
        (0..CHANNELS * CHANNEL_STRIDE).map(|index| (index % 19) as f64 - 9.0).collect();
    let taps: Vec<FoldTap> =
        firsts.iter().enumerate().map(|(tap, &first)| FoldTap { products: tap * 60, first }).collect();
    let place = |channel: usize, row: usize, tap: &FoldTap| channel * CHANNEL_STRIDE + row + tap.products;
    let belongs = |index: usize| {
        let mut rows = (0..CHANNELS).flat_map(|channel| ROWS.map(|row| (channel, row)));
        rows.any(|(channel, row)| {
            taps.iter().any(|tap| (place(channel, row, tap)..).take(len).any(|at| at == index))
        })
    };
    for (index, product) in products.iter_mut().enumerate() {
        if !belongs(index) {
            *product = f64::NAN;
        }
    }
    let bias = [0.0, 100.0, 200.0];
    let narrow = |values: &[f64]| values.iter().map(|&value| T::from_f64(value)).collect::<Vec<T>>();
    let (all, biases) = (narrow(&products), narrow(&bias));
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<T>) {
        let rows = FoldedRows {
            products: &all,
            channel_stride: CHANNEL_STRIDE,
            rows: &ROWS,
            taps: &taps,
            len,
            bias: &biases,
            outputs,
            pitch: PITCH,
        };
        let untouched = T::from_f64(-77.0);
        let mut out = vec![untouched; CHANNELS * PITCH];
        assert!(kernels.fold(&rows, &mut out), "{kernels:?}, {len} products, {outputs} outputs, {firsts:?}");
        for (index, &value) in out.iter().enumerate() {
            let (channel, output) = (index / PITCH, index % PITCH);
            let expected = if output < outputs {
                let met = taps.iter().filter_map(|tap| {
                    let at = usize::try_from(output as isize - tap.first).ok().filter(|&at| at < len)?;
                    Some(ROWS.map(|row| products[place(channel, row, tap) + at]))
                });
                T::from_f64(met.flatten().sum::<f64>() + bias[channel])
            } else {
                untouched
            };
            assert_eq!(
                value, expected,
                "{kernels:?}, {len} products, {outputs} outputs, {firsts:?} at {index}"
            );
        }
    }
}

#[test]
fn rows_are_added_up_where_there_are_products() {
    for (len, outputs) in [(1, 1), (5, 5), (5, 40), (16, 20), (33, 33), (40, 49), (50, 17)] {
        for firsts in [&[0][..], &[0, 1, 2], &[-3, 4], &[-60, 60], &[17, -17], &[]] {
            check::<f32>(len, outputs, firsts);
            check::<f64>(len, outputs, firsts);
        }
    }
}

#[test]
fn sums_that_are_not_finite_are_noticed() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<f32>) {
        for at in 0..38 {
            let mut products = [1.0; 40];
            products[at] = f32::INFINITY;
            let rows = FoldedRows {
                products: &products,
                channel_stride: 0,
                rows: &[0],
                taps: &[FoldTap { products: 0, first: 2 }],
                len: 40,
                bias: &[0.0],
                outputs: 40,
                pitch: 40,
            };
            assert!(!kernels.fold(&rows, &mut [0.0; 40]), "{kernels:?} at {at}");
        }
    }
}

#[test]
#[should_panic = "are_inside"]
fn products_that_are_not_there_are_refused() {
    let kernels = kernels::<f32>(Isa::Portable).unwrap();
    let rows = FoldedRows {
        products: &[1.0; 10],
        channel_stride: 0,
        rows: &[1],
        taps: &[FoldTap { products: 0, first: 0 }],
        len: 10,
        bias: &[0.0],
        outputs: 10,
        pitch: 10,
    };
    kernels.fold(&rows, &mut [0.0; 10]);
}
