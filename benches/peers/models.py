"""Writes each layer as an ONNX model of one ConvTranspose, for the peers that load models.

    models.py REQUESTS.json FOLDER      REQUESTS.json is a list of layers, all fields spelt out
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def model(layer):
    rng = np.random.default_rng(0)
    filter_shape = [layer["cin"], layer["cout"] // layer["g"], *layer["k"]]
    weights = rng.uniform(-1, 1, filter_shape).astype(np.float32)
    bias = rng.uniform(-1, 1, [layer["cout"]]).astype(np.float32)
    node = helper.make_node(
        "ConvTranspose",
        inputs=["x", "weights", "bias"],
        outputs=["y"],
        kernel_shape=layer["k"],
        strides=layer["s"],
        dilations=layer["dil"],
        pads=layer["p"] + layer["pe"],
        output_padding=layer["op"],
        group=layer["g"],
    )
    graph = helper.make_graph(
        [node],
        layer["id"],
        inputs=[helper.make_tensor_value_info("x", TensorProto.FLOAT, [layer["n"], layer["cin"], *layer["in"]])],
        outputs=[helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(bias, "bias")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def main():
    requests, folder = sys.argv[1:]
    for layer in json.loads(pathlib.Path(requests).read_text()):
        onnx.save(model(layer), pathlib.Path(folder) / f"{layer['id']}.onnx")


if __name__ == "__main__":
    main()
