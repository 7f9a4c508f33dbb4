//! Tiles of a single tap, which have loops of their own.

use outstride_kernels::{Isa, LinesAhead, PixelTap, PixelTiles, Real, kernels};

/// Room behind what is computed, which must stay as it is.
const BEYOND: usize = 5;

const UNTOUCHED: f64 = -77.0;

struct Case {
    columns: usize,
    vectors: usize,
    channels: usize,
    lines: usize,
    copies: bool,
}

/// Small integers: every order of additions gives the same sums.
fn integers<T: Real>(count: usize, period: usize) -> Vec<T> {
    (0..count).map(|index| T::from_f64((index % period) as f64 - (period / 2) as f64)).collect()
}

fn check<T: Real>(isa: Isa, case: &Case) {
    let Some(kernels) = kernels::<T>(isa) else { return };
    let &Case { columns, vectors, channels, lines, copies } = case;
    let width = vectors * kernels.lanes();
    // Channels and columns lie further apart than kernels read and write.
    let (channel_stride, weight_stride, pitch) = (width + 3, columns + 2, width + BEYOND);
    let input = integers::<T>(channels * channel_stride, 19);
    let weights = integers::<T>(channels * weight_stride, 13);
    let bias: Vec<T> = integers(columns, 7);
    let mut copy = vec![T::from_f64(UNTOUCHED); channels * width + BEYOND];
    let mut out = vec![T::from_f64(UNTOUCHED); columns * pitch];
    let tiles = PixelTiles {
        taps: &[PixelTap { input: 0, weights: 0, feeds: (1 << columns) - 1, leads: false }],
        input: input.as_ptr(),
        weights: weights.as_ptr(),
        channels,
        channel_stride,
        weight_stride,
        bias: &bias,
        count: 1,
        pitch,
        ahead: LinesAhead { first: input.as_ptr().cast(), step: 64, lines },
        copy: if copies { copy.as_mut_ptr() } else { std::ptr::null_mut() },
    };
    // SAFETY: all channels have inputs and weights for a tile, and the copy has room for them.
    assert!(unsafe { kernels.pixel(columns, vectors, &tiles, &mut out) });
    for (index, &got) in out.iter().enumerate() {
        let (column, position) = (index / pitch, index % pitch);
        let product = |channel: usize| {
            let input = input[channel * channel_stride + position].to_f64();
            input * weights[channel * weight_stride + column].to_f64()
        };
        let sum = || bias[column].to_f64() + (0..channels).map(product).sum::<f64>();
        let want = if position < width { sum() } else { UNTOUCHED };
        assert_eq!(got.to_f64(), want, "{isa} {columns}x{vectors} of {channels} channels at {index}");
    }
    for (index, &got) in copy.iter().enumerate() {
        let is_there = copies && index < channels * width;
        let want = match is_there {
            true => input[index / width * channel_stride + index % width].to_f64(),
            false => UNTOUCHED,
        };
        assert_eq!(got.to_f64(), want, "{isa} {columns}x{vectors} of {channels} channels, copy at {index}");
    }
}

#[test]
fn tiles_of_every_shape_are_sums_of_all_channels() {
    fn of<T: Real>() {
        for isa in Isa::ALL {
            let Some(kernels) = kernels::<T>(isa) else { continue };
            for (most, vectors) in kernels.pixel_shapes() {
                for columns in 1..=most {
                    for channels in [0, 1, 2, 3, 8, 21] {
                        for (lines, copies) in [(0, false), (1, false), (2, true), (0, true)] {
                            check::<T>(isa, &Case { columns, vectors, channels, lines, copies });
                        }
                    }
                }
            }
        }
    }
    of::<f32>();
    of::<f64>();
}

#[test]
fn what_is_not_finite_is_noticed_in_any_channel() {
    for isa in Isa::ALL {
        let Some(kernels) = kernels::<f32>(isa) else { continue };
        for (columns, vectors) in kernels.pixel_shapes() {
            let width = vectors * kernels.lanes();
            for channel in 0..3 {
                let mut input = vec![1.0f32; 3 * width];
                input[channel * width + width - 1] = f32::INFINITY;
                let weights = vec![1.0; 3 * columns];
                let tiles = PixelTiles {
                    taps: &[PixelTap { input: 0, weights: 0, feeds: (1 << columns) - 1, leads: false }],
                    input: input.as_ptr(),
                    weights: weights.as_ptr(),
                    channels: 3,
                    channel_stride: width,
                    weight_stride: columns,
                    bias: &vec![0.0; columns],
                    count: 1,
                    pitch: width,
                    ahead: LinesAhead::NONE,
                    copy: std::ptr::null_mut(),
                };
                let mut out = vec![0.0; columns * width];
                // SAFETY: all channels have inputs and weights for a tile.
                let finite = unsafe { kernels.pixel(columns, vectors, &tiles, &mut out) };
                assert!(!finite, "{isa} {columns}x{vectors}, channel {channel}");
            }
        }
    }
}
