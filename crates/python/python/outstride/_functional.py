"""The function people know from PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from outstride._native import ConvTranspose

if TYPE_CHECKING:
    from outstride._typing import Activation, Precision, Sizes, SupportsDLPack, TensorT

_TORCH_AXES = 3
"""How many spatial axes PyTorch's functions have at most."""


def conv_transpose(
    x: TensorT,
    w: SupportsDLPack,
    bias: SupportsDLPack | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    activation: Activation | None = None,
    precision: Precision = "full",
    out: TensorT | None = None,
    threads: int | None = None,
) -> TensorT:
    """Transposed convolution of `x`, as `torch.nn.functional.conv_transpose1d`, `2d` and `3d`, and beyond 3-D.

    `x` is (N, C, X…), or (C, X…) without a batch up to 3-D; `w` is (C, M/groups, k…), `bias` is (M). Each of stride, padding,
    output_padding and dilation is one number, or one for each spatial axis. `activation`, `precision` and `threads` are those of
    `ConvTranspose`.

    The weights are prepared anew on every call. To call often with the same weights, make a `ConvTranspose` once.

    >>> import numpy as np
    >>> x = np.array([[[1, 2, 3]]], dtype=np.float32)
    >>> w = np.array([[[1, 10, 100]]], dtype=np.float32)
    >>> conv_transpose(x, w, stride=2)
    array([[[  1.,  10., 102.,  20., 203.,  30., 300.]]], dtype=float32)
    """
    axes = len(getattr(w, "shape", ())) - 2
    if axes <= _TORCH_AXES:
        spelt: dict[str, Any] = {
            "dialect": "torch",
            "stride": stride,
            "padding": padding,
            "output_padding": output_padding,
            "groups": groups,
            "dilation": dilation,
        }
    else:
        spelt = _in_the_words_of_onnx(axes, stride, padding, output_padding, groups, dilation)
    op = ConvTranspose(w, bias, activation=activation, precision=precision, **spelt)
    return op(x, out=out, threads=threads)


def _in_the_words_of_onnx(
    axes: int, stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes
) -> dict[str, Any]:
    """The same call for more axes than PyTorch has functions for."""

    def each(sizes: Sizes) -> list[int]:
        return [sizes] * axes if isinstance(sizes, int) else list(sizes)

    return {
        "dialect": "onnx",
        "strides": each(stride),
        "pads": each(padding) * 2,
        "output_padding": each(output_padding),
        "group": groups,
        "dilations": each(dilation),
    }
