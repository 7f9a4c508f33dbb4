"""Memory: read and written where it lies, whatever its strides, and given back."""

from __future__ import annotations

import ctypes
import gc
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import outstride


@pytest.fixture
def op() -> outstride.ConvTranspose:
    w = np.random.default_rng(0).integers(-3, 4, (4, 5, 3, 4)).astype(np.float32)
    return outstride.ConvTranspose(w, stride=2, padding=1)


X = np.random.default_rng(1).integers(-3, 4, (2, 4, 6, 7)).astype(np.float32)


def arranged(shape: tuple[int, ...], order: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """A view of that shape whose axes lie in memory in some order, with gaps, forwards or backwards."""
    memory = np.full([shape[axis] * abs(steps[axis]) for axis in order], np.nan, np.float32)
    memory = memory.transpose(np.argsort(order))
    return memory[tuple(slice(None, None, step) for step in steps)]


orders = st.permutations(range(4)).map(tuple)
steps = st.tuples(*[st.sampled_from([1, -1, 2, -2])] * 4)


@settings(max_examples=200)
@given(orders, steps, orders, steps)
def test_any_strides_will_do(x_order: tuple, x_steps: tuple, y_order: tuple, y_steps: tuple) -> None:
    w = np.random.default_rng(0).integers(-3, 4, (4, 5, 3, 4)).astype(np.float32)
    op = outstride.ConvTranspose(w, stride=2, padding=1)
    expected = op(X)
    x = arranged(X.shape, x_order, x_steps)
    x[...] = X
    out = arranged(expected.shape, y_order, y_steps)
    assert op(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    around = out.base if out.base is not None else out
    assert np.count_nonzero(~np.isnan(around)) == expected.size, "nothing is written beside the view"


def test_weights_may_lie_any_way(op: outstride.ConvTranspose) -> None:
    w = np.random.default_rng(0).integers(-3, 4, (4, 5, 3, 4)).astype(np.float32)
    bias = np.arange(10, dtype=np.float32)[::-2]
    strided = np.asfortranarray(w[..., ::-1])[..., ::-1]
    y = outstride.conv_transpose(X, strided, bias, stride=2, padding=1)
    np.testing.assert_array_equal(y, outstride.conv_transpose(X, w, bias.copy(), stride=2, padding=1))


def test_one_value_may_stand_for_many(op: outstride.ConvTranspose) -> None:
    x = np.broadcast_to(np.float32(2), X.shape)
    np.testing.assert_array_equal(op(x), op(np.full(X.shape, 2, np.float32)))


def test_read_only_input_is_welcome(op: outstride.ConvTranspose) -> None:
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(op(x), op(X))


def test_the_output_is_written_at_its_own_address(op: outstride.ConvTranspose) -> None:
    expected = op(X)
    out = np.empty(expected.shape, np.float32)
    address = out.__array_interface__["data"][0]
    assert op(X, out=out) is out
    assert out.__array_interface__["data"][0] == address
    written = (ctypes.c_float * out.size).from_address(address)
    np.testing.assert_array_equal(np.frombuffer(written, np.float32).reshape(out.shape), expected)


def test_weights_are_copied() -> None:
    w = np.ones((1, 1, 2), np.float32)
    op = outstride.ConvTranspose(w)
    w[...] = 9
    assert op(np.ones((1, 1, 1), np.float32)).tolist() == [[[1, 1]]]


NO_COPY = """
import resource, numpy as np, outstride
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
op = outstride.ConvTranspose(np.ones((1, 1, 1), np.float32), {attributes})
x = np.ones((1, 1, {size}), np.float32){view}
out = np.ones(op.output_shape(x.shape), np.float32)
before = peak()
op(x, out=out)
print(peak() - before)
"""


@pytest.mark.parametrize("view", ["", "[..., ::-1]", "[..., ::2]"])
@pytest.mark.parametrize("attributes", ["padding=(1 << 20) - 4", "stride=1"])
def test_nothing_is_copied(view: str, attributes: str) -> None:
    """A copy of 32 MB would show in the most memory that the process ever had."""
    program = NO_COPY.format(size=8 << 20, view=view, attributes=attributes)
    grown = int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)
    assert grown * 1024 < 8 << 20


def test_memory_stays_flat_over_many_calls() -> None:
    op = outstride.ConvTranspose(np.ones((1, 1, 4, 4), np.float32), stride=2)
    x = np.ones((1, 1, 4, 4), np.float32)

    def peak_after(calls: int) -> int:
        for _ in range(calls):
            op(x)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    # Allocators settle during the first calls; a leak of 16 bytes a call would show as 1.6 MB.
    before = peak_after(20_000)
    assert peak_after(100_000) - before < 1024


def test_memory_stays_flat_over_many_operators() -> None:
    w, x = np.ones((16, 16, 4, 4), np.float32), np.ones((1, 16, 4, 4), np.float32)

    def peak_after(operators: int) -> int:
        for _ in range(operators):
            outstride.conv_transpose(x, w, stride=2)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = peak_after(500)
    assert peak_after(2000) - before < 8 << 10
