"""The module tree of step.json: classes with their bases, for wrap policies; tied parameters under each of their
names."""
from __future__ import annotations

import os
import sys

import torch


def class_name(cls: type) -> str:
    """The fully qualified name; a class of the running script is named after the script's file."""
    module = cls.__module__
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
            "parameters": [full(path, n) for n, p in module._parameters.items() if p is not None],
            "buffers": [full(path, n) for n, b in module._buffers.items() if b is not None],
            "children": [seen[id(m)] for m in module.children()]})
    return tree
