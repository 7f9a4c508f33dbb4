#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outstride_fuzz_harness::openvino_ir(bytes));
