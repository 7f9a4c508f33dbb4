"""A program that an installed package must get right with NumPy alone; `cargo xtask wheel` runs it on what it has built."""

import pickle
from importlib.metadata import version

import numpy as np

import outstride

x = np.array([[[1, 2, 3]]], np.float32)
w = np.array([[[1, 10, 100]]], np.float32)
full = [[[1, 10, 102, 20, 203, 30, 300]]]
op = outstride.ConvTranspose(w, dialect="onnx", strides=[2])

assert outstride.conv_transpose(x, w, stride=2).tolist() == full
assert op(x, threads=2).tolist() == full
assert pickle.loads(pickle.dumps(op))(x).tolist() == full
try:
    op(x[0, 0])
except outstride.InvalidError as error:
    print(f"outstride {version('outstride')} computes, and refuses: {error}")
else:
    raise AssertionError("an input of the wrong rank was taken")
