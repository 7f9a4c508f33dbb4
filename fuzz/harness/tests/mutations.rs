//! A little fuzzing without a fuzzer: the parsers' corpora, each file damaged in many ways that are the same on every run.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use outstride_fuzz_harness::TARGETS;

const PARSERS: [&str; 9] = [
    "onnx_model",
    "openvino_ir",
    "onednn_json",
    "onednn_log",
    "tensor_proto",
    "numpy",
    "safetensors",
    "conformance",
    "layers",
];

/// How often each file is damaged.
const TIMES: u64 = 200;

/// Numbers that look random, by Marsaglia's xorshift.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

fn damage(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    const EDGES: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'"', b'-', b'9'];
    for _ in 0..=numbers.below(4) {
        let (at, other) = (numbers.below(bytes.len()), numbers.below(bytes.len()));
        match numbers.below(6) {
            _ if bytes.is_empty() => bytes.push(EDGES[numbers.below(8)]),
            0 => bytes.truncate(at),
            1 => bytes[at] = EDGES[numbers.below(8)],
            2 => bytes[at] ^= 1 << numbers.below(8),
            3 => bytes.insert(at, EDGES[numbers.below(8)]),
            4 => {
                let copied = bytes[at.min(other)..at.max(other)].to_vec();
                bytes.splice(at..at, copied);
            }
            _ => drop(bytes.drain(at.min(other)..at.max(other))),
        }
    }
}

#[test]
fn damaged_files_are_read_or_refused() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    let mut runs = 0;
    for (name, target) in TARGETS.iter().filter(|(name, _)| PARSERS.contains(name)) {
        let mut seeds: Vec<_> =
            fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        seeds.sort();
        for seed in seeds {
            let intact = fs::read(&seed).unwrap();
            for _ in 0..TIMES {
                let mut bytes = intact.clone();
                damage(&mut bytes, &mut numbers);
                assert!(catch_unwind(|| target(&bytes)).is_ok(), "{name} with {bytes:?}");
                runs += 1;
            }
        }
    }
    assert!(runs > 10_000, "{runs}");
}
