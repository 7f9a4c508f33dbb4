"""Tensors of other libraries: what is given comes back."""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

import numpy as np
import pytest

import outstride

X = np.array([[[1, 2, 3]]], np.float32)
W = np.array([[[1, 10, 100]]], np.float32)
FULL = [[[1, 10, 102, 20, 203, 30, 300]]]


class Foreign:
    """A tensor of a small library that takes the tensors of others by copying them."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __array_namespace__(self) -> types.SimpleNamespace:
        return types.SimpleNamespace(from_dlpack=lambda tensor: Foreign(np.from_dlpack(tensor).copy()))


class Old:
    """A tensor of a library from before the protocol had versions, and that takes nothing from others."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_a_librarys_own_tensor_comes_back() -> None:
    y = outstride.conv_transpose(Foreign(X), Foreign(W), stride=2)
    assert type(y) is Foreign and y.array.tolist() == FULL


def test_a_library_that_takes_nothing_gets_what_others_take() -> None:
    y = outstride.conv_transpose(Old(X), Old(W), stride=2)
    assert y.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(y).tolist() == FULL


def test_out_may_be_foreign() -> None:
    out = Foreign(np.zeros((1, 1, 7), np.float32))
    assert outstride.conv_transpose(X, W, stride=2, out=out) is out
    assert out.array.tolist() == FULL


@pytest.mark.parametrize("taken", [True, False])
def test_memory_is_given_back(taken: bool) -> None:
    """Whether a consumer takes a capsule over or drops it, the tensor behind it goes, and neither too early nor twice."""
    y = outstride.conv_transpose(Old(X), Old(W), stride=2)
    capsules = [y.__dlpack__() for _ in range(3)]
    if taken:
        views = [np.from_dlpack(y) for _ in range(3)]
        del y
        gc.collect()
        assert all(view.tolist() == FULL for view in views)
        gone = weakref.ref(views[0])
        del views
        gc.collect()
        assert gone() is None
    del capsules
    gc.collect()


def test_arrays_of_jax_come_back() -> None:
    jax = pytest.importorskip("jax")
    x, w = jax.numpy.asarray(X), jax.numpy.asarray(W)
    y = outstride.conv_transpose(x, w, stride=2)
    assert isinstance(y, jax.Array) and y.tolist() == FULL
    half = outstride.conv_transpose(x.astype("bfloat16"), w.astype("bfloat16"))
    assert half.dtype == jax.numpy.bfloat16 and half.tolist() == [[[1, 12, 123, 230, 300]]]
