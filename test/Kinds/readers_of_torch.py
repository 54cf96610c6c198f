"""Ways to read a tensor's value: constructors, conversions, storages, copies, functions that bypass __torch_function__
(torch.overrides.get_ignored_functions), and what calls PyTorch from C++."""
from __future__ import annotations

import copy
import ctypes
import io
import math
import multiprocessing.reduction
import operator
import pickle
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing
import torch.nn.functional as F
import torch.utils.dlpack
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

Reader = Callable[[torch.Tensor], Any]


class _Sub(torch.Tensor):
    pass


class _Double(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


@torch.library.custom_op("readers::twice", mutates_args=())
def _twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class _Owner(nn.Module):
    def __init__(self, tensor: torch.Tensor):
        super().__init__()
        self.register_buffer("tensor", tensor) if not isinstance(tensor, nn.Parameter) else setattr(self, "tensor", tensor)

    def forward(self) -> torch.Tensor:
        return self.tensor * 2


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def _scripted(p: torch.Tensor) -> Any:
    return torch.jit.script(_double)(p)


def _saved(p: torch.Tensor) -> Any:
    file = io.BytesIO()
    torch.save(p, file)
    file.seek(0)
    return torch.load(file)


def _saved_numpy(p: torch.Tensor) -> Any:
    file = io.BytesIO()
    np.save(file, p.detach().float().numpy())
    return file.getvalue()


def _memory(p: torch.Tensor) -> bytes:
    return ctypes.string_at(p.data_ptr(), p.numel() * p.element_size())


def _data_of_other(p: torch.Tensor) -> Any:
    other = torch.empty(p.shape, dtype=p.dtype)
    other.data = p
    return other


def _module(p: torch.Tensor) -> nn.Module:
    return _Owner(p)


def _process_group() -> None:
    if not dist.is_initialized():
        dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())


def _collective(function: Callable[[torch.Tensor], Any]) -> Reader:
    """A collective of one process that reads a tensor."""
    def reader(p: torch.Tensor) -> Any:
        _process_group()
        return function(p)
    return reader


def _all_gather(p: torch.Tensor) -> Any:
    found = [torch.empty_like(p.detach())]
    dist.all_gather(found, p)
    return found


def _eager(backend: str) -> Reader:
    return lambda p: torch.compile(_double, backend=backend)(p)


