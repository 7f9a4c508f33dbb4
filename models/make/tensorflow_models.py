"""Writes models/tensorflow: what tf2onnx makes of the same kinds of networks, written in Keras.

    python -m venv venv && venv/bin/pip install -r requirements-tensorflow.txt && venv/bin/python tensorflow_models.py
"""

import pathlib

import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from tensorflow import keras
from tensorflow.keras import layers

OUTPUT = pathlib.Path(__file__).parent.parent / "tensorflow"


def dcgan():
    x = z = keras.Input((1, 1, 8))
    for filters, size, stride, padding in [(16, 4, 1, "valid"), (8, 5, 2, "same"), (4, 5, 2, "same")]:
        x = layers.Conv2DTranspose(filters, size, stride, padding=padding, use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2DTranspose(3, 4, 2, padding="same", use_bias=False)(x)
    return keras.Model(z, layers.Activation("tanh")(x))


def hifigan():
    x = mel = keras.Input((5, 8))
    x = layers.Conv1D(16, 7, padding="same")(x)
    for filters, size, stride in [(8, 16, 8), (4, 16, 8), (2, 4, 2)]:
        x = layers.Conv1DTranspose(filters, size, stride, padding="same")(layers.LeakyReLU(0.1)(x))
        x = layers.Add()([x, layers.Conv1D(filters, 3, dilation_rate=3, padding="same")(layers.LeakyReLU(0.1)(x))])
    return keras.Model(mel, layers.Activation("tanh")(layers.Conv1D(1, 7, padding="same")(x)))


def unet_decoder():
    deep, middle, shallow = keras.Input((2, 3, 16)), keras.Input((4, 6, 8)), keras.Input((8, 12, 4))
    x = layers.Conv2DTranspose(8, 2, 2)(deep)
    x = layers.Conv2D(8, 1, activation="relu")(layers.Concatenate()([x, middle]))
    x = layers.Conv2DTranspose(4, 3, 2, padding="same", output_padding=1)(x)
    x = layers.Conv2D(4, 1, activation="relu")(layers.Concatenate()([x, shallow]))
    return keras.Model([deep, middle, shallow], layers.Conv2DTranspose(4, 4, 4)(x))


def recorded(model, example):
    """What goes into each transposed convolution and what comes out, channels last."""
    found = [layer for layer in model.layers if "Transpose" in type(layer).__name__]
    values = keras.Model(model.inputs, [value for layer in found for value in (layer.input, layer.output)])(example)
    return [(layer, values[2 * i].numpy(), values[2 * i + 1].numpy()) for i, layer in enumerate(found)]


def export(name, model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    example = [np.random.default_rng(0).standard_normal((1, *x.shape[1:])).astype(np.float32) for x in model.inputs]
    path = folder / "model.onnx"
    signature = [tf.TensorSpec((1, *x.shape[1:]), tf.float32) for x in model.inputs]
    tf2onnx.convert.from_keras(model, input_signature=signature, opset=17, output_path=str(path))
    graph = onnx.load(path).graph
    nodes = [node for node in graph.node if node.op_type == "ConvTranspose"]
    calls = recorded(model, example)
    assert len(nodes) == len(calls)
    inputs, outputs = {}, {}
    for node, (layer, x, y) in zip(nodes, calls):
        if layer.use_bias and len(node.input) < 3:
            y = y - layer.bias.numpy()
        # Along one axis tf2onnx convolves images of one row.
        rank = len(next(t.dims for t in graph.initializer if t.name == node.input[1]))
        x, y = (np.expand_dims(v, 1) if rank == v.ndim + 1 else v for v in (x, y))
        inputs[node.input[0]], outputs[node.output[0]] = np.moveaxis(x, -1, 1), np.moveaxis(y, -1, 1)
    np.savez_compressed(folder / "inputs.npz", **inputs)
    np.savez_compressed(folder / "outputs.npz", **outputs)


for name, model in {"dcgan": dcgan, "hifigan": hifigan, "unet-decoder": unet_decoder}.items():
    keras.utils.set_random_seed(0)
    network = model()
    # Fresh biases and normalization do nothing; trained ones do.
    network.set_weights([w + np.random.uniform(0.1, 0.5, w.shape) if w.ndim == 1 else w for w in network.get_weights()])
    export(name, network, OUTPUT / name)
