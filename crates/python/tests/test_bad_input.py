"""Bad input raises an exception that says what is wrong and what to do; it never crashes and never computes nonsense."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import outstride
from outstride import ConvTranspose, InvalidError, UnsupportedError, conv_transpose

F32 = np.float32
X = np.ones((1, 2, 5), F32)
W = np.ones((2, 3, 4), F32)


def test_the_exceptions_are_of_the_kinds_people_catch() -> None:
    assert issubclass(InvalidError, ValueError)
    assert issubclass(UnsupportedError, NotImplementedError)


@pytest.mark.parametrize(
    ("message", "x", "w", "arguments"),
    [
        ("input has rank 4, expected 3", np.ones((1, 2, 5, 5), F32), W, {}),
        ("weight has rank 2", X, np.ones((2, 3), F32), {}),
        ("rank 0", X, np.ones((), F32), {}),
        ("input has 3 .*channels", np.ones((1, 3, 5), F32), W, {}),
        ("element type f64, but the operator was prepared for f32", X.astype(np.float64), W, {}),
        ("bool", X.astype(bool), W.astype(bool), {}),
        ("`x` has elements of type complex64", X.astype(np.complex64), W, {}),
        ("`weight` has elements of type object", X, W.astype(object), {}),
        ("bytes in another order", X.astype(">f4"), W, {}),
        ("element type f64, but weight has f32", X, W, {"bias": np.ones(3)}),
        ("the bias has 4 values, expected 3", X, W, {"bias": np.ones(4, F32)}),
        ("`bias` must have one axis", X, W, {"bias": np.ones((3, 1), F32)}),
        ("stride.* must be at least 1, got -2", X, W, {"stride": -2}),
        ("stride.* must be at least 1, got 0", X, W, {"stride": 0}),
        ("padding.* must be at least 0, got -1", X, W, {"padding": -1}),
        ("output_padding", X, W, {"output_padding": 1}),
        ("`stride` has 2 entries", X, W, {"stride": (1, 1)}),
        ("groups", X, W, {"groups": 0}),
        ("`groups` is 5", X, W, {"groups": 5}),
        ("the output would have size", X, W, {"padding": 9}),
        ("64 bits", X, W, {"stride": 2**64}),
        ("must be an integer or a list of integers", X, W, {"stride": 1.5}),
        ("must be an integer or a list of integers", X, W, {"stride": "2"}),
        ("`stride` must be a number, string", X, W, {"stride": {}}),
        ("`activation` must be one of", X, W, {"activation": "Gelu"}),
        ("`activation` must be one of", X, W, {"activation": "LeakyRelu"}),
        ("`threads` must be from 1 to", X, W, {"threads": 0}),
        ("`threads` must be from 1 to", X, W, {"threads": -1}),
        ("`threads` must be from 1 to", X, W, {"threads": 10**9}),
        ("the output tensor has shape", X, W, {"out": np.ones((1, 3, 9), F32)}),
        ("element type f64", X, W, {"out": np.ones((1, 3, 8))}),
    ],
)
def test_invalid_calls_say_why(message: str, x: Any, w: Any, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidError, match=message):
        conv_transpose(x, w, **arguments)


@pytest.mark.parametrize("thing", [None, 3, "text", [[[1.0]]], object(), np.float32(1)])
def test_only_arrays_are_arrays(thing: Any) -> None:
    with pytest.raises((TypeError, InvalidError)):
        ConvTranspose(W)(thing)
    with pytest.raises((TypeError, InvalidError)):
        ConvTranspose(thing)
    with pytest.raises((TypeError, InvalidError)):
        ConvTranspose(W)(X, out=thing if thing is not None else 1)


def test_a_list_that_contains_itself_ends() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidError, match="nested too deep"):
        conv_transpose(X, W, stride=endless)


def test_unknown_words_are_named() -> None:
    with pytest.raises(InvalidError, match="`onyx` is not a dialect; use one of onnx"):
        ConvTranspose(W, dialect="onyx")
    with pytest.raises(InvalidError, match="`policy` must be one of spec, runtime"):
        ConvTranspose(W, policy="both")
    with pytest.raises(InvalidError, match="`precision` must be one of full, strict, bf16-compute, got `half`"):
        ConvTranspose(W, precision="half")
    with pytest.raises(InvalidError, match="onnx has no attribute `stride`; it knows auto_pad"):
        ConvTranspose(W, dialect="onnx", stride=2)
    with pytest.raises(InvalidError, match="`shape` has a size of -1"):
        ConvTranspose(W).output_shape((1, 2, -1))


def test_out_must_be_writable() -> None:
    out = np.zeros((1, 3, 8), F32)
    out.flags.writeable = False
    with pytest.raises(InvalidError, match="`out` is read-only"):
        conv_transpose(X, W, out=out)
    assert not out.any()


def test_out_must_keep_its_elements_apart() -> None:
    out = np.lib.stride_tricks.as_strided(np.zeros(99, F32), (1, 3, 8), (32, 4, 4))
    with pytest.raises(InvalidError, match="may put two elements at one address"):
        conv_transpose(X, W, out=out)


def test_out_must_not_share_memory_with_x() -> None:
    memory = np.ones(40, F32)
    with pytest.raises(InvalidError, match="`out` and `x` share memory"):
        conv_transpose(memory[:10].reshape(1, 2, 5), W, out=memory[9:33].reshape(1, 3, 8))
    assert (memory == 1).all()
    conv_transpose(memory[:10].reshape(1, 2, 5), W, out=memory[10:34].reshape(1, 3, 8))


def test_elements_must_be_aligned() -> None:
    memory = np.zeros(1 + X.nbytes, np.uint8)
    with pytest.raises(InvalidError, match="no multiple of its 4 byte elements; copy it"):
        conv_transpose(memory[1:].view(F32).reshape(X.shape), W)
    records = np.zeros((1, 2, 5), np.dtype([("a", F32), ("b", np.int8)]))
    with pytest.raises(InvalidError, match="stride of 25 bytes"):
        conv_transpose(records["a"], W)


def test_what_is_valid_but_too_much_is_unsupported() -> None:
    huge = np.broadcast_to(F32(1), (1 << 20, 1 << 20, 1))
    with pytest.raises(UnsupportedError, match="the weights needs .* bytes, above the limit"):
        ConvTranspose(huge)
    op = ConvTranspose(np.ones((1, 1, 1), F32), stride=1 << 40)
    with pytest.raises((UnsupportedError, MemoryError)):
        op(np.ones((1, 1, 1 << 10), F32))
    with pytest.raises(InvalidError, match="64-bit"):
        ConvTranspose(np.ones((1, 1, 1), F32), stride=2**62).output_shape((1, 1, 100))


class Liar:
    """Has `__dlpack__` and returns what it was told to."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __dlpack__(self, **_: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Tensor(ctypes.Structure):
    """DLPack's DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class Versioned(ctypes.Structure):
    """DLPack's DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        *Tensor._fields_[:10],
    ]


