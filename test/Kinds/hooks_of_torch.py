"""The hooks that PyTorch offers, each on a small network; hooks.py crosses them with what is around them."""
from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import harness
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook
from torch.distributed.optim import _apply_optimizer_in_backward
from torch.nn.modules import module as of_all_modules
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.checkpoint import checkpoint

import spmd

STEPS = 4
RUN, REFUSED = "right", "refused"
WHEN = ("before", "later", "removed")  # registered before the first call; after it; before it and removed after it
AROUND = ("plain", "microbatches", "checkpointed", "local", "momentum")


class Hook(NamedTuple):
    """`register` gives the handles of what it registers. `inside`: the step registers the hook, and removes it if it `removes`."""

    register: Callable[[nn.Module, torch.optim.Optimizer], list[Any]]
    expected: str = RUN
    inside: bool = False
    removes: bool = True


class Net(nn.Module):
    def __init__(self, checkpointed: bool = False):
        super().__init__()
        self.first, self.norm, self.last, self.checkpointed = nn.Linear(5, 6), nn.LayerNorm(6), nn.Linear(6, 3), checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = checkpoint(self.norm, x, use_reentrant=False) if self.checkpointed else self.norm(x)
        return self.last(torch.tanh(x))


def halve(gradient: torch.Tensor) -> torch.Tensor:
    return gradient * 0.5


def halve_gradient(parameter: torch.Tensor) -> None:
    parameter.grad.mul_(0.5)


def halve_all(gradients: Any) -> None:
    for gradient in gradients:
        if gradient is not None:
            gradient.mul_(0.5)


def halve_tuple(*tuples: Any) -> tuple[Any, ...]:
    """Of what backward() gives a module or a node: the gradients of its inputs."""
    first = next(one for one in tuples if isinstance(one, tuple))
    return tuple(None if one is None else one * 0.5 for one in first)


