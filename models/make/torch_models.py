"""Writes models/torch: what torch.onnx makes of the networks, by both of its exporters; and the example of docs/guide.md.

    python -m venv venv && venv/bin/pip install -r requirements-torch.txt && venv/bin/python torch_models.py
"""

import pathlib
import shutil

import numpy as np
import onnx
import torch

from architectures import MODELS, build, recorded

OUTPUT = pathlib.Path(__file__).parent.parent / "torch"
GUIDE = OUTPUT.parent.parent / "docs/guide.in"


def export(name, folder, dynamo):
    folder.mkdir(parents=True, exist_ok=True)
    model, example = build(name)
    path = folder / "model.onnx"
    options = {"external_data": False} if dynamo else {"opset_version": 17}
    torch.onnx.export(model, example, str(path), dynamo=dynamo, **options)
    graph = onnx.load(path)
    for node in graph.graph.node:
        # Where in the source a node comes from: of no use here, and most of the file.
        node.doc_string = ""
        del node.metadata_props[:]
    for value in list(graph.graph.value_info) + list(graph.graph.input) + list(graph.graph.output):
        del value.metadata_props[:]
    onnx.save(graph, path)
    nodes = [node for node in graph.graph.node if node.op_type == "ConvTranspose"]
    fused = all(node.op_type != "BatchNormalization" for node in graph.graph.node)
    calls = recorded(model, example, fused)
    assert len(nodes) == len(calls)
    np.savez_compressed(folder / "inputs.npz", **{node.input[0]: x for node, (x, _) in zip(nodes, calls)})
    np.savez_compressed(folder / "outputs.npz", **{node.output[0]: y for node, (_, y) in zip(nodes, calls)})


for name in MODELS:
    export(name, OUTPUT / name, dynamo=True)
    export(name, OUTPUT / f"{name}-torchscript", dynamo=False)


def guide():
    """The DCGAN generator, the input of its second layer, and an output of it by someone who flips the kernel."""
    GUIDE.mkdir(parents=True, exist_ok=True)
    shutil.copy(OUTPUT / "dcgan/model.onnx", GUIDE / "generator.onnx")
    graph = onnx.load(GUIDE / "generator.onnx").graph
    node = [node for node in graph.node if node.op_type == "ConvTranspose"][1]
    constants = {tensor.name: torch.tensor(onnx.numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    x = np.load(OUTPUT / "dcgan/inputs.npz")[node.input[0]]
    weight, bias = (constants[name] for name in node.input[1:])
    y = torch.conv_transpose2d(torch.tensor(x), weight.flip(2, 3), bias, stride=2, padding=1)
    np.save(GUIDE / "x.npy", x)
    np.save(GUIDE / "theirs.npy", y.numpy())


guide()
