"""The prepared operator: dialects, plans, pickles, threads."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import outstride
from outstride import ConvTranspose, _native

X = np.array([[[1, 2, 3]]], np.float32)
W = np.array([[[1, 10, 100]]], np.float32)


def run(x: np.ndarray = X, w: np.ndarray = W, **words: object) -> list[float]:
    return ConvTranspose(w, **words)(x).ravel().tolist()


def test_every_dialect_speaks_its_own_words() -> None:
    channels_last, spatial_first = X.transpose(0, 2, 1), W.transpose(2, 0, 1)
    full, upper = [1, 10, 102, 20, 203, 30, 300], [1, 10, 102, 20, 203, 30]
    zero = {"pads_begin": [0], "pads_end": [0], "dilations": [1]}
    assert run(stride=2) == full
    assert run(dialect="onnx", strides=[2], auto_pad="SAME_UPPER") == upper
    assert run(channels_last, dialect="ort-nhwc", strides=[2], auto_pad="SAME_UPPER") == upper
    onednn = {**zero, "strides": [2], "auto_pad": "SAME_UPPER", "weights_format": "IOX", "data_format": "NCX"}
    assert run(dialect="onednn-graph", **onednn) == upper
    assert run(dialect="openvino", strides=[2], **zero) == full
    assert run(dialect="openvino", strides=[2], output_shape=[6], auto_pad="same_lower", **zero) == upper
    assert run(w=W[None], dialect="openvino-group", strides=[2], **zero) == full
    tensorflow = {"strides": 2, "padding": "SAME", "output_shape": [1, 6, 1]}
    assert run(channels_last, spatial_first, dialect="tensorflow", **tensorflow) == upper
    jax = {"strides": [2], "padding": "SAME", "transpose_kernel": True}
    assert run(channels_last, spatial_first, dialect="jax", **jax) == upper


def test_the_runtime_may_decide_instead_of_the_text() -> None:
    words = {"dialect": "openvino", "strides": [2], "pads_begin": [1], "pads_end": [0], "dilations": [1]}
    assert run(**words, output_shape=[6]) == [1, 10, 102, 20, 203, 30]
    assert run(**words, output_shape=[6], policy="runtime") == [10, 102, 20, 203, 30, 300]


def test_an_opset_has_its_own_types() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, w = X.astype(ml_dtypes.bfloat16), W.astype(ml_dtypes.bfloat16)
    assert ConvTranspose(w, dialect="onnx", opset=22)(x).dtype == ml_dtypes.bfloat16
    with pytest.raises(outstride.InvalidError, match="element type bf16; onnx allows f16, f32, f64"):
        ConvTranspose(w, dialect="onnx", opset=21)(x)


def test_the_nhwc_dialect_has_activations_of_its_own() -> None:
    x = -X.transpose(0, 2, 1)
    assert run(x, dialect="ort-nhwc", activation="Relu") == [0] * 5
    spelt_out = run(x, dialect="ort-nhwc", activation="LeakyRelu", activation_params=[0.5])
    assert spelt_out == run(x, dialect="ort-nhwc", activation=("LeakyRelu", 0.5))
    assert spelt_out[0] == -0.5


def test_one_operator_serves_inputs_of_any_size() -> None:
    op = ConvTranspose(W, stride=2)
    for size in (1, 2, 7, 100):
        shape = op.output_shape((3, 1, size))
        assert shape == (3, 1, 2 * size + 1)
        assert op(np.ones((3, 1, size), np.float32)).shape == shape


def test_it_explains_itself() -> None:
    op = ConvTranspose(np.ones((64, 64, 4, 4), np.float32), stride=2, padding=1)
    plan = op.explain((1, 64, 32, 32), threads=2)
    assert "stride 2" in plan and "chosen" in plan and "up to 2 threads" in plan
    assert "up to 1 threads" in op.explain([1, 64, 32, 32], threads=1)


def test_precision_decides_how_sums_are_computed() -> None:
    w = np.random.default_rng(1).standard_normal((64, 64, 4, 4)).astype(np.float32)
    x = np.random.default_rng(0).standard_normal((1, 64, 32, 32)).astype(np.float32)
    strict = ConvTranspose(w, stride=2, padding=1, precision="strict")
    assert "f32_tile" not in strict.explain(x.shape).split("rejected")[0]
    full = outstride.conv_transpose(x, w, stride=2, padding=1)
    np.testing.assert_array_equal(strict(x), outstride.conv_transpose(x, w, stride=2, padding=1, precision="strict"))
    np.testing.assert_allclose(strict(x), full, rtol=1e-4, atol=1e-4)
    rounded = outstride.conv_transpose(x, w, stride=2, padding=1, precision="bf16-compute")
    np.testing.assert_allclose(rounded, full, atol=0.02 * np.abs(full).max())


def test_it_introduces_itself() -> None:
    op = ConvTranspose(W, np.ones(1, np.float32), dialect="onnx", strides=[2])
    assert repr(op) == "ConvTranspose(f32 weight [1, 1, 3], bias, dialect='onnx', strides=[2])"
    assert (op.dialect, op.dtype) == ("onnx", "f32")


@pytest.mark.parametrize(
    "words",
    [
        {"stride": 2, "padding": (1,)},
        {"dialect": "onnx", "strides": [2], "auto_pad": "SAME_LOWER", "opset": 11, "policy": "runtime"},
        {"stride": 3, "activation": ("Clip", -5.0, 50.0), "precision": "strict"},
        {"dialect": "jax", "strides": [1], "padding": [(0, 1)], "dimension_numbers": ["NCH", "IOH", "NCH"]},
    ],
)
@pytest.mark.parametrize("bias", [None, np.array([0.5], np.float32)])
def test_a_pickle_is_the_same_operator(words: dict[str, object], bias: np.ndarray | None) -> None:
    op = ConvTranspose(W, None if words.get("dialect") == "jax" else bias, **words)
    for again in (pickle.loads(pickle.dumps(op)), copy.deepcopy(op)):
        assert repr(again) == repr(op)
        assert again.__reduce__() == op.__reduce__()
        np.testing.assert_array_equal(again(X), op(X))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int64"])
def test_pickles_hold_every_type(dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x, w = X.astype(dtype), np.asfortranarray(W.astype(dtype))
    op = ConvTranspose(w)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(op))(x), op(x))


BIG = np.random.default_rng(0).standard_normal((1, 32, 48, 48)).astype(np.float32)
BIG_W = np.random.default_rng(1).standard_normal((32, 16, 4, 4)).astype(np.float32)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    op = ConvTranspose(BIG_W, stride=2, padding=1)
    one = op(BIG, threads=1)
    for threads in (2, 3, 8, None):
        np.testing.assert_array_equal(op(BIG, threads=threads), one)


def test_many_threads_may_share_an_operator() -> None:
    op = ConvTranspose(BIG_W, stride=2, padding=1)
    inputs = [BIG * scale for scale in range(1, 9)]
    expected = [op(x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for result, once in zip(pool.map(op, inputs), expected, strict=True):
                np.testing.assert_array_equal(result, once)


def test_other_threads_run_while_it_computes() -> None:
    """While it computes for many switch intervals, another thread counts on, or waits for all of it."""
    op = ConvTranspose(BIG_W, stride=2, padding=1)
    out = op(BIG)
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    while counted == 0:
        time.sleep(0)
    before = counted
    # A single call from Python, so that no bytecode of this thread lets the other one in.
    _native.time_runs(op, BIG, out, 100)
    during = counted - before
    done.set()
    counter.join()
    assert during > 20


def test_it_keeps_the_gil_off_where_there_is_none() -> None:
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("an interpreter that always has a GIL")
    assert not sys._is_gil_enabled()


def child(op: ConvTranspose, x: np.ndarray, queue: multiprocessing.Queue) -> None:
    queue.put(op(x, threads=2))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_survives_other_processes(method: str) -> None:
    """A forked child has none of its parent's threads, and must not wait for them."""
    op = ConvTranspose(BIG_W, stride=2, padding=1)
    expected = op(BIG, threads=2)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(op, BIG, queue))
    process.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    process.join()
