"""The function: equal to the definition on random geometries, in every type, for every number of axes."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from geometries import geometries
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Geometry

import outstride


def check(g: Geometry, dtype: object) -> None:
    x, w, bias = g.tensors(dtype)
    y = outstride.conv_transpose(x, w, bias, **g.attributes)
    assert type(y) is np.ndarray and y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float64), reference.conv_transpose(g, x, w, bias))


@given(geometries())
def test_it_is_the_definition(g: Geometry) -> None:
    check(g, np.float32)


@settings(max_examples=60)
@given(geometries(), st.sampled_from([np.float64, np.int64]))
def test_it_is_the_definition_in_wide_types(g: Geometry, dtype: type) -> None:
    check(g, dtype)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(name: str) -> None:
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    dtype = np.dtype(name)

    @settings(max_examples=60)
    @given(geometries())
    def check_rounding(g: Geometry) -> None:
        x, w, bias = g.tensors(dtype)
        y = outstride.conv_transpose(x, w, bias, **g.attributes)
        expected = reference.conv_transpose(g, x, w, bias).astype(np.float32).astype(dtype)
        np.testing.assert_array_equal(y, expected)

    check_rounding()


@settings(max_examples=40)
@given(geometries(axes=st.integers(4, 5)))
def test_there_is_no_end_of_axes(g: Geometry) -> None:
    check(g, np.float32)


def test_one_number_serves_all_axes() -> None:
    for axes in (1, 2, 3, 4):
        x, w = np.ones((1, 2, *[3] * axes)), np.ones((2, 1, *[3] * axes))
        y = outstride.conv_transpose(x, w, stride=2, padding=1, output_padding=1, dilation=2)
        assert y.shape == (1, 1, *[8] * axes)


def test_arguments_have_pytorchs_order() -> None:
    g = Geometry(1, 2, 3, 2, (5,), (3,), (3,), (2,), (1,), (2,), True, 7)
    x, w, bias = g.tensors()
    y = outstride.conv_transpose(x, w, bias, 3, 2, 1, 2, 2)
    np.testing.assert_array_equal(y, reference.conv_transpose(g, x, w, bias))


def test_a_batch_may_be_left_out() -> None:
    x, w = np.ones((2, 5), np.float32), np.ones((2, 3, 4), np.float32)
    y = outstride.conv_transpose(x, w, stride=2)
    np.testing.assert_array_equal(y, outstride.conv_transpose(x[None], w, stride=2)[0])


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("Relu", lambda v: np.maximum(v, 0)),
        ("Tanh", np.tanh),
        ("Sigmoid", lambda v: 1 / (1 + np.exp(-v))),
        (("LeakyRelu", 0.25), lambda v: np.where(v < 0, 0.25 * v, v)),
        (("Clip", -1.0, 2.0), lambda v: np.clip(v, -1, 2)),
        (("HardSigmoid", 0.5, 0.25), lambda v: np.clip(0.5 * v + 0.25, 0, 1)),
    ],
)
def test_an_activation_follows_the_bias(activation: object, function: object) -> None:
    g = Geometry(1, 1, 3, 2, (9,), (4,), (2,), (1,), (0,), (1,), True, 3)
    x, w, bias = g.tensors()
    y = outstride.conv_transpose(x, w, bias, stride=2, padding=1, activation=activation)
    np.testing.assert_allclose(y, function(reference.conv_transpose(g, x, w, bias)), rtol=1e-6, atol=1e-6)


def test_empty_batches_give_empty_results() -> None:
    y = outstride.conv_transpose(np.ones((0, 2, 5), np.float32), np.ones((2, 3, 4), np.float32))
    assert y.shape == (0, 3, 8)
