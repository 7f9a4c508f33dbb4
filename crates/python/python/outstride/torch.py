"""outstride in PyTorch models.

    import outstride.torch

    print(outstride.torch.replace_conv_transpose(model))    # what was swapped, and what was not and why
    y = model(x)

The operator is registered as `torch.ops.outstride.conv_transpose`, so that `torch.compile` and `torch.export` take it as it is.
It runs on PyTorch's own threads, as many as `torch.get_num_threads()` says.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

import outstride
from outstride import _native
from outstride._typing import Precision

__all__ = ["Replacement", "conv_transpose", "replace_conv_transpose"]

_native.finds_torch_threads()  # here and now: after a fork it is too late

_DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    precision: str = "full",
) -> Tensor:
    """`torch.nn.functional.conv_transpose1d`, `2d` or `3d`, computed by outstride; with channels last where `x` has them last.

    Weights are prepared on the first call and again after they have changed. A change that PyTorch does not count, such as
    one through `weight.data`, is not noticed.
    """
    result: Tensor = torch.ops.outstride.conv_transpose(
        x, weight, bias, stride, padding, output_padding, groups, dilation, precision
    )
    return result


# Not by `torch.library.custom_op`: its operators load all of PyTorch's compiler when they are first called.
_OPERATOR = "outstride::conv_transpose"
torch.library.define(
    _OPERATOR, torch.library.infer_schema(conv_transpose, mutates_args=()), tags=torch.Tag.pt2_compliant_tag
)


def _compute(
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    precision: str = "full",
) -> Tensor:
    words = _Words(tuple(stride), tuple(padding), tuple(output_padding), groups, tuple(dilation), precision)
    operator = _operator(weight, bias, words)
    out = _empty_like(x, operator.output_shape(x.shape))
    _native.run_beside_torch(operator, x.detach(), out, torch.get_num_threads())
    return out


torch.library.impl(_OPERATOR, "cpu", _compute)


def _compute_shape(
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    groups: int,
    dilation: Sequence[int],
    precision: str = "full",
) -> Tensor:
    axes = weight.dim() - 2
    sizes = [
        (x.shape[axis - axes] - 1) * stride[axis]
        - 2 * padding[axis]
        + dilation[axis] * (weight.shape[axis - axes] - 1)
        + output_padding[axis]
        + 1
        for axis in range(axes)
    ]
    return _empty_like(x, [*x.shape[: x.dim() - axes - 1], weight.shape[1] * groups, *sizes])


torch.library.register_fake(_OPERATOR, _compute_shape)


def _empty_like(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Memory for the result, in the order of the input's."""
    last = _CHANNELS_LAST.get(x.dim())
    if last is not None and not x.is_contiguous() and x.is_contiguous(memory_format=last):
        return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=last)
    return x.new_empty(shape)


def _keep_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, *ctx.words, _ = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias_sizes = None if bias is None else list(bias.shape)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    stride, padding, output_padding, groups, dilation = ctx.words
    batched = x.dim() == weight.dim()
    if not batched:
        grad, x = grad[None], x[None]
    wanted = ctx.needs_input_grad[:3]
    of_x, *of_weights = torch.ops.aten.convolution_backward(
        grad, x, weight, ctx.bias_sizes, stride, padding, dilation, True, output_padding, groups, wanted
    )
    if not batched and of_x is not None:
        of_x = of_x[0]
    return (of_x, *of_weights, None, None, None, None, None, None)


torch.library.register_autograd(_OPERATOR, _gradients, setup_context=_keep_inputs)


