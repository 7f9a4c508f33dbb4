"""PyTorch: its tensors, its modules, its compilers."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from geometries import geometries  # noqa: E402
from hypothesis import given, settings  # noqa: E402
from reference import Geometry  # noqa: E402
from torch import nn  # noqa: E402
from torch_models import models  # noqa: E402

import outstride  # noqa: E402
import outstride.torch as ot  # noqa: E402

FUNCTIONS = [nn.functional.conv_transpose1d, nn.functional.conv_transpose2d, nn.functional.conv_transpose3d]


@given(geometries())
def test_results_are_pytorchs(g: Geometry) -> None:
    x, w, bias = (None if array is None else torch.from_numpy(array) for array in g.tensors())
    y = outstride.conv_transpose(x, w, bias, **g.attributes)
    assert type(y) is torch.Tensor
    torch.testing.assert_close(y, FUNCTIONS[len(g.input) - 1](x, w, bias, **g.attributes), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int64])
def test_tensors_of_every_type_come_back(dtype: torch.dtype) -> None:
    x, w = torch.arange(12).reshape(1, 2, 6).to(dtype), torch.ones(2, 3, 4).to(dtype)
    y = outstride.conv_transpose(x, w, stride=2)
    assert y.dtype == dtype
    torch.testing.assert_close(y, nn.functional.conv_transpose1d(x.double(), w.double(), stride=2).to(dtype))


def test_tensors_are_used_in_place() -> None:
    x = torch.randn(2, 3, 8, 9).to(memory_format=torch.channels_last)[:, :, ::2]
    w = torch.randn(3, 5, 4, 4)
    expected = nn.functional.conv_transpose2d(x, w, stride=2)
    out = torch.full((*expected.shape, 2), torch.nan)[..., 0]
    address = out.data_ptr()
    assert outstride.conv_transpose(x, w, stride=2, out=out) is out
    assert out.data_ptr() == address
    torch.testing.assert_close(out, expected)


def test_results_outlive_everything() -> None:
    y = outstride.conv_transpose(torch.ones(1, 1, 2), torch.ones(1, 1, 2))
    z = y.view(-1)[1:]
    del y
    gc.collect()
    assert z.tolist() == [2, 1]
    z.add_(1)


def test_tensors_elsewhere_or_with_gradients_are_refused() -> None:
    w = torch.ones(1, 1, 2)
    with pytest.raises((BufferError, RuntimeError), match="gradient"):
        outstride.conv_transpose(torch.ones(1, 1, 2, requires_grad=True), w)
    with pytest.raises(Exception, match="meta|device|storage"):
        outstride.conv_transpose(torch.ones(1, 1, 2, device="meta"), w)


ARGUMENTS = [
    (torch.randn(2, 4, 7), torch.randn(4, 3, 4), torch.randn(6), [2], [1], [1], 2, [1]),
    (torch.randn(1, 3, 5, 6), torch.randn(3, 2, 3, 2), None, [2, 1], [1, 0], [0, 0], 1, [1, 2]),
    (torch.randn(3, 3, 4, 4), torch.randn(3, 2, 2, 2, 2), None, [2, 2, 2], [0] * 3, [0] * 3, 1, [1] * 3),
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=["1d", "2d", "3d without a batch"])
@pytest.mark.parametrize("gradients", [False, True])
def test_the_operator_is_registered_as_pytorch_wants_it(arguments: tuple, gradients: bool) -> None:
    tensors = [t if t is None else t.clone().requires_grad_(gradients) for t in arguments[:3]]
    torch.library.opcheck(torch.ops.outstride.conv_transpose.default, (*tensors, *arguments[3:]))


def test_gradients_are_pytorchs() -> None:
    x, w, bias, *words = ARGUMENTS[0]
    grads = []
    for function in (ot.conv_transpose, nn.functional.conv_transpose1d):
        tensors = [t.clone().requires_grad_() for t in (x, w, bias)]
        function(*tensors, *words).square().sum().backward()
        grads.append([t.grad for t in tensors])
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("name", list(models(full=False)))
def test_swapped_models_give_the_same(name: str) -> None:
    model, x = models(full=False)[name]
    swapped = copy.deepcopy(model)
    done = ot.replace_conv_transpose(swapped)
    assert len(done.swapped) >= 4 and not done.left
    assert swapped.state_dict().keys() == model.state_dict().keys()
    with torch.inference_mode():
        torch.testing.assert_close(swapped(x), model(x))
    torch.testing.assert_close(swapped(x), model(x))


def test_a_model_may_be_strict() -> None:
    model, x = small()
    expected = copy.deepcopy(model)(x)
    ot.replace_conv_transpose(model, precision="strict")
    assert model[0].precision == copy.deepcopy(model)[2].precision == "strict"
    torch.testing.assert_close(model(x), expected)
    ot.replace_conv_transpose(model)
    assert model[0].precision == "full", "the last word counts"
    ot.replace_conv_transpose(model, precision="half")
    with pytest.raises(outstride.InvalidError, match="`precision` must be one of full, strict"):
        model(x)


def small() -> tuple[nn.Module, torch.Tensor]:
    model = nn.Sequential(nn.ConvTranspose2d(3, 4, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3, 2, 1, 1))
    return model.eval(), torch.randn(1, 3, 5, 6)


def test_a_first_call_does_not_load_pytorchs_compiler() -> None:
    program = """
