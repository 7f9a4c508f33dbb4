"""Other implementations of the operator, behind one interface: each prepares a layer's weights and returns a function of the
input. Used to measure beside them and to test against them; none is needed otherwise."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from outstride._layer import Layer

    Array: TypeAlias = NDArray[Any]
    Prepared: TypeAlias = Callable[[Array], Array]


def outstride(layer: Layer, weight: Array, bias: Array | None, threads: int) -> Prepared:
    from outstride._native import ConvTranspose

    op = ConvTranspose(weight, bias, dialect="torch", **layer.words)
    return lambda x: op(x, threads=threads)


def torch(layer: Layer, weight: Array, bias: Array | None, threads: int) -> Prepared:
    import torch
    from torch.nn import functional

    functions: list[Any] = [functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d]
    function = functions[len(layer.weight) - 3]
    w, b = torch.from_numpy(weight), None if bias is None else torch.from_numpy(bias)
    torch.set_num_threads(threads)

    def run(x: Array) -> Array:
        with torch.inference_mode():
            result: Array = function(torch.from_numpy(x), w, b, **layer.words).numpy()
        return result

    return run


def onnxruntime(layer: Layer, weight: Array, bias: Array | None, threads: int) -> Prepared:
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    words = layer.words
    node = helper.make_node(
        "ConvTranspose",
        ["x", "w"] if bias is None else ["x", "w", "b"],
        ["y"],
        strides=words["stride"],
        pads=words["padding"] * 2,
        output_padding=words["output_padding"],
        dilations=words["dilation"],
        group=words["groups"],
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, layer.input)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * len(layer.input))
    weights = [numpy_helper.from_array(weight, "w")]
    if bias is not None:
        weights.append(numpy_helper.from_array(bias, "b"))
    opset = [helper.make_opsetid("", 11)]
    model = helper.make_model(helper.make_graph([node], "layer", [x], [y], weights), opset_imports=opset, ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(x: Array) -> Array:
        result: Array = session.run(None, {"x": x})[0]
        return result

    return run


def openvino(layer: Layer, weight: Array, bias: Array | None, threads: int) -> Prepared:
    import openvino
    from openvino import opset1

    words = layer.words
    x: Any = opset1.parameter(list(layer.input), np.float32)
    pads = {"pads_begin": words["padding"], "pads_end": words["padding"], "output_padding": words["output_padding"]}
    strides = {"strides": words["stride"], "dilations": words["dilation"]}
    if layer.groups == 1:
        y = opset1.convolution_backprop_data(x, opset1.constant(weight), **strides, **pads)
    else:
        grouped = weight.reshape(layer.groups, -1, *weight.shape[1:])
        y = opset1.group_convolution_backprop_data(x, opset1.constant(grouped), **strides, **pads)
    if bias is not None:
        y = opset1.add(y, opset1.constant(bias.reshape(1, -1, *[1] * (weight.ndim - 2))))
    hints = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "EXECUTION_MODE_HINT": "ACCURACY"}
    compiled = openvino.compile_model(openvino.Model([y], [x]), "CPU", hints)
    request = compiled.create_infer_request()

    def run(x: Array) -> Array:
        result: Array = request.infer([x], share_inputs=True, share_outputs=True)[0]
        return result

    return run


PEERS = {"torch": torch, "onnxruntime": onnxruntime, "openvino": openvino}
_NEEDS = {"torch": ["torch"], "onnxruntime": ["onnxruntime", "onnx"], "openvino": ["openvino"]}


def installed() -> list[str]:
    """The peers that are there."""
    return [name for name in PEERS if all(find_spec(package) for package in _NEEDS[name])]
