"""Models with transposed convolutions, as they are published, at any width; run as a program, this times them before and after
the swap, as `cargo xtask compare --models` does."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import statistics
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def dcgan(width: int = 64, latent: int = 100) -> nn.Module:
    """The generator of DCGAN for 64×64 pictures."""
    layers: list[nn.Module] = []
    channels = [latent, 8 * width, 4 * width, 2 * width, width]
    for index, (before, after) in enumerate(zip(channels, channels[1:], strict=False)):
        stride, padding = (1, 0) if index == 0 else (2, 1)
        layers += [nn.ConvTranspose2d(before, after, 4, stride, padding, bias=False), nn.BatchNorm2d(after), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


class ResBlock(nn.Module):
    """HiFi-GAN's residual block: three pairs of convolutions of growing dilation."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        same = lambda d: nn.Conv1d(channels, channels, kernel, 1, d * (kernel - 1) // 2, d)  # noqa: E731
        self.pairs = nn.ModuleList(nn.ModuleList([same(d), same(1)]) for d in (1, 3, 5))

    def forward(self, x: Tensor) -> Tensor:
        for first, second in self.pairs:
            x = x + second(F.leaky_relu(first(F.leaky_relu(x, 0.1)), 0.1))
        return x


class HiFiGan(nn.Module):
    """The generator of HiFi-GAN (V1 at width 512): 80 mel bands to a waveform 256 times as long."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.before = nn.Conv1d(80, width, 7, 1, 3)
        self.ups, self.blocks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel in ((8, 16), (8, 16), (2, 4), (2, 4)):
            self.ups.append(nn.ConvTranspose1d(width, width // 2, kernel, rate, (kernel - rate) // 2))
            width //= 2
            self.blocks.append(nn.ModuleList(ResBlock(width, kernel) for kernel in (3, 7, 11)))
        self.after = nn.Conv1d(width, 1, 7, 1, 3)

    def forward(self, mel: Tensor) -> Tensor:
        x = self.before(mel)
        for up, blocks in zip(self.ups, self.blocks, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.after(F.leaky_relu(x)))


class UNetDecoder(nn.Module):
    """The decoder of a U-Net: upsampling by transposed convolution, beside what the encoder saw."""

    def __init__(self, width: int = 1024, steps: int = 4) -> None:
        super().__init__()
        self.ups, self.convs = nn.ModuleList(), nn.ModuleList()
        for _ in range(steps):
            half = width // 2
            self.ups.append(nn.ConvTranspose2d(width, half, 2, 2))
            self.convs.append(nn.Sequential(nn.Conv2d(width, half, 3, 1, 1), nn.ReLU(), nn.Conv2d(half, half, 3, 1, 1), nn.ReLU()))
            width = half

    def forward(self, x: Tensor) -> Tensor:
        for up, conv in zip(self.ups, self.convs, strict=True):
            x = up(x)
            x = conv(torch.cat([x, torch.zeros_like(x)], 1))
        return x


def models(full: bool) -> dict[str, tuple[nn.Module, Tensor]]:
    """Each model with an input: as published, or small enough for tests."""
    torch.manual_seed(0)
    shrink = 1 if full else 8
    return {
        "DCGAN generator, batch 8": (dcgan(64 // shrink).eval(), torch.randn(8, 100, 1, 1)),
        "HiFi-GAN V1, 64 frames": (HiFiGan(512 // shrink).eval(), torch.randn(1, 80, 64 if full else 8)),
        "U-Net decoder, 16×16 upwards": (UNetDecoder(1024 // shrink // 2).eval(), torch.randn(1, 1024 // shrink // 2, 16, 16)),
    }


class Clock:
    """Times runs of a model and, of those, its transposed convolutions together."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.runs: list[tuple[float, float]] = []
        self._began = self._inside = 0.0
        for part in model.modules():
            if isinstance(part, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
                part.register_forward_pre_hook(self._begin)
                part.register_forward_hook(self._end)

    def _begin(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _end(self, *_: object) -> None:
        self._inside += time.perf_counter() - self._began

    def run(self, x: Tensor) -> None:
        begin, self._inside = time.perf_counter(), 0.0
        self.model(x)
        self.runs.append((time.perf_counter() - begin, self._inside))


def steady_memory() -> None:
    """Keeps the C library from giving the memory of tensors back to the system, and asking for it anew, in every run.

    It does so in some processes and not in others, depending on what else lies in its heap; in HiFi-GAN the page faults take as much
    of the processors' time as the transposed convolutions.
    """
    trim_threshold, mmap_threshold = -1, -3
    with contextlib.suppress(AttributeError):  # other libraries have no such function
        allocator = ctypes.CDLL(None)
        allocator.mallopt(trim_threshold, 1 << 30)
        allocator.mallopt(mmap_threshold, 1 << 25)


FEWEST_RUNS = 400
"""So that the interval around a median is of about a percent, on a shared machine too."""


def compare(model: nn.Module, x: Tensor, seconds: float) -> str:
    """The cells of a row: whole runs and the layers alone, each before and after the swap, and how many times faster."""
    import outstride.torch

    # The same weights at the same addresses, so that only the layers differ.
    weights = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    swapped = copy.deepcopy(model, weights)
    outstride.torch.replace_conv_transpose(swapped)
    before, after = Clock(model), Clock(swapped)
    turns = [before, after]
    with torch.inference_mode():
        torch.testing.assert_close(swapped(x), model(x))
        end = time.perf_counter() + seconds
        while len(before.runs) < FEWEST_RUNS or time.perf_counter() < end:
            for clock in turns:
                clock.run(x)
            turns.reverse()  # neither always comes first
    cells = []
    for b, a in zip(zip(*before.runs[2:], strict=True), zip(*after.runs[2:], strict=True), strict=True):
        # Of neighbours in time, so that a slow moment of the machine hits both.
        faster = sorted(one / other for one, other in zip(b, a, strict=True))
        middle, around = len(faster) // 2, round(0.98 * len(faster) ** 0.5)  # 95 % of the binomial distribution
        interval = f"{faster[middle]:.2f} ({faster[middle - around]:.2f} to {faster[middle + around]:.2f})"
        cells.append(f"{statistics.median(b) * 1e3:.2f} | {statistics.median(a) * 1e3:.2f} | {interval}")
    return " | ".join([str(len(before.runs)), *cells])


def main() -> None:
    steady_memory()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 15.0
    print(f"PyTorch {torch.__version__.split('+')[0]}, {torch.get_num_threads()} threads.\n")
    print("| model | runs | before, ms | after, ms | times faster | layers before, ms | layers after, ms | times faster |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, (model, x) in models(full=True).items():
        print(f"| {name} | {compare(model, x, seconds)} |")


if __name__ == "__main__":
    main()
