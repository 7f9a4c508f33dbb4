"""What a call from Python costs above the same call from Rust."""

from __future__ import annotations

import timeit

import numpy as np

from outstride import ConvTranspose, _native

CALLS = 2000


def test_a_call_costs_little_more_than_the_bare_run() -> None:
    op = ConvTranspose(np.ones((1, 1, 4, 4), np.float32), stride=2, padding=1)
    x, out = np.ones((1, 1, 4, 4), np.float32), np.empty((1, 1, 8, 8), np.float32)

    def overhead() -> tuple[float, float]:
        """Of a call with a new output and of one with `out`: the two kinds of runs are timed in turns, so that whatever else
        the machine does meets them alike."""
        bare = _native.time_runs(op, x, out, CALLS)
        fresh = timeit.timeit(lambda: op(x), number=CALLS)
        into = timeit.timeit(lambda: op(x, out=out), number=CALLS)
        return (fresh - bare) / CALLS, (into - bare) / CALLS

    rounds = [overhead() for _ in range(30)]
    # Noise only ever adds, to either side; the median of the differences is what a call really costs.
    fresh, into = (sorted(times)[len(rounds) // 2] for times in zip(*rounds, strict=True))
    print(f"above the bare run: {fresh * 1e6:.2f} µs, with out {into * 1e6:.2f} µs")
    assert fresh < 5e-6
    assert into < 5e-6
