"""What a call from Python costs above the same call from Rust."""

from __future__ import annotations

import timeit

import numpy as np

from outstride import ConvTranspose, _native

CALLS, ROUNDS = 200, 200

# What a call may cost above the bare run, in calls of NumPy on the same small array: machines differ, and so do their minutes.
MOST_NUMPY_CALLS = 6


def test_a_call_costs_little_more_than_the_bare_run() -> None:
    op = ConvTranspose(np.ones((1, 1, 4, 4), np.float32), stride=2, padding=1)
    x, out = np.ones((1, 1, 4, 4), np.float32), np.empty((1, 1, 8, 8), np.float32)
    ways = {
        "bare": lambda: _native.time_runs(op, x, out, CALLS),
        "fresh": lambda: timeit.timeit(lambda: op(x), number=CALLS),
        "into": lambda: timeit.timeit(lambda: op(x, out=out), number=CALLS),
        "numpy": lambda: timeit.timeit(lambda: np.concatenate([x, x]), number=CALLS),
    }
    # Whatever else the machine does only ever adds to a time: the least of many short ones is what a call costs.
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for way, time in ways.items():
            least[way] = min(least[way], time() / CALLS)
    fresh, into = least["fresh"] - least["bare"], least["into"] - least["bare"]
    print(f"above the bare {least['bare'] * 1e6:.2f} µs: {fresh * 1e6:.2f} µs, with out {into * 1e6:.2f} µs")
    print(f"a call of NumPy: {least['numpy'] * 1e6:.2f} µs")
    assert fresh < MOST_NUMPY_CALLS * least["numpy"]
    assert into < MOST_NUMPY_CALLS * least["numpy"]