CONSTRUCTORS: dict[str, Reader] = {
    "torch.tensor": torch.tensor,
    "torch.tensor, dtype": lambda p: torch.tensor(p, dtype=torch.float64),
    "torch.tensor of a list": lambda p: torch.tensor([p, p]),
    "torch.tensor of an entry": lambda p: torch.tensor([p[0, 0].item()]),
    "torch.tensor of entries": lambda p: torch.tensor(list(p)),
    "torch.as_tensor": torch.as_tensor,
    "torch.as_tensor, dtype": lambda p: torch.as_tensor(p, dtype=torch.float64),
    "torch.as_tensor of a list": lambda p: torch.as_tensor([p]),
    "torch.asarray": torch.asarray,
    "torch.asarray, dtype": lambda p: torch.asarray(p, dtype=torch.float64),
    "torch.asarray, copy": lambda p: torch.asarray(p, copy=True),
    "torch.scalar_tensor": lambda p: torch.scalar_tensor(p),
    "torch.Tensor": torch.Tensor,
    "torch.Tensor of a list": lambda p: torch.Tensor([p]),
    "torch.FloatTensor": torch.FloatTensor,
    "torch.FloatTensor of detach()": lambda p: torch.FloatTensor(p.detach()),
    "torch.LongTensor": torch.LongTensor,
    "nn.Parameter": lambda p: nn.Parameter(p, requires_grad=p.is_floating_point()),
    "nn.Buffer": lambda p: nn.Buffer(p),
    "a subclass": lambda p: _Sub(p).detach().as_subclass(torch.Tensor),
    "as_subclass": lambda p: p.as_subclass(_Sub).detach().as_subclass(torch.Tensor),
    "_make_subclass": lambda p: torch.Tensor._make_subclass(torch.Tensor, p),
    "new_tensor": lambda p: p.new_tensor(p),
    "new_tensor of another": lambda p: torch.ones(1).new_tensor(p),
    "new": lambda p: p.new(p),
    "new_full": lambda p: torch.ones(1).new_full((2,), p),
    "torch.full": lambda p: torch.full((2,), p),
    "torch.fill": lambda p: torch.fill(torch.zeros(2), p),
    "fill_": lambda p: torch.zeros(2).fill_(p),
    "full_like": lambda p: torch.full_like(torch.zeros(2), p),
    "torch.arange": lambda p: torch.arange(p),
    "torch.linspace": lambda p: torch.linspace(0, p, 3),
    "torch.linspace of tensors": lambda p: torch.linspace(p, p + 1, 3),
    "torch.logspace": lambda p: torch.logspace(0, p, 3),
    "torch.eye": lambda p: torch.eye(p),
    "torch.zeros": lambda p: torch.zeros(p),
    "torch.zeros of a list": lambda p: torch.zeros([p, 2]),
    "torch.randperm": lambda p: torch.randperm(p).sort().values,
    "torch.tril_indices": lambda p: torch.tril_indices(p, 3),
    "torch.vander": lambda p: torch.vander(p),
    "torch.complex": lambda p: torch.complex(p, p),
    "torch.normal": lambda p: torch.normal(p, p * 0),
    "torch.nested.nested_tensor": lambda p: torch.nested.nested_tensor([p]),
    "torch.nested.as_nested_tensor": lambda p: torch.nested.as_nested_tensor([p]),
    "torch.nested.nested_tensor, jagged": lambda p: torch.nested.nested_tensor([p], layout=torch.jagged).values(),
    "torch.nested.narrow": lambda p: torch.nested.narrow(p, 1, 0, 2, layout=torch.jagged).values(),
    "sparse_coo_tensor": lambda p: torch.sparse_coo_tensor(torch.tensor([[0]]), p[:1], (2, *p.shape[1:])),
    "sparse_coo_tensor, indices": lambda p: torch.sparse_coo_tensor(p, torch.ones(2), (99,)),
    "sparse_csr_tensor": lambda p: torch.sparse_csr_tensor(torch.tensor([0, 4]), torch.arange(4), p, (1, 4)),
    "sparse_compressed_tensor": lambda p: torch.sparse_compressed_tensor(torch.tensor([0, 4]), torch.arange(4), p, (1, 4),
                                                                        layout=torch.sparse_csr),
    "sparse_bsr_tensor": lambda p: torch.sparse_bsr_tensor(torch.tensor([0, 1]), torch.tensor([0]), p[None], (3, 4)),
    "torch.device scope": lambda p: _in_device(p),
}


def _in_device(p: torch.Tensor) -> Any:
    with torch.device("cpu"):
        return torch.tensor(p)