class _Words(NamedTuple):
    """The attributes of a call."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    output_padding: tuple[int, ...]
    groups: int
    dilation: tuple[int, ...]
    precision: str


class _Prepared(NamedTuple):
    """An operator, and of what it was made."""

    state: tuple[Any, ...]
    bias: Optional[weakref.ref[Tensor]]
    operator: outstride.ConvTranspose


_PREPARED: Any = WeakTensorKeyDictionary()
"""By weight, the operator that was used last with it; gone as soon as the weight is."""


def _operator(weight: Tensor, bias: Optional[Tensor], words: _Words) -> outstride.ConvTranspose:
    def prepare() -> outstride.ConvTranspose:
        return outstride.ConvTranspose(
            weight.detach(), None if bias is None else bias.detach(), dialect="torch", **words._asdict()
        )

    if any(tensor is not None and tensor.is_inference() for tensor in (weight, bias)):
        # PyTorch does not count the changes of such tensors.
        return prepare()
    state = (words, *(_state(tensor) for tensor in (weight, bias) if tensor is not None))
    known: Optional[_Prepared] = _PREPARED.get(weight)
    if known is None or known.state != state or (known.bias and known.bias()) is not bias:
        known = _Prepared(state, None if bias is None else weakref.ref(bias), prepare())
        _PREPARED[weight] = known
    return known.operator


def _state(tensor: Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version


class _Forward:
    """`forward` of the modules, computed by outstride."""

    precision: Precision = "full"

    def forward(self: Any, input: Tensor, output_size: Optional[list[int]] = None) -> Tensor:
        axes = len(self.kernel_size)
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, axes, self.dilation
        )
        if torch.is_autocast_enabled("cpu"):
            input = input.to(self.weight.dtype)
        result: Tensor = conv_transpose(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
            self.precision,
        )
        return result


class ConvTranspose1d(_Forward, nn.ConvTranspose1d):
    """`nn.ConvTranspose1d`, computed by outstride."""


class ConvTranspose2d(_Forward, nn.ConvTranspose2d):
    """`nn.ConvTranspose2d`, computed by outstride."""


class ConvTranspose3d(_Forward, nn.ConvTranspose3d):
    """`nn.ConvTranspose3d`, computed by outstride."""


_CLASSES: dict[type[nn.Module], type[nn.Module]] = {
    nn.ConvTranspose1d: ConvTranspose1d,
    nn.ConvTranspose2d: ConvTranspose2d,
    nn.ConvTranspose3d: ConvTranspose3d,
}


@dataclass(frozen=True)
class Replacement:
    """What `replace_conv_transpose` did."""

    swapped: list[str] = field(default_factory=list)
    """The modules that outstride now computes, by name."""
    left: dict[str, str] = field(default_factory=dict)
    """The modules that were left as they were, and why."""

    def __str__(self) -> str:
        lines = [f"swapped {len(self.swapped)}: {', '.join(self.swapped) or 'none'}"]
        lines += [f"left {name}: {reason}" for name, reason in self.left.items()]
        return "\n".join(lines)


def replace_conv_transpose(module: nn.Module, *, precision: Precision = "full") -> Replacement:
    """Lets outstride compute every `nn.ConvTranspose1d`, `2d` and `3d` in `module`, itself included.

    Modules are changed in place; parameters, hooks and names of the state stay as they are. What is not swapped says why in the
    result. `precision` is that of `outstride.ConvTranspose`.
    """
    replacement = Replacement()
    for name, part in module.named_modules():
        if isinstance(part, _Forward):  # swapped before
            part.precision = precision
        elif isinstance(part, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
            called = name or "the module itself"
            reason = _reason_to_leave(part)
            if reason is None:
                _swap(part, precision)
                replacement.swapped.append(called)
            else:
                replacement.left[called] = reason
    return replacement


def _swap(module: Any, precision: Precision) -> None:
    module.__class__, module.precision = _CLASSES[type(module)], precision


def _reason_to_leave(module: nn.Module) -> Optional[str]:
    weight: Union[Tensor, nn.Module] = module.weight
    if not isinstance(weight, nn.Parameter):
        fix = "make it a parameter, as by torch.nn.utils.parametrize.remove_parametrizations"
        return f"its weight is computed anew on every call; {fix}"
    if type(module) not in _CLASSES:
        return f"{type(module).__name__} is a class of its own, whose forward may do something else"
    if weight.device.type != "cpu":
        return f"it is on {weight.device}; only the CPU computes here"
    if weight.dtype not in _DTYPES:
        return f"its type is {weight.dtype}, which nothing is computed in"
    return None
