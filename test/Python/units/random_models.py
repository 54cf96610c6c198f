"""Random module trees and policies for test_differential.py, and the units that a plain walk gives them."""
from __future__ import annotations

import functools
import random

import torch
from torch import nn
from torch.distributed.fsdp import wrap as fsdp


class Base(nn.Module):
    """A module with children of its own and, sometimes, a parameter."""

    def __init__(self, children, size):
        super().__init__()
        for number, child in enumerate(children):
            self.add_module(f"c{number}", child)
        if size:
            self.weight = nn.Parameter(torch.empty(size, device="meta"))


class Derived(Base):
    pass


class Other(Base):
    def forward(self, x):
        return x


CLASSES = [Base, Derived, Other, nn.Linear, nn.LayerNorm, nn.ModuleList, nn.MultiheadAttention, nn.Sequential]


class RandomModel:
    """`model` and what is special about it. One that has `shared` modules is compared with the plain walk only."""

    def __init__(self, rng: random.Random):
        self.rng, self.made = rng, []
        self.shared = self.tied = self.frozen = False
        self.share = rng.random() < 0.25
        self.model = self._container(depth=3, cls=rng.choice([Base, Other]))
        if rng.random() < 0.3:
            self._tie()
        if rng.random() < 0.3:
            for parameter in self.model.parameters():
                parameter.requires_grad_(rng.random() < 0.6)
            self.frozen = any(not p.requires_grad for p in self.model.parameters())
        modules = list(self.model.modules())[1:]
        self.ignored_modules = [m for m in modules if rng.random() < 0.08] if rng.random() < 0.4 else []
        parameters = self.model.parameters()
        self.ignored_parameters = [p for p in parameters if rng.random() < 0.1] if rng.random() < 0.3 else []

    def _leaf(self) -> nn.Module:
        rng = self.rng
        size = rng.choice([2, 4, 8])
        return rng.choice([
            lambda: nn.Linear(size, rng.choice([1, 3, 9]), bias=rng.random() < 0.5, device="meta"),
            lambda: nn.LayerNorm(size, device="meta"), lambda: nn.Dropout(),
            lambda: nn.BatchNorm1d(size, device="meta"),
            lambda: nn.MultiheadAttention(size, 2, device="meta"), lambda: nn.Embedding(5, size, device="meta")])()

    def _module(self, depth: int) -> nn.Module:
        if self.share and self.made and self.rng.random() < 0.15:
            self.shared = True
            return self.rng.choice(self.made)
        module = self._leaf() if depth == 0 or self.rng.random() < 0.3 else self._container(depth)
        self.made.append(module)
        return module

    def _container(self, depth: int, cls=None) -> nn.Module:
        rng = self.rng
        children = [self._module(depth - 1) for _ in range(rng.randint(1, 4))]
        cls = cls or rng.choice([Base, Derived, Other, nn.Sequential, nn.ModuleList, nn.ModuleDict])
        if cls is nn.ModuleDict:
            return nn.ModuleDict({f"k{i}": c for i, c in enumerate(children)})
        if cls is nn.ModuleList:
            return nn.ModuleList(children)
        return nn.Sequential(*children) if cls is nn.Sequential else cls(children, rng.choice([0, 0, 3, 20]))

    def _tie(self) -> None:
        linears = [m for m in self.model.modules() if type(m) in (nn.Linear, nn.Embedding)]
        self.rng.shuffle(linears)
        for a in linears:
            for b in linears:
                if a is not b and a.weight is not b.weight and a.weight.shape == b.weight.shape:
                    b.weight = a.weight
                    self.tied = True
                    return

    def all_ignored(self) -> tuple[set, set]:
        modules = {m for i in self.ignored_modules for m in i.modules()}
        return modules, {p for m in modules for p in m.parameters()} | set(self.ignored_parameters)


class UserPolicy(fsdp._Policy):
    def __init__(self, classes):
        self.classes = tuple(classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        return {m: dict(root_kwargs) for m in root_module.modules()
                if m not in ignored_modules and isinstance(m, self.classes)}


def random_policy(rng: random.Random, model: nn.Module, nested: bool = False) -> tuple[str, object]:
    """(kind, policy)."""
    classes = set(rng.sample(CLASSES, rng.randint(1, 3)))
    chosen = {id(m) for m in model.modules() if rng.random() < 0.4}
    total = sum(p.numel() for p in model.parameters())
    kind = rng.choice(["always", "class", "transformer", "lambda", "size", "callable"] +
                      ([] if nested else ["size", "custom", "user", "or"]))
    if kind == "always":
        return kind, fsdp.always_wrap_policy
    if kind == "class":
        return kind, fsdp.ModuleWrapPolicy(classes)
    if kind == "transformer":
        return kind, functools.partial(fsdp.transformer_auto_wrap_policy, transformer_layer_cls=classes)
    if kind == "lambda":
        return kind, functools.partial(fsdp.lambda_auto_wrap_policy, lambda_fn=lambda m: [1] if id(m) in chosen else [])
    if kind == "size":
        words = {"min_num_params": rng.randint(1, max(2, total // 2))}
        if rng.random() < 0.3:
            words["force_leaf_modules"] = classes
        if rng.random() < 0.3:
            words["exclude_wrap_modules"] = {nn.Sequential, Derived}
        return kind, functools.partial(fsdp.size_based_auto_wrap_policy, **words)
    if kind == "callable":
        limit = rng.randint(1, max(2, total // 2))
        return kind, lambda module, recurse, nonwrapped_numel: (
            not isinstance(module, Derived) if recurse else nonwrapped_numel <= limit)
    if kind == "user":
        return kind, UserPolicy(classes)
    if kind == "custom":
        results = {id(m): rng.choice([True, False, {}, {"reshard_after_forward": False}, {"mode": "replicate"}])
                   for m in model.modules()}
        return kind, fsdp.CustomPolicy(lambda m: results[id(m)])
    parts = [random_policy(rng, model, nested=True)[1] for _ in range(rng.randint(1, 3))]
    return kind, functools.partial(fsdp._or_policy, policies=parts)


def plain_walk(model: nn.Module, policy, ignored_modules: set, ignored_parameters: set) -> list[nn.Module]:
    """The units in post-order: each module visited once, each parameter counted once in what it is part of."""
    units, visited = [], {model}
    if isinstance(policy, fsdp._Policy):
        wanted = set(policy._run_policy(model, ignored_modules, {}))
        policy = lambda module, recurse, nonwrapped_numel: recurse or module in wanted  # noqa: E731

    def visit(module):
        held = set(module.parameters()) - ignored_parameters
        if not policy(module=module, recurse=True, nonwrapped_numel=sum(p.numel() for p in held)):
            return
        for child in module.children():
            if child not in visited and child not in ignored_modules:
                visited.add(child)
                visit(child)
        for below in module.modules():
            if below is not module and below in units:
                held -= set(below.parameters())
        if module is not model and policy(module=module, recurse=False, nonwrapped_numel=sum(p.numel() for p in held)):
            units.append(module)

    visit(model)
    return units + [model]
