"""What a user's own code changes between capture and kernels: modules before the capture, the program after partition."""
from __future__ import annotations

import dataclasses
import weakref
from typing import Any, Callable, Protocol, Sequence

import torch

from ..passes import Pass
from ..program import Program, Value
from ..torch_api.modules import children_of


class Override(Protocol):
    """Any object with one or both of these methods, as torch.distributed._spmd had it."""

    def replacement(self, fqn: str, module: torch.nn.Module) -> torch.nn.Module:
        """Asked for every child of the model before the capture: another module for its place, which stays there, or
        `module` itself, and then its children are asked for."""

    def transform(self, program: Program, flat_state: list[Value]) -> Program | None:
        """Changes the partitioned program, whose parameters, buffers and optimizer state `flat_state` are."""


@dataclasses.dataclass
class Overrides:
    """`modules` are the overrides, `passes` what runs on the program after their transformations."""

    modules: list[Any]
    passes: list[Pass]
    _replaced: weakref.WeakSet[torch.nn.Module] = dataclasses.field(default_factory=weakref.WeakSet)

    @staticmethod
    def of(module_override: Any, gm_transformation: Pass | None, passes: Sequence[Pass]) -> Overrides:
        """Raises TypeError for what is none of it."""
        if isinstance(module_override, dict):
            modules = [_ByKey(key, value) for key, value in module_override.items()]
        else:
            modules = list(module_override or ())
        for override in modules:
            if not any(callable(getattr(override, name, None)) for name in ("replacement", "transform")):
                raise TypeError(f"module_override has {override!r}; expected objects with replacement(fqn, module) or "
                                "transform(program, flat_state), or a dict of modules by class or name")
        every = [*passes, *([gm_transformation] if gm_transformation is not None else [])]
        for each in every:
            if not callable(each) and not (isinstance(each, str) and each.strip()):
                raise TypeError(f"pass {each!r} is no function of the program, and no name of a pass")
        return Overrides(modules, every)

    def replace_modules(self, model: torch.nn.Module) -> None:
        """Once for each model, before it is captured."""
        if self.modules and model not in self._replaced:
            self._replaced.add(model)
            for override in self.modules:
                if callable(getattr(override, "replacement", None)):
                    _replace(override.replacement, model, "")

    def all_passes(self) -> list[Pass]:
        """Functions of the program, in the order in which they run."""
        return [*map(_transformation, (o for o in self.modules if callable(getattr(o, "transform", None)))), *self.passes]


def _replace(replacement: Callable, module: torch.nn.Module, path: str) -> None:
    for name, child in list(module.named_children()):
        fqn = f"{path}.{name}" if path else name
        found = replacement(fqn, child)
        if not isinstance(found, torch.nn.Module):
            raise TypeError(f"expected replacement({fqn!r}, …) to return a module (the given one to keep it), got a "
                            f"{type(found).__name__}")
        if found is child:
            _replace(replacement, child, fqn)
        else:
            children_of(module)[name] = found


def _transformation(override: Any) -> Pass:
    def run(program: Program) -> Program | None:
        return override.transform(program, program.state)
    run.__qualname__ = f"{type(override).__qualname__}.transform"
    return run


class _ByKey:
    """An entry of a dict: the module, or what makes one of the old module, for a class or a name."""

    def __init__(self, key: Any, value: Any):
        if not isinstance(key, (str, type)) or not callable(value):
            raise TypeError(f"module_override has {key!r}: {value!r}; expected a class or a name, and a module or a "
                            "function of the old one")
        self._key, self._value = key, value

    def replacement(self, fqn: str, module: torch.nn.Module) -> torch.nn.Module:
        is_meant = fqn == self._key if isinstance(self._key, str) else type(module) is self._key
        if not is_meant:
            return module
        return self._value if isinstance(self._value, torch.nn.Module) else self._value(module)


