"""A pretended GPU: tensors that say they are on a GPU, refuse to meet those of the CPU, and hold real numbers.

    with pretended_gpu():
        training.start(recipes.find("add"), path, 0, device="cuda")

It finds mixed devices on a machine without a GPU. torch's FakeTensorMode finds them too, but its tensors
have no numbers, so code that looks at one cannot run there: most of generation, the windows of
attention, early stopping. Here a tensor of the GPU wraps a tensor of the CPU, which calculates. An
operation is refused where torch would refuse it: its tensors are on two devices, and that of the CPU is
more than a single number.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from abacist.models import fused

GPU = torch.device("cuda", 0)
_BACKEND = "pretended"
"""What the GPU is called inside of torch, whose CPU builds lack CUDA but let Python register a backend."""

_CPU = torch.device("cpu")

_MOVES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}
"""Operations whose purpose is to bring numbers from one device to another."""

_TAKE_INDICES_OF_THE_CPU = {
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put.default,
    torch.ops.aten.index_put_.default,
    torch.ops.aten._index_put_impl_.default,
}


class MixedDevices(RuntimeError):
    """Tensors of the CPU and of the GPU met in one operation."""


class OnGpu(Tensor):
    """A tensor of the pretended GPU."""

    numbers: Tensor
    device = GPU  # type: ignore[assignment]
    is_cuda = True  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "OnGpu":
        tensor: OnGpu = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=torch.device(_BACKEND, 0),
            requires_grad=False,
        )
        tensor.numbers = numbers
        return tensor

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"OnGpu({self.numbers!r})"

    def tolist(self) -> Any:
        return self.numbers.tolist()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy: Tensor = OnGpu(self.numbers.detach().clone())
        if isinstance(self, nn.Parameter):
            copy = nn.Parameter(copy, self.requires_grad)
        memo[id(self)] = copy
        return copy

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _call(function, args, kwargs or {})


class _Gpu(TorchDispatchMode):
    """Sends operations with a `device` to the pretended GPU, also those without any tensor."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _call(function, args, kwargs or {})


class _Calls(TorchFunctionMode):
    """Changes the arguments of calls that torch would not bring to `_Gpu`."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is Tensor.to:
            args = tuple(_numbered(argument) for argument in args)
        elif function in (Tensor.__getitem__, Tensor.__setitem__) and isinstance(args[0], OnGpu):
            # Indices of the CPU are allowed, and torch would send them to its own backend.
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            args = (args[0], tuple(map(_sent, index)), *args[2:])
        result = function(*args, **(kwargs or {}))
        if function == Tensor.data.__set__ and isinstance(args[0], OnGpu):
            args[0].numbers = args[1].numbers
        return result


def _sent(index: Any) -> Any:
    index = torch.tensor(index) if isinstance(index, list) else index
    return OnGpu(index) if isinstance(index, Tensor) and not isinstance(index, OnGpu) else index


def _numbered(argument: Any) -> Any:
    if not isinstance(argument, str | torch.device):
        return argument
    device = torch.device(argument)
    return torch.device(_BACKEND, 0) if device.type == "cuda" else device


def _call(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    leaves = list(_leaves((args, kwargs)))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    on_gpu = [tensor for tensor in tensors if isinstance(tensor, OnGpu)]
    if function is torch.ops.aten._has_compatible_shallow_copy_type.default:
        # nn.Module asks whether a moved parameter can replace the numbers of the old one.
        return len(on_gpu) in (0, len(tensors))
    if on_gpu and function not in _MOVES:
        _check(function, args, tensors)
    devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    if not on_gpu and not devices:
        return function(*args, **kwargs)
    goes_to_gpu = devices[-1].type != "cpu" if devices else bool(on_gpu)
    if function is torch.ops.aten.copy_.default:
        goes_to_gpu = isinstance(args[0], OnGpu)
    result = function(*_map(_numbers, args), **_map(_numbers, kwargs))
    if not goes_to_gpu:
        return result
    wrapped = _map(lambda leaf: OnGpu(leaf) if isinstance(leaf, Tensor) else leaf, result)
    return return_and_correct_aliasing(function, args, kwargs, wrapped) if on_gpu else wrapped


# torch's own functions for nested arguments know many more kinds of containers, and take ten times as long.


def _leaves(nested: Any) -> Iterator[Any]:
    """Yield everything that tuples, lists and dictionaries hold."""
    if isinstance(nested, dict):
        nested = nested.values()
    elif not isinstance(nested, tuple | list):
        yield nested
        return
    for inner in nested:
        if isinstance(inner, tuple | list | dict):
            yield from _leaves(inner)
        else:
            yield inner


def _map(change: Callable[[Any], Any], nested: Any) -> Any:
    """Return nested tuples, lists and dictionaries with `change` applied to everything that they hold."""
    if isinstance(nested, tuple):
        return tuple(_map(change, inner) for inner in nested)
    if isinstance(nested, list):
        return [_map(change, inner) for inner in nested]
    if isinstance(nested, dict):
        return {key: _map(change, inner) for key, inner in nested.items()}
    return change(nested)


def _numbers(leaf: Any) -> Any:
    if isinstance(leaf, torch.device):
        return _CPU
    return leaf.numbers if isinstance(leaf, OnGpu) else leaf


def _check(function: Any, args: Any, tensors: list[Tensor]) -> None:
    if function in _TAKE_INDICES_OF_THE_CPU and isinstance(args[0], OnGpu):
        tensors = [leaf for leaf in (args[0], *args[2:]) if isinstance(leaf, Tensor)]
    strangers = [t for t in tensors if not isinstance(t, OnGpu) and t.dim() > 0]
    if strangers:
        raise MixedDevices(
            f"{function} got tensors of the GPU, and of the CPU those of shapes "
            f"{[tuple(tensor.shape) for tensor in strangers]}"
        )


class _Generator(torch.Generator):
    """A generator that may be asked for one on the GPU."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, "cpu")


