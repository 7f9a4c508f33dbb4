"""Transposed convolution (ConvTranspose, deconvolution), complete and fast.

`conv_transpose` is the function people know from PyTorch. `ConvTranspose` is the operator with its weights prepared,
in the words of any dialect. Both take NumPy arrays and whatever else has `__dlpack__`, in place, and return what they were
given.

Adapters live in modules of their own, and need the packages they adapt to: `outstride.torch`, `outstride.onnx_backend`,
`outstride.bench`.
"""

from outstride._functional import conv_transpose
from outstride._native import ConvTranspose, InvalidError, UnsupportedError

__all__ = ["ConvTranspose", "InvalidError", "UnsupportedError", "conv_transpose"]
