"""Types of arguments."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar


class SupportsDLPack(Protocol):
    """A tensor of any library: NumPy, PyTorch, JAX and others."""

    def __dlpack__(self) -> Any: ...


TensorT = TypeVar("TensorT", bound=SupportsDLPack)

Sizes: TypeAlias = int | Sequence[int]
"""One number for all spatial axes, or one for each."""

Precision: TypeAlias = Literal["full", "strict", "bf16-compute"]
"""How sums may be computed."""

Activation: TypeAlias = str | tuple[str, float] | tuple[str, float, float]
"""A name, with its parameters where it has some."""
