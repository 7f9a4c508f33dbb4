"""ONNX's own tests of ConvTranspose, and the interface beyond them."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import outstride

onnx = pytest.importorskip("onnx")

import onnx.backend.test  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from outstride import onnx_backend  # noqa: E402

X = np.array([[[1, 2, 3]]], np.float32)
W = np.array([[[1, 10, 100]]], np.float32)


def official_tests() -> dict[str, type]:
    """ONNX's suite has thousands of tests for every operator; those of this one are left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from making the tests of other operators
        suite = onnx.backend.test.BackendTest(onnx_backend, __name__)
    ours = re.compile(r"test_.*conv_?transpose.*_cpu$", re.IGNORECASE)
    classes = {}
    for name, case in suite.test_cases.items():
        tests = [test for test in vars(case) if test.startswith("test_")]
        for test in tests:
            if not ours.match(test):
                delattr(case, test)
        if any(map(ours.match, tests)):
            classes[name] = case
    return classes


OFFICIAL = official_tests()
globals().update(OFFICIAL)


def test_there_are_official_tests() -> None:
    names = [name for case in OFFICIAL.values() for name in vars(case) if name.startswith("test_")]
    assert len(names) >= 10, names


def model(*nodes: onnx.NodeProto, weights: dict[str, np.ndarray], opset: int = 22) -> onnx.ModelProto:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", "c", "x"])  # noqa: E731
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "g", [value("x")], [value("y")], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def test_a_chain_of_nodes_runs_with_its_own_weights() -> None:
    first = helper.make_node("ConvTranspose", ["x", "w", "b"], ["h"], strides=[2], auto_pad="SAME_UPPER")
    second = helper.make_node("ConvTranspose", ["h", "w"], ["y"], strides=[1], pads=[1, 1])
    bias = np.array([0.5], np.float32)
    chain = model(first, second, weights={"w": W, "b": bias})
    assert onnx_backend.is_compatible(chain)
    (y,) = onnx_backend.run_model(chain, [X])
    hidden = outstride.ConvTranspose(W, bias, dialect="onnx", strides=[2], auto_pad="SAME_UPPER")(X)
    np.testing.assert_array_equal(y, outstride.conv_transpose(hidden, W, padding=1))
    (again,) = onnx_backend.prepare(chain).run({"x": X})
    np.testing.assert_array_equal(again, y)


def test_an_empty_name_is_no_bias() -> None:
    node = helper.make_node("ConvTranspose", ["x", "w", ""], ["y"], strides=[2])
    (y,) = onnx_backend.run_node(node, [X, W])
    assert y.tolist() == [[[1, 10, 102, 20, 203, 30, 300]]]


def test_the_models_opset_counts() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"])
    old = model(node, weights={"w": W.astype(ml_dtypes.bfloat16)}, opset=11)
    with pytest.raises(outstride.InvalidError, match="bf16; onnx allows f16, f32, f64"):
        onnx_backend.PreparedModel(old).run([X.astype(ml_dtypes.bfloat16)])


def test_other_operators_and_devices_are_unsupported() -> None:
    relu = model(helper.make_node("Relu", ["x"], ["y"]), weights={})
    assert not onnx_backend.is_compatible(relu)
    with pytest.raises(outstride.UnsupportedError, match="ai.onnx.Relu; only ConvTranspose"):
        onnx_backend.prepare(relu)
    assert not onnx_backend.supports_device("CUDA:0")
    with pytest.raises(outstride.UnsupportedError, match="device CUDA is not the CPU"):
        onnx_backend.prepare(relu, "CUDA")
