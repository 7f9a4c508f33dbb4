"""Equality with other implementations, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest
from geometries import geometries
from hypothesis import assume, given, settings
from reference import Geometry

import outstride
from outstride import _peers
from outstride._layer import Layer


def pads_beyond_the_stride(g: Geometry) -> bool:
    """ONNX Runtime bounds output_padding by the stride alone, and refuses the rest."""
    return any(extra >= stride for extra, stride in zip(g.output_padding, g.stride, strict=True))


def pads_beyond_the_kernel(g: Geometry) -> bool:
    """Where a pad crops more than the kernel's reach, OpenVINO's CPU plugin puts values where its specification has none."""
    return any(p > (k - 1) * d for p, k, d in zip(g.padding, g.kernel, g.dilation, strict=True))


DEPARTS = {"onnxruntime": pads_beyond_the_stride, "openvino": pads_beyond_the_kernel}
"""What each peer is known to do otherwise."""


# None of them is there by default; whoever installs one means it.
@settings(max_examples=max(3000, settings.default.max_examples))
@pytest.mark.parametrize("name", list(_peers.PEERS))
@given(g=geometries())
def test_results_are_the_peers(name: str, g: Geometry) -> None:
    if name not in _peers.installed():
        pytest.skip(f"{name} is not installed")
    assume(name not in DEPARTS or not DEPARTS[name](g))
    x, w, bias = g.tensors()
    layer = Layer(x.shape, w.shape, bias=bias is not None, **g.attributes)
    y = outstride.conv_transpose(x, w, bias, **g.attributes)
    # Small integers: every order of summation gives the same bits.
    np.testing.assert_array_equal(y, _peers.PEERS[name](layer, w, bias, 1)(x))
