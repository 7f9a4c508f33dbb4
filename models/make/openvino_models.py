"""Writes models/openvino: what OpenVINO's converter makes of the networks.

    python -m venv venv && venv/bin/pip install -r requirements-torch.txt && venv/bin/python openvino_models.py
"""

import pathlib

import numpy as np
import openvino as ov

from architectures import MODELS, build

OUTPUT = pathlib.Path(__file__).parent.parent / "openvino"
KINDS = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")


def convert(name, folder):
    folder.mkdir(parents=True, exist_ok=True)
    model, example = build(name)
    converted = ov.convert_model(model, example_input=example, input=[tuple(x.shape) for x in example])
    path = folder / "model.xml"
    ov.save_model(converted, path, compress_to_fp16=name != "dcgan")
    # As it is read back: names and types are those of the file.
    read = ov.Core().read_model(path)
    nodes = [op for op in read.get_ordered_ops() if op.get_type_name() in KINDS]
    inputs = {op.input_value(0).get_node().get_friendly_name(): op.input_value(0) for op in nodes}
    outputs = {op.get_friendly_name(): op.output(0) for op in nodes}
    read.add_outputs(list(inputs.values()) + list(outputs.values()))
    compiled = ov.Core().compile_model(read, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = list(compiled([x.numpy() for x in example]).values())[-2 * len(nodes) :]
    np.savez_compressed(folder / "inputs.npz", **dict(zip(inputs, results)))
    np.savez_compressed(folder / "outputs.npz", **dict(zip(outputs, results[len(nodes) :])))


for name in MODELS:
    convert(name, OUTPUT / name)
