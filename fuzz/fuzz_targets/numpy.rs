#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outstride_fuzz_harness::numpy(bytes));
