"""The types that the package promises to its callers."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("mypy")


ADAPTERS = {"onnx_backend": "onnx", "torch": "torch"}
"""Modules that need another package, which need not be there."""


def check(*command: str, **options: object) -> None:
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_says_that_it_is_typed() -> None:
    assert resources.files("outstride").joinpath("py.typed").is_file()


def test_the_stubs_are_those_of_the_native_module() -> None:
    check("mypy.stubtest", "outstride._native")


def test_the_package_keeps_its_own_promises() -> None:
    modules = ["outstride", "outstride.bench"]
    modules += [f"outstride.{adapter}" for adapter, package in ADAPTERS.items() if find_spec(package)]
    configuration = Path(__file__).parent.parent / "pyproject.toml"
    check("mypy", "--config-file", str(configuration), *(f"-m{module}" for module in modules))


CALLER = """
import numpy as np
import outstride
from typing_extensions import assert_type
x = np.ones((1, 1, 3), np.float32)
y = outstride.conv_transpose(x, x, stride=(2,), activation=("LeakyRelu", 0.1))
assert_type(y, np.ndarray[tuple[int, int, int], np.dtype[np.float32]])
op = outstride.ConvTranspose(x, dialect="onnx", strides=[2])
assert_type(op.output_shape(x.shape), tuple[int, ...])
op("text")  # type: ignore[type-var]
"""


def test_callers_learn_their_mistakes(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(CALLER)
    check("mypy", "--strict", "caller.py", cwd=tmp_path)
