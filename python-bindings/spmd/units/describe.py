"""A model as the library reads it: modules and parameters as in step.json, no tensor's data."""
from __future__ import annotations

from typing import Iterable

import torch

from ..models import DTYPES, class_name, module_tree, tensor_names


class ModelDescription:
    """Modules and parameters of a model, with the objects behind the names.

    Attributes: `modules` in the order of the description; `paths` and `parameter_names` by id of the object.
    """

    def __init__(self, model: torch.nn.Module, classes: Iterable[type] = ()):
        self.modules = [module for _, module in model.named_modules()]
        self.paths = {id(module): path for path, module in model.named_modules()}
        parameters = [(t, names) for kind, t, names in tensor_names(model).values() if kind == "param"]
        self.parameter_names = {id(t): names[0] for t, names in parameters}
        self.tree = module_tree(model)
        for tensor, names in parameters:
            if tensor.dtype not in DTYPES:
                raise ValueError(f"parameter '{names[0]}' is of dtype {tensor.dtype}, which has no counterpart\n  hint: use one of "
                                 + ", ".join(map(str, DTYPES)))
        self.parameters = [{"name": names[0], "aliases": names[1:], "shape": list(t.shape), "dtype": DTYPES[t.dtype],
                            "trainable": t.requires_grad} for t, names in parameters]
        self._class_names: dict[type, str] = {}
        self._describe_classes(classes)

    def path_of(self, module: torch.nn.Module) -> str:
        """The path of a module to be ignored."""
        if id(module) not in self.paths:
            raise ValueError(f"ignored module {type(module).__name__} is not in the model")
        return self.paths[id(module)]

    def name_of(self, parameter: torch.Tensor) -> str:
        """The name of a parameter to be ignored."""
        if id(parameter) not in self.parameter_names:
            raise ValueError(f"ignored parameter of shape {list(parameter.shape)} is not in the model")
        return self.parameter_names[id(parameter)]

    def class_name(self, cls: type) -> str:
        """The name that stands for exactly this class."""
        return self._class_names[cls]

    def _describe_classes(self, classes: Iterable[type]) -> None:
        """Different classes of one name get different names, and what only isinstance knows becomes a base."""
        classes = list(dict.fromkeys(classes))
        taken: dict[str, int] = {}
        for cls in [c for m in self.modules for c in type(m).__mro__[:-1]] + classes:
            if cls not in self._class_names:
                name = class_name(cls)
                taken[name] = taken.get(name, 0) + 1
                self._class_names[cls] = name if taken[name] == 1 else f"{name}#{taken[name]}"
        for module, entry in zip(self.modules, self.tree):
            own, *bases = type(module).__mro__[:-1]
            bases += [c for c in classes if isinstance(module, c) and c not in type(module).__mro__]
            entry["class"], entry["bases"] = self._class_names[own], [self._class_names[c] for c in bases]
