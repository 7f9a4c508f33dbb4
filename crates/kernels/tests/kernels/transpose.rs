//! Rows that become columns on their way to memory.

use outstride_kernels::{Isa, Output, Real, kernels, settle};
use outstride_spec::IntegerOverflow;

fn turns<T: Real>() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<T>) {
        for rows in [1usize, 3, 8, 16, 17, 40, 100] {
            for (columns, stream) in [1usize, 4, 7, 16, 33].into_iter().flat_map(|c| [(c, false), (c, true)])
            {
                let source: Vec<T> = (0..rows * 50).map(|value| T::from_f64(value as f64)).collect();
                let distances: Vec<isize> = (0..rows as isize).rev().map(|row| row * 50).collect();
                let untouched = T::from_f64(-1.0);
                let mut target = vec![untouched; columns * 128 + 3];
                // SAFETY: rows are 50 elements long, and this is the only thread.
                unsafe {
                    let target = Output::new(&mut target, kernels, IntegerOverflow::default());
                    target.write_transposed(2, 128, source.as_ptr(), &distances, columns, stream);
                }
                settle();
                for (index, &value) in target.iter().enumerate() {
                    let (column, row) = (index.wrapping_sub(2) / 128, index.wrapping_sub(2) % 128);
                    let inside = index >= 2 && row < rows && column < columns;
                    let expected = if inside { source[distances[row] as usize + column] } else { untouched };
                    assert_eq!(value, expected, "{kernels:?} {rows}×{columns} at {index}");
                }
            }
        }
    }
}

#[test]
fn rows_become_columns() {
    turns::<f32>();
    turns::<f64>();
}

#[test]
fn columns_of_bytes_are_those_of_single_stores() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<f32>) {
        for (rows, columns, stream) in [(200, 40, false), (64, 16, true), (63, 17, false), (130, 15, true)] {
            let odd = [f32::NAN, 300.0, -300.0, f32::INFINITY, f32::NEG_INFINITY, -0.0];
            let value =
                |index: usize| if index % 9 < odd.len() { odd[index % 9] } else { index as f32 % 256.0 };
            let source: Vec<f32> = (0..rows * 50).map(value).collect();
            let distances: Vec<isize> = (0..rows as isize).map(|row| row * 50).collect();
            let (mut signed, mut unsigned) = (vec![-7i8; columns * 256 + 3], vec![7u8; columns * 256 + 3]);
            // SAFETY: rows are 50 elements long, and this is the only thread.
            unsafe {
                let target = Output::new(&mut signed, kernels, IntegerOverflow::default());
                target.write_transposed(2, 256, source.as_ptr(), &distances, columns, stream);
                let target = Output::new(&mut unsigned, kernels, IntegerOverflow::default());
                target.write_transposed(2, 256, source.as_ptr(), &distances, columns, stream);
            }
            settle();
            for (index, found) in signed.into_iter().zip(unsigned).enumerate() {
                let (column, row) = (index.wrapping_sub(2) / 256, index.wrapping_sub(2) % 256);
                let inside = index >= 2 && row < rows && column < columns;
                let value = || source[row * 50 + column];
                let expected = if inside { (value() as i8, value() as u8) } else { (-7, 7) };
                assert_eq!(found, expected, "{kernels:?} {rows}×{columns} at {index}");
            }
        }
    }
}