def _flex_attention(
    query: Tensor, key: Tensor, value: Tensor, *, score_mod: Any, scale: float
) -> Tensor:
    """Return what torch's kernel returns, without compiling one."""
    (batch, heads, queries, _), keys = query.shape, key.shape[2]
    line, head, q, k = (
        torch.arange(size, device=query.device).view(
            [-1 if axis == own else 1 for axis in range(4)]
        )
        for own, size in enumerate((batch, heads, queries, keys))
    )
    scores = score_mod(query @ key.transpose(2, 3) * scale, line, head, q, k)
    return scores.softmax(dim=-1).to(value.dtype) @ value


class _Properties:
    name = "Pretended GPU"
    total_memory = 1 << 30


_move = nn.Module.to


def _move_with_shared_parameters(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """Move a module so that parameters which are shared stay so, as between real devices."""
    owners: dict[int, list[tuple[nn.Module, str]]] = {}
    for owner in module.modules():
        for name, parameter in owner.named_parameters(recurse=False):
            owners.setdefault(id(parameter), []).append((owner, name))
    _move(module, *args, **kwargs)
    for (first, first_name), *others in owners.values():
        for owner, name in others:
            setattr(owner, name, getattr(first, first_name))
    return module


@cache
def _register_backend() -> None:
    """Give torch the functions that it expects of a backend."""
    _setup_privateuseone_for_python_backend(_BACKEND)


@contextmanager
def pretended_gpu() -> Iterator[torch.device]:
    """Let this machine have a GPU within a `with` block, and yield it."""
    _register_backend()
    replaced = {
        (torch.cuda, "is_available"): lambda: True,
        (torch.cuda, "is_bf16_supported"): lambda: True,
        (torch.cuda, "_lazy_init"): lambda: None,
        (torch.cuda, "current_device"): lambda: 0,
        (torch.cuda, "get_device_properties"): lambda number: _Properties,
        (torch.cuda.amp.common, "amp_definitely_not_available"): lambda: False,
        (torch, "Generator"): _Generator,
        (nn.Module, "to"): _move_with_shared_parameters,
        # Views of wrapped tensors cannot be taken in inference mode.
        (torch._C, "_InferenceMode"): lambda mode: torch.no_grad() if mode else nullcontext(),
        (fused, "_kernel"): lambda *_: _flex_attention,
    }
    with ExitStack() as stack:
        for (module, name), replacement in replaced.items():
            stack.enter_context(mock.patch.object(module, name, replacement))
        stack.enter_context(_Gpu())
        stack.enter_context(_Calls())
        yield GPU
