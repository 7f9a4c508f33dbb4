//! Runs that take turns in memory.

use half::bf16;
use outstride_kernels::{Isa, Output, Real, Stored, kernels, settle};
use outstride_spec::IntegerOverflow;

fn takes_turns<T: Real, Q: Stored<T>>() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<T>) {
        for (runs, stream) in (1..10).flat_map(|runs| [(runs, false), (runs, true)]) {
            for len in [1usize, 2, 7, 16, 17, 40, 63] {
                let source: Vec<T> = (0..runs * 64).map(|value| T::from_f64((value % 256) as f64)).collect();
                let distances: Vec<isize> = (0..runs as isize).rev().map(|run| run * 64).collect();
                let mut target = vec![Q::default(); runs * len + 5];
                // SAFETY: runs are 64 elements long, and this is the only thread.
                unsafe {
                    let target = Output::new(&mut target, kernels, IntegerOverflow::default());
                    target.write_interleaved(3, source.as_ptr(), &distances, len, stream);
                }
                settle();
                for (index, &value) in target.iter().enumerate() {
                    let expected = match index.checked_sub(3) {
                        Some(index) if index < runs * len => {
                            source[distances[index % runs] as usize + index / runs]
                        }
                        _ => T::default(),
                    };
                    assert_eq!(value.widen(), expected, "{kernels:?}, {runs} of {len} at {index}");
                }
            }
        }
    }
}

#[test]
fn runs_take_turns() {
    takes_turns::<f32, f32>();
    takes_turns::<f64, f64>();
    takes_turns::<f32, bf16>();
    takes_turns::<f32, u8>();
}
