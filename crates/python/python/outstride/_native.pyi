from collections.abc import Sequence
from typing import Any, final

from outstride._typing import Activation, Precision, SupportsDLPack, TensorT

__all__ = ["ConvTranspose", "InvalidError", "UnsupportedError", "restore", "time_runs"]

class InvalidError(ValueError): ...
class UnsupportedError(NotImplementedError): ...

@final
class ConvTranspose:
    def __new__(
        cls,
        weight: SupportsDLPack,
        bias: SupportsDLPack | None = None,
        *,
        dialect: str = "torch",
        policy: str = "spec",
        activation: Activation | None = None,
        precision: Precision = "full",
        opset: int | None = None,
        **attributes: Any,
    ) -> ConvTranspose: ...
    def __call__(self, x: TensorT, *, out: TensorT | None = None, threads: int | None = None) -> TensorT: ...
    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]: ...
    def explain(self, shape: Sequence[int], *, threads: int | None = None) -> str: ...
    @property
    def dialect(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

def restore(
    dtype: str,
    shape: Sequence[int],
    weight: bytes,
    bias: bytes | None,
    words: dict[str, Any],
) -> ConvTranspose: ...
def time_runs(op: ConvTranspose, x: TensorT, out: TensorT, times: int) -> float: ...
