"""A model's modules and tensors by name: the module tree of step.json, classes with their bases, for wrap policies;
tied parameters under each of their names; types of elements."""
from __future__ import annotations

import os
import sys

import torch

from .dtypes import TABLE
from .torch_api.modules import WRAPPER_NAMES, buffers_of, parameters_of

DTYPES = {getattr(torch, dtype.torch): dtype.name for dtype in TABLE}


def class_name(cls: type) -> str:
    """The fully qualified name; a class of the running script is named after the script's file. A class of this package may say in
    `step_module` the module that step.json names, so that moving a file changes no step."""
    module = vars(cls).get("step_module", cls.__module__)
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        module = os.path.splitext(os.path.basename(file))[0] if file else module
    return f"{module}.{cls.__qualname__}"


def module_tree(model: torch.nn.Module) -> list[dict]:
    """Modules in preorder, in registration order; a module registered twice comes once, under its first name."""
    def full(path: str, name: str) -> str:
        return f"{path}.{name}" if path else name

    tree, seen = [], {id(m): path for path, m in reversed(list(model.named_modules()))}
    for path, module in model.named_modules():
        cls = type(module)
        tree.append({
            "name": path, "class": class_name(cls),
            "bases": [class_name(b) for b in cls.__mro__[1:] if b is not object],
            "parameters": [full(path, n) for n, p in parameters_of(module).items() if p is not None],
            "buffers": [full(path, n) for n, b in buffers_of(module).items() if b is not None],
            "children": [seen[id(m)] for m in module.children()]})
    return tree


def tensor_names(model: torch.nn.Module) -> dict[int, tuple[str, torch.Tensor, list[str]]]:
    """Every parameter and buffer once, by id, in registration order: (kind, tensor, all its names). Complex buffers are
    constants of a step (complex_numbers.py)."""
    found: dict[int, tuple[str, torch.Tensor, list[str]]] = {}
    for kind in ("param", "buffer"):
        for path, module in model.named_modules(remove_duplicate=False):
            own = parameters_of(module) if kind == "param" else buffers_of(module)
            for name, tensor in own.items():
                if tensor is not None and not (kind == "buffer" and tensor.is_complex()):
                    names = found.setdefault(id(tensor), (kind, tensor, []))[2]
                    names.append(f"{path}.{name}" if path else name)
    return found


def without_wrappers(name: str) -> str:
    """The name of a parameter or buffer in the model without wrappers: "0.weight" for "0._checkpoint_wrapped_module.weight"."""
    return ".".join(part for part in name.split(".") if part not in WRAPPER_NAMES)


def saved_names(model: torch.nn.Module) -> set[str]:
    """The names that state_dict() contains, without wrappers: checkpoint_wrapper() removes its own there."""
    return set(map(without_wrappers, model.state_dict(keep_vars=True)))


def set_gradient(parameter: torch.Tensor, gradient: torch.Tensor) -> None:
    """`p.grad = gradient`, in whatever type that is kept."""
    if gradient.dtype != parameter.grad_dtype:
        parameter.grad = None
        parameter.grad_dtype = gradient.dtype
    parameter.grad = gradient
