"""The comparison runs with whatever is installed, and shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from outstride import bench

LAYERS = {
    "up": bench.Layer((1, 4, 5, 6), (4, 3, 4, 4), stride=2, padding=1, bias=True),
    "line": bench.Layer((1, 4, 9), (4, 2, 3), groups=2),
}


def test_every_installed_implementation_is_timed() -> None:
    comparison = bench.compare(LAYERS, threads=1, seconds=0.01)
    assert list(comparison.milliseconds) == list(LAYERS)
    assert all(times["outstride"] > 0 for times in comparison.milliseconds.values())
    assert comparison.implementations[0] == "outstride"
    header, _, first, _ = str(comparison).splitlines()
    assert header.startswith("| layer | outstride, ms |") and first.startswith("| up | 0.")


def test_a_peer_that_fails_says_why() -> None:
    wrong = {"wrong": bench.Layer((1, 4, 5), (3, 2, 2))}
    comparison = bench.compare(wrong, peers=[], threads=1, seconds=0.01)
    assert "channels" in comparison.failures["wrong"]["outstride"]
    assert str(comparison).endswith("| wrong | – |")


def test_the_times_become_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    bench.compare(LAYERS, threads=1, seconds=0.01).plot(tmp_path / "layers.svg")
    assert "milliseconds" in (tmp_path / "layers.svg").read_text()
