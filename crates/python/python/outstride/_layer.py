"""A layer to measure or to compare: the shapes of its tensors and its attributes, in PyTorch's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from outstride._typing import Sizes


@dataclass(frozen=True)
class Layer:
    """A transposed convolution of an input (N, C, X…) with a weight (C, M/groups, k…)."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    stride: Sizes = 1
    padding: Sizes = 0
    output_padding: Sizes = 0
    groups: int = 1
    dilation: Sizes = 1
    bias: bool = False

    @property
    def words(self) -> dict[str, Any]:
        """The attributes, one entry per spatial axis."""
        each = {
            "stride": self.stride,
            "padding": self.padding,
            "output_padding": self.output_padding,
            "dilation": self.dilation,
        }
        axes = len(self.weight) - 2
        spelt_out = {name: [s] * axes if isinstance(s, int) else list(s) for name, s in each.items()}
        return {**spelt_out, "groups": self.groups}

    def tensors(self, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
        """Random values of moderate size: input, weight, bias."""
        random = np.random.default_rng(seed)

        def values(*shape: int) -> NDArray[Any]:
            return random.uniform(-1, 1, shape).astype(np.float32)

        bias = values(self.weight[1] * self.groups) if self.bias else None
        return values(*self.input), values(*self.weight), bias