KEPT_ALIVE: list[Any] = []


def capsule(name: bytes = b"dltensor", kind: type = Tensor, **fields: Any) -> Any:
    shape = (ctypes.c_int64 * 3)(1, 2, 5)
    data = (ctypes.c_float * 10)(*range(10))
    honest = {
        "data": ctypes.addressof(data),
        "device": 1,
        "ndim": 3,
        "code": 2,
        "bits": 32,
        "lanes": 1,
        "shape": shape,
    }
    tensor = kind(**{**honest, **fields})
    KEPT_ALIVE.extend([shape, data, tensor, name])
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(tensor), name, None)


def test_an_honest_capsule_is_read_in_place() -> None:
    expected = conv_transpose(np.arange(10, dtype=F32).reshape(1, 2, 5), W)
    for honest in (capsule(), capsule(b"dltensor_versioned", Versioned, major=1)):
        result = conv_transpose(Liar(honest), W)
        np.testing.assert_array_equal(np.from_dlpack(result), expected)


SIZES = ctypes.c_int64 * 3


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("must return a capsule, got NoneType", lambda: None),
        ("must return a capsule, got int", lambda: 42),
        ("holds no tensor, or one that was used before", lambda: capsule(b"used_dltensor")),
        ("holds no tensor", lambda: capsule(b"something")),
        ("speaks DLPack 2.0", lambda: capsule(b"dltensor_versioned", Versioned, major=2)),
        ("on device 0 of DLPack's kind 2; move it to the CPU", lambda: capsule(device=2)),
        ("-1 axes", lambda: capsule(ndim=-1)),
        ("1000000 axes", lambda: capsule(ndim=1_000_000)),
        ("3 axes and no shape", lambda: capsule(shape=None)),
        ("impossible shape", lambda: capsule(shape=SIZES(1, -2, 5))),
        ("address 0", lambda: capsule(data=0)),
        ("no multiple of its 4 byte", lambda: capsule(byte_offset=1)),
        ("leave the address space", lambda: capsule(shape=SIZES(1, 2, 2**62), strides=SIZES(0, 2**62, 2**62))),
        ("leave the address space", lambda: capsule(strides=SIZES(1, -(2**63), 1))),
        ("leave the address space", lambda: capsule(shape=SIZES(2**62, 2**62, 2**62))),
        ("leave the address space", lambda: capsule(byte_offset=2**64 - 64)),
        ("type code 5 with 32 bits", lambda: capsule(code=5)),
        ("2 lanes", lambda: capsule(lanes=2)),
        ("7 bits", lambda: capsule(bits=7)),
    ],
)
def test_objects_that_lie_about_dlpack_are_found_out(message: str, answer: Any) -> None:
    with pytest.raises(InvalidError, match=message):
        conv_transpose(Liar(answer()), W)


def test_a_library_that_raises_is_heard() -> None:
    with pytest.raises(BufferError, match="not today"):
        conv_transpose(Liar(BufferError("not today")), W)


def test_dlpack_may_be_read_only() -> None:
    out = capsule(b"dltensor_versioned", Versioned, major=1, flags=1)
    with pytest.raises(InvalidError, match="`out` is read-only"):
        conv_transpose(np.ones((1, 2, 2), F32), np.ones((2, 2, 4), F32), out=Liar(out))


def test_broken_pickles_are_refused() -> None:
    restore, arguments = ConvTranspose(W).__reduce__()
    dtype, shape, weight, bias, words = arguments
    for broken in [
        ("f99", shape, weight, bias, words),
        (dtype, (9, 9, 9), weight, bias, words),
        (dtype, (2**62, 2**62, 4), weight, bias, words),
        (dtype, shape, weight[:-1], bias, words),
        (dtype, shape, weight, b"1234", words),
        (dtype, shape, weight, bias, {}),
        (dtype, shape, weight, bias, {**words, "dialect": "no"}),
        (dtype, shape, weight, bias, {**words, "precision": "no"}),
    ]:
        with pytest.raises(outstride.InvalidError):
            restore(*broken)