def halve_gradients_of(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad.mul_(0.5)


def halve_parameters_of(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    with torch.no_grad():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.mul_(0.5)


def accumulation_node(parameter: torch.Tensor) -> Any:
    return parameter.expand_as(parameter).grad_fn.next_functions[0][0]


class Keeps:
    """A handle that keeps a node alive, as Horovod and Apex do."""

    def __init__(self, handle: Any, node: Any):
        self.handle, self.node = handle, node

    def remove(self) -> None:
        self.handle.remove()


def on_nodes(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    def make(parameter: torch.Tensor) -> Callable[..., None]:
        def hook(*unused: Any) -> None:
            parameter.grad.mul_(0.5)
        return hook
    nodes = [(accumulation_node(p), p) for p in model.parameters()]
    return [Keeps(node.register_hook(make(p)), node) for node, p in nodes]


def before_nodes(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    nodes = [accumulation_node(p) for p in model.parameters()]
    return [Keeps(node.register_prehook(halve_tuple), node) for node in nodes]


def on_outputs(register: Callable[[torch.Tensor], Any]) -> Callable[[nn.Module, torch.optim.Optimizer], list[Any]]:
    """Hooks of an activation, or of the node that made it, that a forward hook registers."""
    def forward_hook(module: nn.Module, args: Any, result: torch.Tensor) -> None:
        register(result)
    return lambda model, optimizer: [model.first.register_forward_hook(forward_hook)]


def each(name: str, hook: Callable) -> Callable[[nn.Module, torch.optim.Optimizer], list[Any]]:
    return lambda model, optimizer: [getattr(p, name)(hook) for p in model.parameters()]


def of_module(name: str, hook: Callable) -> Callable[[nn.Module, torch.optim.Optimizer], list[Any]]:
    return lambda model, optimizer: [getattr(model.last, name)(hook)]


def of_all(name: str, hook: Callable) -> Callable[[nn.Module, torch.optim.Optimizer], list[Any]]:
    return lambda model, optimizer: [getattr(of_all_modules, name)(hook)]


def unreached(*unused: Any) -> None:
    raise AssertionError("no step runs this hook")


def backward_hooks_of_all(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    of_all_modules._global_is_full_backward_hook = None  # PyTorch has one kind or the other, and does not forget which
    return of_all("register_module_backward_hook", lambda m, g, o: halve_tuple(g))(model, optimizer)


def full_backward_hooks_of_all(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    of_all_modules._global_is_full_backward_hook = None
    return of_all("register_module_full_backward_hook", lambda m, g, o: halve_tuple(g))(model, optimizer)


def looks(*unused: Any) -> None:
    """A hook that a capture may call, for the names of a state dict."""


class Removed:
    """A handle of what PyTorch cannot remove."""

    def remove(self) -> None:
        pass


class Entered:
    """A context that is entered until it is removed."""

    def __init__(self, context: Any):
        self.context = context
        context.__enter__()

    def remove(self) -> None:
        self.context.__exit__(None, None, None)


def saved_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    return [Entered(torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x * 0.5 if x.is_floating_point() else x))]


def comm_hook(state, bucket):  # PyTorch reads annotations, and takes no texts
    found: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    found.set_result(bucket.buffer() * 0.5)
    return found


def in_comm_hook(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    model.register_comm_hook(None, comm_hook)
    return [Removed()]


def in_backward(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    optimizer.param_groups[0]["lr"] = 0.0
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 0.1})
    return [Removed()]


HOOKS = {
    "Tensor.register_hook": Hook(each("register_hook", halve)),
    "Tensor.register_hook, in the step": Hook(each("register_hook", halve), inside=True),
    "Tensor.register_hook, left by the step": Hook(each("register_hook", halve), REFUSED, inside=True, removes=False),
    "Tensor.register_hook of an activation": Hook(on_outputs(lambda x: x.register_hook(halve))),
    "Tensor.register_post_accumulate_grad_hook": Hook(each("register_post_accumulate_grad_hook", halve_gradient)),
    "Node.register_hook": Hook(on_outputs(lambda x: x.grad_fn.register_hook(halve_tuple))),
    "Node.register_prehook": Hook(on_outputs(lambda x: x.grad_fn.register_prehook(halve_tuple))),
    "AccumulateGrad.register_hook": Hook(on_nodes, REFUSED),
    "AccumulateGrad.register_hook, in the step": Hook(on_nodes, inside=True),
    "AccumulateGrad.register_prehook": Hook(before_nodes, REFUSED),
    "AccumulateGrad.register_prehook, in the step": Hook(before_nodes, inside=True),
    "_apply_optimizer_in_backward": Hook(in_backward, REFUSED),
    "register_multi_grad_hook, all": Hook(lambda m, o: [register_multi_grad_hook(tuple(m.parameters()), halve_all)], REFUSED),
    "register_multi_grad_hook, all, in the step": Hook(
        lambda m, o: [register_multi_grad_hook(tuple(m.parameters()), halve_all)], inside=True),
    "register_multi_grad_hook, any": Hook(
        lambda m, o: [register_multi_grad_hook(tuple(m.parameters()), lambda g: g.mul_(0.5), mode="any")]),
    "register_multi_grad_hook of activations": Hook(on_outputs(lambda x: register_multi_grad_hook((x,), halve_all))),
    "Module.register_forward_pre_hook": Hook(of_module("register_forward_pre_hook", lambda m, args: (args[0] * 0.5,))),
    "Module.register_forward_hook": Hook(of_module("register_forward_hook", lambda m, args, result: result * 0.5)),
    "Module.register_full_backward_pre_hook": Hook(of_module("register_full_backward_pre_hook", lambda m, g: (g[0] * 0.5,))),
    "Module.register_full_backward_hook": Hook(of_module("register_full_backward_hook", lambda m, g, o: halve_tuple(g))),
    "Module.register_backward_hook": Hook(of_module("register_backward_hook", lambda m, g, o: halve_tuple(g))),
    "register_module_forward_pre_hook": Hook(of_all("register_module_forward_pre_hook", lambda m, args: (args[0] * 0.5,))),
    "register_module_forward_hook": Hook(of_all("register_module_forward_hook", lambda m, args, result: result * 0.5)),
    "register_module_full_backward_pre_hook": Hook(
        of_all("register_module_full_backward_pre_hook", lambda m, g: (g[0] * 0.5,))),
    "register_module_full_backward_hook": Hook(full_backward_hooks_of_all),
    "register_module_backward_hook": Hook(backward_hooks_of_all),
    "register_module_parameter_registration_hook": Hook(of_all("register_module_parameter_registration_hook", unreached)),
    "register_module_buffer_registration_hook": Hook(of_all("register_module_buffer_registration_hook", unreached)),
    "register_module_module_registration_hook": Hook(of_all("register_module_module_registration_hook", unreached)),
    "Module.register_state_dict_pre_hook": Hook(of_module("register_state_dict_pre_hook", looks)),
    "Module.register_state_dict_post_hook": Hook(of_module("register_state_dict_post_hook", looks)),
    "Module.register_load_state_dict_pre_hook": Hook(of_module("register_load_state_dict_pre_hook", unreached)),
    "Module.register_load_state_dict_post_hook": Hook(of_module("register_load_state_dict_post_hook", unreached)),
    "Optimizer.register_step_pre_hook": Hook(lambda m, o: [o.register_step_pre_hook(halve_gradients_of)]),
    "Optimizer.register_step_post_hook": Hook(lambda m, o: [o.register_step_post_hook(halve_parameters_of)]),
    "register_optimizer_step_pre_hook": Hook(lambda m, o: [register_optimizer_step_pre_hook(halve_gradients_of)]),
    "register_optimizer_step_post_hook": Hook(lambda m, o: [register_optimizer_step_post_hook(halve_parameters_of)]),
    "saved_tensors_hooks": Hook(saved_tensors),
    "saved_tensors_hooks, in the step": Hook(saved_tensors, inside=True),
    "DistributedDataParallel.register_comm_hook": Hook(in_comm_hook, REFUSED),
    "Optimizer.register_state_dict_pre_hook": Hook(lambda m, o: [o.register_state_dict_pre_hook(unreached)]),
    "Optimizer.register_state_dict_post_hook": Hook(lambda m, o: [o.register_state_dict_post_hook(unreached)]),
    "Optimizer.register_load_state_dict_pre_hook": Hook(lambda m, o: [o.register_load_state_dict_pre_hook(unreached)]),
    "Optimizer.register_load_state_dict_post_hook": Hook(lambda m, o: [o.register_load_state_dict_post_hook(unreached)]),
}
# Gradients of what the step was given, or finds in the model.
GRADIENTS = {"edges, before": REFUSED, "edges, in the step": RUN, "parameters, before": REFUSED, "parameters, in the step": RUN}


def names() -> list[str]:
    found = [f"{name} | {when} | {around}" for name, hook in HOOKS.items()
             for when in (WHEN[:1] if hook.inside or hook.register is in_comm_hook else WHEN) for around in AROUND]
    return found + [f"{form} of {given} | {around}" for form in ("grad()", "backward()") for given in GRADIENTS for around in AROUND]


def expected_of(name: str) -> str:
    """The outcome that a case is to have."""
    hook = HOOKS.get(name.split(" | ")[0])
    return hook.expected if hook else GRADIENTS[name.split(" | ")[0].split(" of ")[1]]


def run(name: str) -> harness.Outcome:
    """One case: losses and parameters after some steps, eager and compiled."""
    what, *rest = name.split(" | ")
    around = rest[-1]
    ranks = random.Random(name).choice((1, 2, 3))
    train = _with_gradients(what) if " of edges" in what or " of parameters" in what else _with_hook(HOOKS[what], rest[0])
    options = {"view": "local"} if around == "local" else {}
    try:
        expected = train(around, lambda step: step)
    except Exception as error:  # the case is none
        return harness.Outcome("wrong", f"eager PyTorch: {error}")
    return harness.compare(expected, train(around, lambda step: spmd.compile(step, ranks=ranks, launcher="none", **options)), 1e-9)


def offered() -> set[str]:
    """The names of all functions of PyTorch that register hooks."""
    owners = {"Tensor": torch.Tensor, "Module": nn.Module, "Optimizer": torch.optim.Optimizer, "Node": torch.autograd.graph.Node,
              "DistributedDataParallel": DistributedDataParallel, "": of_all_modules}
    found = {f"{owner}.{name}".strip(".") for owner, where in owners.items() for name in vars(where)
             if "hook" in name and not name.startswith("_")}
    found |= {name for module in ("torch.optim.optimizer", "torch.autograd.graph")
              for name in importlib.import_module(module).__all__ if "hook" in name}
    return found


def _made(around: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = Net(around == "checkpointed").double()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if around == "momentum" else 0.0)


def _batch(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(number)
    return torch.randn(12, 5, generator=generator, dtype=torch.float64), torch.randint(3, (12,), generator=generator)


def _with_hook(hook: Hook, when: str) -> Callable[[str, Callable], list[Any]]:
    def train(around: str, compiled: Callable) -> list[Any]:
        model, optimizer = _made(around)
        if hook.register is in_comm_hook:
            if not dist.is_initialized():
                dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
            model = DistributedDataParallel(model)

        def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            handles = hook.register(model, optimizer) if hook.inside else []
            total = torch.zeros((), dtype=x.dtype)
            for part in range(3 if around == "microbatches" else 1):
                rows = slice(part * 4, part * 4 + 4) if around == "microbatches" else slice(None)
                loss = F.cross_entropy(model(x[rows]), y[rows])
                loss.backward()
                total = total + loss.detach()
            for handle in handles if hook.removes else ():
                handle.remove()
            optimizer.step()
            optimizer.zero_grad()
            return total

        step, handles, losses = compiled(train_step), [], []
        try:
            for number in range(STEPS):
                if not hook.inside and number == (2 if when == "later" else 0):
                    handles += hook.register(model, optimizer)
                if when == "removed" and number == 2:
                    while handles:
                        handles.pop().remove()
                losses.append(step(model, optimizer, *_batch(number)).item())
        finally:
            for handle in handles:
                handle.remove()
        return [*losses, *(p.detach().clone() for p in model.parameters())]
    return train


def _with_gradients(what: str) -> Callable[[str, Callable], list[Any]]:
    form, _, given = what.partition(" of ")
    kind, _, where = given.partition(", ")

    def inputs(model: nn.Module) -> list[Any]:
        return [get_gradient_edge(p) if kind == "edges" else p for p in model.parameters()]

    def train(around: str, compiled: Callable) -> list[Any]:
        model, optimizer = _made(around)
        known = inputs(model)

        def train_step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            loss = F.cross_entropy(model(x), y)
            wanted = known if where == "before" else inputs(model)
            if form == "backward()":
                loss.backward(inputs=wanted)
            else:
                for p, gradient in zip(model.parameters(), torch.autograd.grad(loss, wanted, allow_unused=True)):
                    p.grad = gradient
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        step = compiled(train_step)
        losses = [step(model, optimizer, *_batch(number)).item() for number in range(STEPS)]
        return [*losses, *(p.detach().clone() for p in model.parameters())]
    return train
