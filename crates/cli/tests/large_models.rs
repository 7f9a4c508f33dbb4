//! Models of gigabytes are inspected at once, in little memory.

// `ulimit` means what it says on Linux only.
#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "other tests need more of it")]
#[path = "../../io/tests/proto/mod.rs"]
mod proto;

use std::process::Command;
use std::time::{Duration, Instant};

use proto::{Message, ints, model, node};

/// The process may map no more than this, in kibibytes: an eighth of the weights.
const ADDRESS_SPACE: u64 = 256 << 10;

/// An input of the graph, f32.
fn input(name: &str, dims: &[i64]) -> Message {
    let dims = dims.iter().map(|&dim| Message::default().int(1, dim));
    let shape = dims.fold(Message::default(), |shape, dim| shape.message(1, dim));
    let tensor = Message::default().int(1, 1).message(2, shape);
    Message::default().bytes(1, name).message(2, Message::default().message(1, tensor))
}

#[test]
fn two_gigabytes_of_external_weights_are_inspected_within_a_second() {
    let folder = std::env::temp_dir().join(format!("outstride-large-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A file of holes takes no room on the disk.
    std::fs::File::create(folder.join("w.bin")).unwrap().set_len(2 << 30).unwrap();
    let entry = Message::default().bytes(1, "location").bytes(2, "w.bin");
    let filter = [8192, 4096, 4, 4].into_iter().fold(Message::default(), |tensor, dim| tensor.int(1, dim));
    let filter = filter.int(2, 1).bytes(8, "w").message(13, entry).int(14, 1);
    let up = node("ConvTranspose", "up", &["x", "w"], &["y"]).message(5, ints("strides", &[2, 2]));
    let graph =
        Message::default().message(1, up).message(5, filter).message(11, input("x", &[1, 8192, 8, 8]));
    let path = folder.join("m.onnx");
    std::fs::write(&path, model(graph).0).unwrap();

    let begin = Instant::now();
    let inspected = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" inspect \"$1\"")])
        .args([env!("CARGO_BIN_EXE_outstride").as_ref(), path.as_os_str()])
        .output()
        .unwrap();
    let elapsed = begin.elapsed();
    std::fs::remove_dir_all(folder).unwrap();
    let text = String::from_utf8_lossy(&inspected.stdout);
    assert!(inspected.status.success(), "{}", String::from_utf8_lossy(&inspected.stderr));
    assert!(text.contains("w 8192×4096×4×4 f32 IOX in w.bin"), "{text}");
    assert!(text.contains("output      1×4096×18×18"), "{text}");
    assert!(elapsed < Duration::from_secs(1), "{elapsed:?}");
}