CONVERSIONS: dict[str, Reader] = {
    "tolist": lambda p: p.tolist(), "item": lambda p: p.item(), "list": lambda p: [t.tolist() for t in p], "float": float, "int": int,
    "bool": bool, "complex": complex, "index": operator.index, "range": lambda p: list(range(p)), "subscript": lambda p: list(range(99))[p],
    "repr": repr, "str": str, "format": lambda p: f"{p}", "format of a number": lambda p: f"{p:.6f}", "percent": lambda p: "%.6f" % p,
    "math": math.sqrt, "round": lambda p: round(float(p), 6), "struct": lambda p: struct.pack("d", p), "in": lambda p: 1e9 in p,
    "sum": lambda p: sum(p), "max": lambda p: max(p.flatten()), "sorted": lambda p: sorted(p.flatten().tolist()), "contains": lambda p: p[0] in p,
    "numpy": lambda p: p.numpy().copy().tolist(), "numpy, force": lambda p: p.numpy(force=True).copy().tolist(),
    "np.asarray": lambda p: np.asarray(p).tolist(), "np.array": lambda p: np.array(p).tolist(),
    "np.array of a list": lambda p: np.array([p, p]).tolist(),
    "np.asarray, dtype": lambda p: np.asarray(p, dtype=np.float64).tolist(), "np.asarray of detach()": lambda p: np.asarray(p.detach()).tolist(),
    "__array__": lambda p: p.__array__().tolist(), "np.from_dlpack": lambda p: np.from_dlpack(p).tolist(), "np.sum": lambda p: float(np.sum(p)),
    "np.add": lambda p: np.add(p, 1).tolist(), "np.matmul": lambda p: np.ones(3) @ p, "np.float64": lambda p: float(np.float64(p)),
    "np.full": lambda p: np.full(2, p).tolist(), "np.copyto": lambda p: np.copyto(np.zeros(p.shape), p),
    "np.isfinite": lambda p: np.isfinite(p).tolist(), "np.save": _saved_numpy,
    "memoryview": lambda p: bytes(memoryview(p.numpy())), "torch.frombuffer": lambda p: torch.frombuffer(memoryview(p.numpy()), dtype=p.dtype),
    "torch.from_numpy": lambda p: torch.from_numpy(p.numpy()), "torch.from_dlpack": torch.from_dlpack,
    "torch.from_dlpack of detach()": lambda p: torch.from_dlpack(p.detach()), "to_dlpack": lambda p: torch.from_dlpack(torch.utils.dlpack.to_dlpack(p)),
    "__dlpack__": lambda p: torch.from_dlpack(p.__dlpack__()), "data_ptr": _memory,
    "untyped_storage": lambda p: bytes(p.untyped_storage()), "storage": lambda p: p.storage().tolist(), "storage of data": lambda p: p.data.storage().tolist(),
    "storage, copied": lambda p: bytes(p.untyped_storage().clone()), "set_": lambda p: torch.empty(0, dtype=p.dtype).set_(p.detach()),
    "set_ of it": lambda p: torch.empty(0, dtype=p.dtype).set_(p), "set_ of its storage": lambda p: torch.empty(0, dtype=p.dtype).set_(p.untyped_storage()),
    "data": lambda p: p.data, "data of another": _data_of_other, "detach": lambda p: p.detach(), "mT": lambda p: p.mT, "real": lambda p: p.real,
    "to": lambda p: p.to(torch.float64), "cpu": lambda p: p.cpu(), "type": lambda p: p.type(torch.float64), "view": lambda p: p.view(-1),
    "view of bytes": lambda p: p.detach().view(torch.uint8), "as_strided": lambda p: torch.as_strided(p, (1,), (1,)),
    "share_memory_": lambda p: copy.deepcopy(p).share_memory_(), "is_shared": lambda p: p.is_shared(), "is_pinned": lambda p: p.is_pinned(),
    "is_set_to": lambda p: p.is_set_to(p), "get_device": lambda p: p.get_device(),
}
COPIES: dict[str, Reader] = {
    "copy": lambda p: copy.copy(p), "deepcopy": lambda p: copy.deepcopy(p), "deepcopy of a list": lambda p: copy.deepcopy([p, p]), "clone": lambda p: p.clone(),
    **{f"pickle {protocol}": lambda p, protocol=protocol: pickle.loads(pickle.dumps(p, protocol)) for protocol in (2, 4, 5)},
    "pickle of a dict": lambda p: pickle.loads(pickle.dumps({"p": p})), "torch.save": _saved,
    "torch.save of a module": lambda p: _saved(_module(p).state_dict()), "state_dict": lambda p: _module(p).state_dict(),
    "ForkingPickler": lambda p: pickle.loads(bytes(multiprocessing.reduction.ForkingPickler.dumps(p))),
    "load_state_dict": lambda p: _loaded(p), "load_state_dict, assign": lambda p: _loaded(p, True), "module.to": lambda p: copy.deepcopy(_module(p)).double().state_dict(),
    "swap_tensors": lambda p: _swapped(p), "vector": lambda p: nn.utils.parameters_to_vector([p]), "flatten": lambda p: torch._utils._flatten_dense_tensors([p]),
    "collate": lambda p: torch.utils.data.default_collate([p, p]), "pad_sequence": lambda p: nn.utils.rnn.pad_sequence([p, p]),
    "TensorDataset": lambda p: torch.utils.data.TensorDataset(p)[0], "tree_map": lambda p: torch.utils._pytree.tree_map(torch.clone, {"p": p}),
}


