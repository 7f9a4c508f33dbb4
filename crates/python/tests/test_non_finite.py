"""NaN and infinity stay where they belong: they reach the outputs that the definition sums them into, and no others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import reference
from geometries import geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Geometry

import outstride
from outstride import _peers
from outstride._layer import Layer

SPECIAL = [np.nan, np.inf, -np.inf]

Call = tuple[Geometry, np.ndarray, np.ndarray, "np.ndarray | None"]


@st.composite
def calls(draw: st.DrawFn) -> Call:
    """Small integers with some special values among them."""
    g = draw(geometries())
    tensors = g.tensors()
    for tensor in tensors:
        if tensor is not None:
            place = st.tuples(st.integers(0, tensor.size - 1), st.sampled_from(SPECIAL))
            for index, value in draw(st.lists(place, max_size=3)):
                tensor.flat[index] = value
    return g, *tensors


def defined(g: Geometry, x: np.ndarray, w: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return reference.conv_transpose(g, x, w, bias)


@given(calls(), st.sampled_from(["full", "strict"]))
def test_it_is_the_definition(call: Call, precision: str) -> None:
    g, x, w, bias = call
    y = outstride.conv_transpose(x, w, bias, **g.attributes, precision=precision)
    np.testing.assert_array_equal(y, defined(g, x, w, bias))


LARGE = {
    "many channels": Geometry(1, 1, 64, 64, (16, 16), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), True, 1),
    "few channels": Geometry(1, 1, 64, 3, (32, 32), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), True, 2),
    "upsampling": Geometry(1, 1, 48, 32, (16, 16), (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), True, 3),
    "a line": Geometry(1, 1, 128, 64, (128,), (16,), (8,), (4,), (0,), (1,), True, 4),
    "one channel a group": Geometry(1, 32, 1, 1, (24, 24), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1), True, 5),
    "a volume": Geometry(1, 1, 32, 32, (6, 6, 6), (4, 4, 4), (2, 2, 2), (1, 1, 1), (0, 0, 0), (1, 1, 1), True, 6),
}
"""Layers of models in use, each of which is computed in another way."""


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("name", LARGE)
def test_it_is_the_definition_in_large_layers(name: str, channels_last: bool) -> None:
    g = LARGE[name]
    clean = g.tensors()
    random = np.random.default_rng(g.seed)
    for where, value in itertools.product(range(3), SPECIAL):
        x, w, bias = (tensor.copy() for tensor in clean)
        tensor = (x, w, bias)[where]
        tensor.flat[random.integers(tensor.size)] = value
        expected = defined(g, x, w, bias)
        if channels_last:
            x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
        # Sums of integers are exact, but for the transforms that "full" allows, which round.
        for precision, rounding in (("full", 0.01), ("strict", 0.0)):
            y = outstride.conv_transpose(x, w, bias, **g.attributes, precision=precision)
            np.testing.assert_allclose(y, expected, rtol=0.0, atol=rounding, equal_nan=True)


@settings(max_examples=300)
@given(calls())
def test_results_are_pytorchs(call: Call) -> None:
    if "torch" not in _peers.installed():
        pytest.skip("torch is not installed")
    g, x, w, bias = call
    layer = Layer(x.shape, w.shape, bias=bias is not None, **g.attributes)
    for dtype in (np.float64, np.float32):
        x, w, bias = (None if tensor is None else tensor.astype(dtype) for tensor in (x, w, bias))
        y = outstride.conv_transpose(x, w, bias, **g.attributes)
        theirs = _peers.torch(layer, w, bias, 1)(x)
        if dtype == np.float32:
            # PyTorch multiplies special weights by the zeros of borders too, and has NaN where there is nothing to sum.
            y = np.where(np.isnan(theirs), np.nan, y)
        np.testing.assert_array_equal(y, theirs)
