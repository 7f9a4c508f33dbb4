"""Layer times beside the peers that are installed: PyTorch, ONNX Runtime and OpenVINO.

    from outstride import bench

    comparison = bench.compare({"up": bench.Layer((1, 256, 64, 64), (256, 128, 4, 4), stride=2, padding=1)})
    print(comparison)
    comparison.plot("layers.svg")

All get the same tensors and as many threads, and run in turns; the median of their times counts.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outstride import _peers
from outstride._layer import Layer

__all__ = ["Comparison", "Layer", "compare"]

_TURNS = 5


@dataclass(frozen=True)
class Comparison:
    """The times of layers, by implementation."""

    milliseconds: dict[str, dict[str, float]]
    """By layer, then by implementation; one that cannot run a layer is missing there."""
    failures: dict[str, dict[str, str]]
    """By layer, then by implementation, why it could not run."""

    @property
    def implementations(self) -> list[str]:
        """Everything that ran some layer, outstride first."""
        return list(dict.fromkeys(name for times in self.milliseconds.values() for name in times))

    def __str__(self) -> str:
        names = self.implementations
        rows = [["layer", *(f"{name}, ms" for name in names), "times the fastest peer"]]
        rows.append(["---"] * len(rows[0]))
        for layer, times in self.milliseconds.items():
            shown = [f"{times[name]:.3f}" if name in times else "–" for name in names]
            peers = [value for name, value in times.items() if name != "outstride"]
            ratio = f"{min(peers) / times['outstride']:.2f}" if peers and "outstride" in times else "–"
            rows.append([layer, *shown, ratio])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """A picture of the times, one group of bars per layer; written to `path` where given. Needs matplotlib."""
        from matplotlib.figure import Figure

        names, layers = self.implementations, list(self.milliseconds)
        figure = Figure(figsize=(8, 1.2 + 0.22 * len(layers) * (len(names) + 1)), layout="constrained")
        axes = figure.subplots()
        for index, name in enumerate(names):
            shown = [(row, times[name]) for row, times in enumerate(self.milliseconds.values()) if name in times]
            places = [row + 0.8 * (index + 0.5) / len(names) - 0.4 for row, _ in shown]
            axes.barh(places, [value for _, value in shown], 0.8 / len(names), label=name)
        axes.set_yticks(range(len(layers)), layers)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("milliseconds")
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure


def compare(
    layers: Mapping[str, Layer],
    *,
    peers: Sequence[str] | None = None,
    threads: int | None = None,
    seconds: float = 0.3,
) -> Comparison:
    """Times layers here and with every peer that is installed, or those named, for about `seconds` each."""
    chosen = ["outstride", *(_peers.installed() if peers is None else peers)]
    threads = threads or _available_threads()
    comparison = Comparison({}, {})
    for name, layer in layers.items():
        comparison.milliseconds[name], comparison.failures[name] = _measure(layer, chosen, threads, seconds)
    return comparison


def _available_threads() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _measure(
    layer: Layer, names: Sequence[str], threads: int, seconds: float
) -> tuple[dict[str, float], dict[str, str]]:
    x, weight, bias = layer.tensors()
    runs: dict[str, Callable[[Any], Any]] = {}
    failures: dict[str, str] = {}
    for name in names:
        prepare = _peers.outstride if name == "outstride" else _peers.PEERS[name]
        try:
            runs[name] = prepare(layer, weight, bias, threads)
            runs[name](x)
        except Exception as error:  # whatever a peer raises, the others go on
            runs.pop(name, None)
            failures[name] = str(error)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_TURNS):
        for name, run in runs.items():
            times[name] += _times(run, x, seconds / _TURNS)
    return {name: statistics.median(each) * 1e3 for name, each in times.items()}, failures


def _times(run: Callable[[Any], Any], x: Any, seconds: float) -> list[float]:
    run(x)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        run(x)
        times.append(time.perf_counter() - begin)
    return times