import sys, torch, outstride.torch
module = torch.nn.ConvTranspose1d(2, 3, 4)
outstride.torch.replace_conv_transpose(module)
module(torch.ones(1, 2, 5)).sum().backward()
with torch.inference_mode():
    module(torch.ones(1, 2, 5))
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n", "it takes a second and 150 MB"


def test_models_can_be_compiled() -> None:
    model, x = small()
    expected = model(x)
    ot.replace_conv_transpose(model)
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), expected)
        wide = torch.randn(2, 3, 7, 9)
        torch.testing.assert_close(compiled(wide), model(wide))


def test_models_can_be_exported() -> None:
    model, x = small()
    expected = model(x)
    ot.replace_conv_transpose(model)
    size = torch.export.Dim("height", min=2, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=({2: size},))
    torch.testing.assert_close(program.module()(x), expected)
    tall = torch.randn(1, 3, 11, 6)
    torch.testing.assert_close(program.module()(tall), model(tall))


def test_weights_are_prepared_once_and_again_after_a_change(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    monkeypatch.setattr(outstride, "ConvTranspose", lambda *a, **k: prepared.append(1) or Original(*a, **k))
    Original = outstride._native.ConvTranspose  # noqa: N806
    module, x = nn.ConvTranspose1d(2, 3, 4, 2), torch.randn(1, 2, 5)
    reference = copy.deepcopy(module)
    ot.replace_conv_transpose(module)
    for length in (5, 6, 5):
        with torch.inference_mode():
            module(x[..., :length])
    module(x)
    assert len(prepared) == 1
    with torch.no_grad():
        for part in (module, reference):
            part.weight.mul_(2)
            part.bias.add_(1)
    torch.testing.assert_close(module(x), reference(x))
    assert len(prepared) == 2
    state = {"weight": torch.randn(2, 3, 4), "bias": torch.randn(3)}
    for part in (module, reference):
        part.load_state_dict(state)
    torch.testing.assert_close(module(x), reference(x))
    for part in (module, reference):
        part.double()
    torch.testing.assert_close(module(x.double()), reference(x.double()))


def test_prepared_weights_go_with_the_model() -> None:
    module = nn.ConvTranspose1d(2, 3, 4)
    ot.replace_conv_transpose(module)
    gc.collect()
    before = len(ot._PREPARED)
    module(torch.randn(1, 2, 5))
    assert len(ot._PREPARED) == before + 1
    del module
    gc.collect()
    assert len(ot._PREPARED) == before


@pytest.mark.parametrize("axes", [2, 3])
def test_channels_stay_last(axes: int) -> None:
    last = {2: torch.channels_last, 3: torch.channels_last_3d}[axes]
    module = {2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[axes](3, 4, 4, 2, 1)
    x = torch.randn(2, 3, *[5] * axes).to(memory_format=last)
    expected = module(x)
    ot.replace_conv_transpose(module)
    with torch.no_grad():
        y = module(x)
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")(x)
    assert y.is_contiguous(memory_format=last) and compiled.is_contiguous(memory_format=last)
    assert module(x.contiguous()).is_contiguous()
    torch.testing.assert_close(y, expected)


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


WIDE = torch.randn(1, 32, 48, 48)


def wide() -> nn.Module:
    module = nn.ConvTranspose2d(32, 16, 4, 2, 1).eval().requires_grad_(False)
    ot.replace_conv_transpose(module)
    return module


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they are not looked for")
def test_pytorchs_own_threads_are_found() -> None:
    if "ATen parallel backend: OpenMP" not in torch.__config__.parallel_info():
        pytest.skip("PyTorch was built with other threads")
    assert outstride._native.finds_torch_threads()


@pytest.mark.usefixtures("threads")
def test_results_do_not_depend_on_pytorchs_threads() -> None:
    module, results = wide(), []
    for count in (1, 2, 3, 8):
        torch.set_num_threads(count)
        results.append(module(WIDE))
    assert all(torch.equal(result, results[0]) for result in results)


def test_many_threads_may_share_a_module() -> None:
    module = wide()
    inputs = [WIDE * scale for scale in range(1, 9)]
    expected = [module(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for result, once in zip(pool.map(module, inputs * 5), expected * 5, strict=True):
            assert torch.equal(result, once)


def child(module: nn.Module, queue: multiprocessing.Queue) -> None:
    queue.put(module(WIDE).numpy())


@pytest.mark.usefixtures("threads")
@pytest.mark.skipif(sys.platform != "linux", reason="there is no fork, or no use of it")
def test_a_forked_process_does_not_wait_for_threads_it_has_not() -> None:
    torch.set_num_threads(2)
    module = wide()
    expected = module(WIDE)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(module, queue))
    process.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected.numpy())
    process.join()


def test_a_module_can_be_asked_for_an_output_size() -> None:
    module, x = nn.ConvTranspose2d(2, 3, 3, 2, 1), torch.randn(1, 2, 5, 5)
    expected = module(x, output_size=[10, 9])
    ot.replace_conv_transpose(module)
    torch.testing.assert_close(module(x, output_size=[10, 9]), expected)


def test_what_cannot_be_swapped_says_why() -> None:
    class Own(nn.ConvTranspose2d):
        pass

    normed = nn.utils.parametrizations.weight_norm(nn.ConvTranspose1d(2, 2, 3))
    model = nn.ModuleDict(
        {
            "fine": nn.ConvTranspose3d(2, 2, 3),
            "own": Own(2, 2, 3),
            "normed": normed,
            "elsewhere": nn.ConvTranspose1d(2, 2, 3, device="meta"),
            "complex": nn.ConvTranspose1d(2, 2, 3, dtype=torch.complex64),
            "other": nn.Conv2d(2, 2, 3),
        }
    )
    done = ot.replace_conv_transpose(model)
    assert done.swapped == ["fine"]
    assert list(done.left) == ["own", "normed", "elsewhere", "complex"]
    assert "left own: Own is a class of its own" in str(done)
    assert "computed anew on every call" in done.left["normed"]
    assert "it is on meta" in done.left["elsewhere"] and "complex64" in done.left["complex"]
    assert ot.replace_conv_transpose(model).swapped == [], "what is swapped stays swapped"


def test_a_module_can_be_swapped_itself_under_autocast() -> None:
    module, x = nn.ConvTranspose1d(2, 3, 4), torch.randn(1, 2, 5)
    assert ot.replace_conv_transpose(module).swapped == ["the module itself"]
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x.bfloat16()).shape == (1, 3, 8)


@settings(max_examples=100)
@given(geometries())
def test_numpy_weights_serve_torch_tensors(g: Geometry) -> None:
    x, w, bias = g.tensors()
    y = outstride.conv_transpose(torch.from_numpy(x), w, bias, **g.attributes)
    np.testing.assert_array_equal(y.numpy(), outstride.conv_transpose(x, w, bias, **g.attributes))
