"""ONNX's backend interface for models whose nodes are all ConvTranspose, so that ONNX's own tests run against outstride.

    import onnx
    import outstride.onnx_backend as backend

    y, = backend.run_model(onnx.load("upsample.onnx"), [x])

A node of the domain `com.ms.internal.nhwc` is read as the dialect "ort-nhwc". Weights that are initializers are prepared once,
by `prepare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx.backend.base
import onnx.defs
import onnx.helper
import onnx.numpy_helper

from outstride._native import ConvTranspose, UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = dict[str, NDArray[Any]]

_DIALECTS = {"": "onnx", "ai.onnx": "onnx", "com.ms.internal.nhwc": "ort-nhwc"}
"""How the operator is spelt in each domain that has it."""


class Backend(onnx.backend.base.Backend):
    """Runs ONNX models whose nodes are all ConvTranspose."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether every node of the model is one that runs here."""
        return cls.supports_device(device) and all(map(_is_conv_transpose, model.graph.node))

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PreparedModel:
        """Checks the model and prepares the weights that it holds."""
        _check_device(device)
        super().prepare(model, device, **kwargs)
        return PreparedModel(model)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[NDArray[Any]]:
        """Runs one node, of the newest opset unless `opset_version` says otherwise."""
        _check_device(device)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        names = [name for name in node.input if name]
        return (_Node(node, opset, {}).run(dict(zip(names, inputs, strict=True))),)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """The CPU, whatever its number."""
        return device.split(":")[0] == "CPU"


class PreparedModel(onnx.backend.base.BackendRep):
    """A model with its weights prepared."""

    def __init__(self, model: onnx.ModelProto) -> None:
        opsets = {opset.domain: opset.version for opset in model.opset_import}
        graph = model.graph
        self._weights = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._nodes = [_Node(node, opsets.get(node.domain), self._weights) for node in graph.node]
        self._inputs = [value.name for value in graph.input if value.name not in self._weights]
        self._outputs = [value.name for value in graph.output]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """The outputs, in the order of the graph; inputs come in that order or by name."""
        given = inputs if isinstance(inputs, Mapping) else dict(zip(self._inputs, inputs, strict=True))
        tensors = {**self._weights, **given}
        for node in self._nodes:
            tensors[node.output] = node.run(tensors)
        return tuple(tensors[name] for name in self._outputs)


class _Node:
    """A node, with its weights prepared where they are known."""

    def __init__(self, node: onnx.NodeProto, opset: int | None, known: Tensors) -> None:
        if not _is_conv_transpose(node):
            raise UnsupportedError(
                f"node `{node.name}` is {node.domain or 'ai.onnx'}.{node.op_type}; only ConvTranspose runs here"
            )
        self.output = node.output[0]
        self._x, self._weight, self._bias = (*node.input, "")[:3]
        self._words: dict[str, Any] = {"dialect": _DIALECTS[node.domain], "opset": opset}
        self._words.update((attribute.name, _value(attribute)) for attribute in node.attribute)
        fixed = self._weight in known and (not self._bias or self._bias in known)
        self._prepared = self._prepare(known) if fixed else None

    def run(self, tensors: Tensors) -> NDArray[Any]:
        op = self._prepared or self._prepare(tensors)
        return op(tensors[self._x])

    def _prepare(self, tensors: Tensors) -> ConvTranspose:
        return ConvTranspose(tensors[self._weight], tensors.get(self._bias), **self._words)


def _is_conv_transpose(node: onnx.NodeProto) -> bool:
    return node.op_type == "ConvTranspose" and node.domain in _DIALECTS


def _value(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value


def _check_device(device: str) -> None:
    if not Backend.supports_device(device):
        raise UnsupportedError(f"device {device} is not the CPU, and only the CPU runs here")


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
