//! Files of tensors.

use std::path::{Path, PathBuf};

use outstride_io::{AnyTensor, Source, TensorFile, write_tensors};
use outstride_spec::DType;

fn parse(name: &str, bytes: &[u8]) -> Result<TensorFile, String> {
    TensorFile::parse(Source::memory(Path::new(name), bytes.to_vec())).map_err(|error| error.to_string())
}

fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn of_every_type() -> Vec<AnyTensor> {
    let bytes: Vec<u8> = (0..96).map(|byte| byte % 2).collect();
    DType::ALL
        .into_iter()
        .map(|dtype| AnyTensor::from_le_bytes(dtype, vec![3, 2, 2], &bytes[..12 * dtype.size()]).unwrap())
        .collect()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("outstride-io-{}-{name}", std::process::id()))
}

#[test]
fn every_format_keeps_every_type() {
    for ending in ["npy", "npz", "safetensors", "pb"] {
        for tensor in of_every_type() {
            let path = file(&format!("types.{ending}"));
            write_tensors(&path, &[("x", &tensor)]).unwrap();
            let read = TensorFile::open(&path).unwrap().tensor("x").unwrap().load().unwrap();
            assert_eq!(read, tensor, "{ending} {}", tensor.values().dtype());
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn archives_hold_several_tensors_by_name() {
    let (a, b) =
        (AnyTensor::new(vec![1], vec![1i8]).unwrap(), AnyTensor::new(vec![2], vec![2.0f32, 3.0]).unwrap());
    for ending in ["npz", "safetensors"] {
        let path = file(&format!("two.{ending}"));
        write_tensors(&path, &[("a", &a), ("b", &b)]).unwrap();
        let read = TensorFile::open(&path).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read.tensor("b").unwrap().load().unwrap(), b);
        let error = read.tensor("c").unwrap_err().to_string();
        assert!(error.ends_with("must be one with a tensor `c`, got a, b"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
    let error = write_tensors(Path::new("two.npy"), &[("a", &a), ("b", &b)]).unwrap_err().to_string();
    assert!(error.contains("write an .npz or .safetensors file"), "{error}");
    let error = write_tensors(Path::new("y.txt"), &[("a", &a)]).unwrap_err().to_string();
    assert!(error.contains("name it .npy"), "{error}");
}

#[test]
fn other_orders_of_values_and_bytes_are_put_right() {
    let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
    let read = parse("x.npy", &npy(header, &[0, 0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5])).unwrap();
    let expected = AnyTensor::new(vec![2, 3], vec![0i16, 1, 2, 3, 4, 5]).unwrap();
    assert_eq!(read.tensor("").unwrap().load().unwrap(), expected);
}

#[test]
fn broken_numpy_files_are_refused_with_the_place() {
    let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    for (bytes, expected) in [
        (npy(good, &[0; 4]), "x.npy: the data must be f32 of shape [2] in as many bytes, got 4 bytes"),
        (
            npy(&good.replace("<f4", "<c8"), &[0; 8]),
            "x.npy: the header must be a type such as '<f4', got '<c8'",
        ),
        (npy(&good.replace("descr", "d"), &[0; 8]), "x.npy: the header must be a dictionary with 'descr'"),
        (
            npy(&good.replace("(2,)", "(-2,)"), &[0; 8]),
            "x.npy: the header must be sizes such as (2, 3) for 'shape'",
        ),
        (
            npy(&good.replace("(2,)", "(4294967296, 4294967296)"), &[0; 8]),
            "x.npy: the data must be f32 of shape",
        ),
        (npy(&good.replace("False", "Maybe"), &[0; 8]), "x.npy: the header must be True or False"),
        (
            b"\x93NUMPY\x09\x00\x00\x00".to_vec(),
            "x.npy: byte 6 must be the format's version 1, 2 or 3, got 9",
        ),
        (b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "x.npy: byte 8 must be a header of at most"),
        (b"\x93NUMPY".to_vec(), "x.npy: the file must be a header of at least 10 bytes"),
        (
            b"hello".to_vec(),
            "x.npy: the file must be a file of tensors: .npy, .npz, .safetensors or .pb, got one that begins with [104, 101",
        ),
        (b"PK\x03\x04".to_vec(), "x.npy: the file must be a zip archive of .npy files"),
    ] {
        let error = parse("x.npy", &bytes).and_then(|file| {
            file.tensor("").and_then(|tensor| tensor.load()).map_err(|error| error.to_string())
        });
        let error = error.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn broken_safetensors_files_are_refused_with_the_place() {
    let file = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(vec![0; data]);
        bytes
    };
    for (bytes, expected) in [
        (vec![1, 2], "x.safetensors: the file must be 8 bytes of length and a header, got 2 bytes"),
        (vec![255; 16], "x.safetensors: byte 0 must be a header of at most"),
        (file("{", 0), "x.safetensors: the header must be JSON"),
        (file("[]", 0), "x.safetensors: the header must be an object"),
        (
            file("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4),
            "x.safetensors: `a.data_offsets` of the header must be [begin, end] within the 4 bytes of data",
        ),
        (
            file("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4),
            "x.safetensors: `a.shape[0]` of the header must be at least 0",
        ),
        (
            file("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4),
            "x.safetensors: tensor `a` must be f32 of shape [2] in as many bytes, got 4 bytes",
        ),
        (
            file("{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4),
            "x.safetensors: the element type of this safetensors file of tensor `a` is not supported",
        ),
    ] {
        let error = parse("x.safetensors", &bytes).and_then(|file| {
            file.tensor("a").and_then(|tensor| tensor.load()).map_err(|error| error.to_string())
        });
        let error = error.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
