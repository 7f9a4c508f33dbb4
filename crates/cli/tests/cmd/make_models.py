"""Writes the models of the command's snapshot tests, with onnx==1.22.0 and numpy==2.4.6."""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).parent


def weights(name, *shape, dtype=np.float32):
    values = np.arange(np.prod(shape)) % 7 - 3
    return numpy_helper.from_array(values.reshape(shape).astype(dtype), name)


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def save(name, nodes, inputs, outputs, constants=(), opset=17, **more):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="by hand", **more)
    onnx.save(model, HERE / "models.in" / f"{name}.onnx")


up = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "up", strides=[2, 2], pads=[1, 1, 1, 1])
open_shape = [value("x", ["batch", 2, "height", "width"])]
save("open", [up], open_shape, [value("y", None)], [weights("w", 2, 3, 4, 4)])

# Everything that may sit between transposed convolutions.
save(
    "chain",
    [
        helper.make_node("Constant", [], ["one"], "one", value=numpy_helper.from_array(np.float32(1), "")),
        helper.make_node("ConvTranspose", ["x", "w", "b"], ["a"], "first", strides=[2], auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["q"], "quantize"),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"], "dequantize"),
        helper.make_node("Add", ["d", "one"], ["s"], "add"),
        helper.make_node("Identity", ["s"], ["i"], "identity"),
        helper.make_node("Concat", ["i", "r"], ["c"], "concat", axis=1),
        helper.make_node("ConvTranspose", ["c", "v"], ["y"], "second", strides=[2]),
        helper.make_node("Cast", ["y"], ["z"], "cast", to=TensorProto.DOUBLE),
    ],
    [value("x", [1, 1, 3])],
    [value("z", [1, 1, 13], TensorProto.DOUBLE), value("r", [1, 2, 6])],
    [
        weights("w", 1, 2, 3),
        weights("b", 2),
        weights("v", 4, 1, 3),
        numpy_helper.from_array(np.float32(0.5), "scale"),
        numpy_helper.from_array(np.uint8(3), "zero"),
    ],
)

# Operators that are not run, and a layer that is.
save(
    "mixed",
    [
        helper.make_node("Conv", ["x", "k"], ["f"], "conv"),
        helper.make_node("Conv", ["f", "k"], ["g"], "conv again"),
        helper.make_node("Softmax", ["g"], ["h"], "softmax"),
        helper.make_node("ConvTranspose", ["h", "w"], ["y"], "up", strides=[2, 2], output_padding=[1, 1]),
    ],
    [value("x", [1, 2, 5, 5])],
    [value("y", None)],
    [weights("k", 2, 2, 1, 1), weights("w", 2, 1, 2, 2)],
)

# What a reviewer would remark on.
save(
    "remarkable",
    [
        helper.make_node("ConvTranspose", ["x", "w"], ["a"], "gaps", strides=[3, 3]),
        helper.make_node("ConvTranspose", ["x", "w"], ["b"], "lost", pads=[3, 0, 0, 0]),
        helper.make_node("ConvTranspose", ["x", "w"], ["c"], "sized", strides=[2, 2], output_shape=[11, 11], pads=[1, 1, 1, 1]),
        helper.make_node("ConvTranspose", ["x", "w"], ["d"], "wrong", strides=[2, 2], output_padding=[2, 0]),
    ],
    [value("x", [1, 2, 5, 5])],
    [value(name, None) for name in "abcd"],
    [weights("w", 2, 1, 2, 2)],
)

# A graph that runs in a circle.
save(
    "circle",
    [helper.make_node("Relu", ["a"], ["b"], "one"), helper.make_node("Relu", ["b"], ["a"], "two")],
    [],
    [value("b", [1])],
)

# A layer inside a branch.
branch = helper.make_graph([up], "branch", [], [value("y", None)])
empty = helper.make_graph([helper.make_node("Identity", ["x"], ["y"], "same")], "else", [], [value("y", None)])
save(
    "branches",
    [helper.make_node("If", ["c"], ["z"], "choose", then_branch=branch, else_branch=empty)],
    [value("c", [], TensorProto.BOOL), value("x", [1, 2, 3, 3])],
    [value("z", None)],
    [weights("w", 2, 3, 4, 4)],
)

# Weights in a file beside the model, and in one that is not there.
for name in ["external", "missing"]:
    model = onnx.load(HERE / "models.in/open.onnx")
    onnx.external_data_helper.convert_model_to_external_data(model, location=f"{name}.bin", size_threshold=0)
    onnx.save(model, HERE / "models.in" / f"{name}.onnx")
(HERE / "models.in/missing.bin").unlink()

(HERE / "models.in/cut.onnx").write_bytes((HERE / "models.in/chain.onnx").read_bytes()[:300])
(HERE / "models.in/log.txt").write_text(
    "onednn_verbose,v1,primitive,exec,cpu,jit:avx512_core,deconvolution,forward_inference,"
    "src:bf16::blocked:acdb::f0 wei:bf16::blocked:Acdb16a::f0 dst:bf16::blocked:acdb::f0,attr-scratchpad:user,"
    "alg:deconvolution_direct,mb1_ic16oc8_ih8oh16kh4sh2dh0ph1_iw8ow16kw4sw2dw0pw1,0.05\n"
)
np.save(HERE / "models.in/x.npy", np.array([[[-2, 5, -4]]], dtype=np.float32))
np.save(HERE / "models.in/x4.npy", np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) - 9)


def transposed(x, w, begin, out, stride=2):
    """The definition, for weights of no groups."""
    full = np.zeros((1, w.shape[1], *((np.array(x.shape[2:]) - 1) * stride + w.shape[2:])), np.float32)
    for i, j in np.ndindex(*x.shape[2:]):
        block = np.einsum("c,cmkl->mkl", x[0, :, i, j], w)
        full[0, :, i * stride : i * stride + w.shape[2], j * stride : j * stride + w.shape[3]] += block
    return full[:, :, begin : begin + out, begin : begin + out]


x, w = np.load(HERE / "models.in/x4.npy"), numpy_helper.to_array(weights("w", 2, 3, 4, 4))
np.save(HERE / "models.in/right.npy", transposed(x, w, 1, 8))
np.save(HERE / "models.in/flipped.npy", transposed(x, w[:, :, ::-1, ::-1], 1, 8))
np.save(HERE / "models.in/last.npy", np.moveaxis(transposed(x, w, 1, 8), 1, -1))
np.save(HERE / "models.in/both.npy", np.moveaxis(transposed(x, w[:, :, ::-1, ::-1], 1, 8), 1, -1))
np.save(HERE / "models.in/noise.npy", transposed(x, w, 1, 8) ** 2)
