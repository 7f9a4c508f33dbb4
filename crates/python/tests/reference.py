"""Transposed convolution by its definition, in NumPy alone and for reading: every input adds a scaled kernel to the output."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Geometry:
    """A call with one entry per spatial axis, in PyTorch's words."""

    batch: int
    groups: int
    in_channels: int
    """Per group, as is out_channels."""
    out_channels: int
    input: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    dilation: tuple[int, ...]
    bias: bool
    seed: int = field(repr=False)

    @property
    def full(self) -> tuple[int, ...]:
        axes = zip(self.input, self.kernel, self.stride, self.dilation, strict=True)
        return tuple((i - 1) * s + (k - 1) * d + 1 for i, k, s, d in axes)

    @property
    def output(self) -> tuple[int, ...]:
        axes = zip(self.full, self.padding, self.output_padding, strict=True)
        return tuple(full - 2 * p + extra for full, p, extra in axes)

    @property
    def attributes(self) -> dict[str, object]:
        return {
            "stride": self.stride,
            "padding": self.padding,
            "output_padding": self.output_padding,
            "groups": self.groups,
            "dilation": self.dilation,
        }

    def tensors(self, dtype: object = np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Small integers: their sums are exact in every type, so that results can be compared for equality."""
        random = np.random.default_rng(self.seed)

        def values(*shape: int) -> np.ndarray:
            return random.integers(-4, 5, shape).astype(dtype)

        channels = self.groups * self.in_channels
        x = values(self.batch, channels, *self.input)
        w = values(channels, self.out_channels, *self.kernel)
        return x, w, values(self.groups * self.out_channels) if self.bias else None


def conv_transpose(g: Geometry, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    x, w = x.astype(np.float64), w.astype(np.float64)
    full = np.zeros((g.batch, g.groups, g.out_channels, *g.full))
    x = x.reshape(g.batch, g.groups, g.in_channels, *g.input)
    w = w.reshape(g.groups, g.in_channels, g.out_channels, *g.kernel)
    for tap in itertools.product(*map(range, g.kernel)):
        reached = tuple(
            slice(t * d, t * d + (i - 1) * s + 1, s)
            for t, d, i, s in zip(tap, g.dilation, g.input, g.stride, strict=True)
        )
        full[(..., *reached)] += np.einsum("ngc...,gcm->ngm...", x, w[(..., *tap)])
    full = full.reshape(g.batch, g.groups * g.out_channels, *g.full)
    grown = np.pad(full, [(0, 0), (0, 0), *((0, extra) for extra in g.output_padding)])
    y = grown[(..., *(slice(p, p + size) for p, size in zip(g.padding, g.output, strict=True)))]
    return y if bias is None else y + bias.astype(np.float64).reshape(-1, *[1] * len(g.kernel))