def _loaded(p: torch.Tensor, assign: bool = False) -> Any:
    other = _module(nn.Parameter(torch.zeros_like(p)) if isinstance(p, nn.Parameter) else torch.zeros_like(p))
    other.load_state_dict({"tensor": p}, assign=assign)
    return other.state_dict()


def _swapped(p: torch.Tensor) -> Any:
    mine = p.detach().clone()
    torch.utils.swap_tensors(mine, other := torch.empty(()))
    return other


CALLS: dict[str, Reader] = {
    "torch.add": lambda p: torch.add(p, 1), "alpha": lambda p: torch.add(torch.ones(2), 1, alpha=p), "value": lambda p: torch.addcmul(torch.ones(2), torch.ones(2), torch.ones(2), value=p),
    "clamp": lambda p: torch.arange(9.0).clamp(max=p), "threshold": lambda p: F.threshold(torch.arange(9.0), p, 0.0), "eps": lambda p: F.layer_norm(torch.arange(9.0), (9,), eps=p),
    "pow": lambda p: 0.9 ** p, "torch.pow": lambda p: torch.pow(2.0, p), "reshape": lambda p: torch.arange(float(p)).reshape(p, 1), "expand": lambda p: torch.ones(1).expand(p),
    "narrow": lambda p: torch.arange(99).narrow(0, 0, p), "narrow of a tensor": lambda p: torch.arange(99).narrow(0, p, 1), "select": lambda p: torch.arange(99).select(0, p), "slice": lambda p: torch.arange(99)[:p], "index": lambda p: torch.arange(99)[p],
    "split": lambda p: torch.arange(99).split(p), "roll": lambda p: torch.arange(9).roll(p), "repeat": lambda p: torch.ones(1).repeat(p), "repeat_interleave": lambda p: torch.ones(2).repeat_interleave(p.flatten()),
    "topk": lambda p: torch.arange(99).topk(p), "one_hot": lambda p: F.one_hot(p), "bincount": lambda p: torch.bincount(p.flatten()), "embedding": lambda p: F.embedding(p, torch.ones(99, 2)), "gather": lambda p: torch.arange(99).gather(0, p.flatten()),
    "setitem": lambda p: _set(p), "index_put_": lambda p: torch.zeros(3, 4).index_put_((torch.tensor([0]),), p), "copy_": lambda p: torch.zeros(p.shape).copy_(p), "out": lambda p: torch.add(p, 0, out=torch.empty_like(p.detach())) if not p.requires_grad else p + 0,
    "einsum": lambda p: torch.einsum("ij->ji", p), "block_diag": lambda p: torch.block_diag(p, p), "cartesian_prod": lambda p: torch.cartesian_prod(p), "meshgrid": lambda p: torch.meshgrid(p, indexing="ij"), "chain_matmul": lambda p: torch.linalg.multi_dot([p, p.mT]),
    "unique": lambda p: p.unique(), "broadcast_tensors": lambda p: torch.broadcast_tensors(p, torch.ones(1)), "atleast_3d": lambda p: torch.atleast_3d(p), "tensordot": lambda p: torch.tensordot(p, p, 2), "cdist": lambda p: torch.cdist(p, p),
    "equal": lambda p: torch.equal(p, torch.zeros(p.shape)), "allclose": lambda p: torch.allclose(p, torch.zeros(p.shape)), "is_nonzero": lambda p: torch.is_nonzero(p), "result_type": lambda p: torch.result_type(p, 1), "can_cast": lambda p: torch.can_cast(p.dtype, torch.float64),
    "foreach": lambda p: torch._foreach_norm([p, p]), "foreach of scalars": lambda p: torch._foreach_mul([torch.ones(2)], p), "aten": lambda p: torch.ops.aten.sum.default(p), "aten packet": lambda p: torch.ops.aten.mul(p, 2), "custom_op": lambda p: _twice(p),
    "F.linear": lambda p: F.linear(torch.ones(1, 4), p), "F.mse_loss": lambda p: F.mse_loss(p, torch.zeros(p.shape)), "conv": lambda p: F.conv1d(torch.ones(1, 4, 4), p[:, :, None]), "rnn": lambda p: torch._VF.rnn_tanh_cell(torch.ones(1, 4), torch.ones(1, 3), p, torch.ones(3, 3)),
    "functional_call": lambda p: torch.func.functional_call(_module(torch.zeros(p.shape)), {"tensor": p}, ()), "vmap": lambda p: torch.vmap(_double)(p), "vmap of a closure": lambda p: torch.vmap(lambda i: p * i)(torch.arange(2)),
    "func.grad": lambda p: torch.func.grad(lambda x: x.square().sum())(p), "func.jvp": lambda p: torch.func.jvp(_double, (p,), (torch.ones(p.shape),)), "func.vjp": lambda p: torch.func.vjp(_double, p)[0],
    "jacrev": lambda p: torch.func.jacrev(lambda x: x.square().sum())(p), "linearize": lambda p: torch.func.linearize(lambda x: x.square(), p)[1](torch.ones(p.shape)), "stack_module_state": lambda p: torch.func.stack_module_state([_module(p), _module(p)]),
    "make_dual": lambda p: _dual(p), "Function.apply": lambda p: _Double.apply(p), "autograd.grad": lambda p: torch.autograd.grad((p * p).sum(), p), "functional.jacobian": lambda p: torch.autograd.functional.jacobian(lambda x: (x * x).sum(), p),
    "checkpoint": lambda p: torch.utils.checkpoint.checkpoint(_double, p, use_reentrant=False), "checkpoint, reentrant": lambda p: torch.utils.checkpoint.checkpoint(_double, p, use_reentrant=True), "saved_tensors_hooks": lambda p: _packed(p),
    "jit.script": _scripted, "jit.trace": lambda p: torch.jit.trace(_double, (p,), check_trace=False)(p), "jit.trace of a module": lambda p: torch.jit.trace(_module(p), (), check_trace=False)(), "script of a module": lambda p: torch.jit.script(_module(p))(), "fx": lambda p: torch.fx.symbolic_trace(_module(p))(),
    "torch.compile, eager": _eager("eager"), "torch.compile, aot_eager": _eager("aot_eager"), "make_fx": lambda p: torch.fx.experimental.proxy_tensor.make_fx(_double)(p)(p), "export": lambda p: torch.export.export(_module(p), ()).module()(),
    "all_reduce": _collective(lambda p: (dist.all_reduce(p), p)[1]), "broadcast": _collective(lambda p: (dist.broadcast(p, 0), p)[1]), "all_gather": _collective(_all_gather), "all_gather_object": _collective(lambda p: _objects(p)),
    "get_total_norm": lambda p: nn.utils.get_total_norm([p]), "clip_grad": lambda p: _clipped(p), "multiprocessing": lambda p: _through_queue(p), "distributions": lambda p: torch.distributions.Normal(p, 1.0).log_prob(torch.zeros(p.shape)),
    "stft": lambda p: torch.stft(p, 2, return_complex=True), "histogram": lambda p: torch.histogram(p), "histc": lambda p: torch.histc(p), "testing": lambda p: torch.testing.assert_close(p, p.detach() + 0), "profiler": lambda p: _profiled(p),
}


def _set(p: torch.Tensor) -> Any:
    made = torch.zeros(p.shape)
    made[...] = p
    return made


def _dual(p: torch.Tensor) -> Any:
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(torch.autograd.forward_ad.make_dual(p, torch.ones(p.shape)) * 2)


def _packed(p: torch.Tensor) -> Any:
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.detach().clone()), lambda t: t):
        torch.exp(p)
        p * p
    return seen


def _objects(p: torch.Tensor) -> Any:
    found = [None]
    dist.all_gather_object(found, p)
    return found


def _clipped(p: torch.Tensor) -> Any:
    other = nn.Parameter(torch.zeros(p.shape))
    other.grad = p
    return nn.utils.clip_grad_norm_([other], float("inf"))


def _through_queue(p: torch.Tensor) -> Any:
    queue = torch.multiprocessing.SimpleQueue()
    queue.put(p)
    return queue.get()


def _profiled(p: torch.Tensor) -> Any:
    with torch.autograd.profiler.record_function("reads"):
        return p.sum()


READERS: dict[str, Reader] = {**CONSTRUCTORS, **CONVERSIONS, **COPIES, **CALLS}
