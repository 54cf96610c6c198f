"""Methods that override those of a library: they look, or change something. Shared by the tables of trainers' hooks."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

DOES = ("looks", "gradients", "weights", "result")


def norms(model: torch.nn.Module) -> list[float]:
    """What a hook that looks sees: the norms of the weights, and those of the gradients that are there."""
    return [float(one.detach().norm()) for p in model.parameters() for one in (p, p.grad) if one is not None]


def act(does: str, model: torch.nn.Module, seen: list[Any]) -> None:
    """What the overriding method does."""
    if does == "looks":
        seen.append(norms(model))
    elif does == "gradients":
        for p in model.parameters():
            if p.grad is not None:
                p.grad.mul_(0.5)
    elif does == "weights":
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(0.9)


def halved(value: Any) -> Any:
    """A result with its tensors halved."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value * 0.5
    if isinstance(value, dict):
        return {key: halved(one) for key, one in value.items()}
    return type(value)(map(halved, value)) if type(value) in (list, tuple) else value


def overriding(base: type, name: str, does: str, model_of: Callable[..., torch.nn.Module], seen: list[Any]) -> type:
    """A class whose method `name` acts, and calls that of `base`. `model_of` gives the model for the method's arguments."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        act(does, model_of(self, *args, **kwargs), seen)
        result = getattr(super(own, self), name)(*args, **kwargs)
        return halved(result) if does == "result" else result

    own = type("Own", (base,), {name: method})
    return own


def called(base: type, run: Callable[[], Any]) -> list[str]:
    """The methods of `base`, or of a class that it inherits, that run() calls, in the order of their names."""
    codes = {code: name for kind in base.__mro__ if kind not in (object, torch.nn.Module) for name, function in vars(kind).items()
             if (code := getattr(function, "__code__", None)) is not None}
    found = set()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code in codes:
            found.add(codes[frame.f_code])

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return sorted(name for name in found if not name.startswith("__"))


def cases(owners: dict[str, Iterable[str]]) -> list[str]:
    """The names of all cases: "owner.method | does"."""
    return [f"{owner}.{name} | {does}" for owner, names in owners.items() for name in names for does in DOES]
