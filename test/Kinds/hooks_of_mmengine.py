"""All hooks of mmengine, and the methods of its BaseModel and OptimWrapper that a training calls."""
from __future__ import annotations

import functools
import tempfile
from typing import Any

import harness
import overrides
import torch
import torch.nn.functional as F
from mmengine._strategy import SingleDeviceStrategy
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.runner import FlexibleRunner
from torch import nn

from spmd.integrations.mmengine import FSDPStrategy

RUN, REFUSED = "right", "refused"
# What the compiled step contains; wrappers other than mmengine's own are refused, and so is a train_step of the model's own.
_COMPILED = ("_run_forward", "forward", "parse_losses")
_OWN = ("train_step",)
_FOLDER = tempfile.TemporaryDirectory()  # mmengine's loggers write to it as long as the program runs


class Net(BaseModel):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x, y, mode="loss"):
        out = self.last(torch.tanh(self.first(x)))
        return {"loss": F.cross_entropy(out, y)} if mode == "loss" else out


class Data(torch.utils.data.Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(1)
        self.x, self.y = torch.randn(24, 5, generator=generator), torch.randint(3, (24,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Losses(Hook):
    priority = "LOWEST"

    def __init__(self):
        self.seen: list[float] = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.seen.append(float(outputs["loss"]))


class NoHooks(Hook):
    pass


def train(base: type, owner: str = "", name: str = "", does: str = "") -> list[Any]:
    """The losses, what the override has seen, and the parameters."""
    torch.manual_seed(0)
    seen: list[Any] = []
    hooks, losses = [], Losses()
    model = (overrides.overriding(Net, name, does, lambda self, *args, **kwargs: self, seen) if owner == "BaseModel" else Net)()
    if owner == "Hook":
        hooks = [overrides.overriding(NoHooks, name, does, lambda self, *args, **kwargs: _model_of(args), seen)()]
    wrapper: Any = {"optimizer": {"type": "SGD", "lr": 0.1}, "clip_grad": {"max_norm": 0.5}, "accumulative_counts": 2}
    if owner == "OptimWrapper":
        kind = overrides.overriding(OptimWrapper, name, does, lambda self, *args, **kwargs: model, seen)
        wrapper = kind(torch.optim.SGD(model.parameters(), lr=0.1), clip_grad={"max_norm": 0.5}, accumulative_counts=2)
    options = {"state_dict_cfg": "full", "spmd": {"ranks": 2, "launcher": "none"}} if base is FSDPStrategy else {}
    loader = {"batch_size": 4, "dataset": Data(), "sampler": {"type": "DefaultSampler", "shuffle": False}, "num_workers": 0,
              "collate_fn": {"type": "default_collate"}}
    runner = FlexibleRunner(
        model=model, work_dir=_FOLDER.name, strategy=base(work_dir=_FOLDER.name, **options), custom_hooks=[*hooks, losses],
        log_level="ERROR", train_dataloader=loader, train_cfg={"by_epoch": True, "max_epochs": 1}, optim_wrapper=wrapper)
    runner.train()
    return [*losses.seen, len(seen), *map(torch.tensor, seen), *(p.detach() for p in model.parameters())]


def _model_of(args: Any) -> nn.Module:
    """The model of the runner that a hook receives, once it has one."""
    found = getattr(getattr(args[0], "strategy", None), "model", None) if args else None
    return found if isinstance(found, nn.Module) else nn.Module()


@functools.lru_cache(maxsize=None)
def owners() -> dict[str, tuple[str, ...]]:
    """What can be overridden."""
    hooks = sorted(name for name in vars(Hook) if name.startswith(("before_", "after_")) or name.startswith(("_before", "_after")))
    found = {kind.__name__: tuple(name for name in overrides.called(kind, lambda: train(SingleDeviceStrategy)) if name in vars(kind))
             for kind in (BaseModel, OptimWrapper)}
    return {"Hook": tuple(hooks), **found}


def names() -> list[str]:
    return overrides.cases(owners())


def expected_of(name: str) -> str:
    """The outcome that a case is to have."""
    what, _, does = name.partition(" | ")
    owner, _, method = what.partition(".")
    if owner == "OptimWrapper" or method in _OWN or does == "looks" and owner == "BaseModel" and method in _COMPILED:
        return REFUSED
    return RUN


def run(name: str) -> harness.Outcome:
    """One case: losses, what was seen, and parameters, eager and compiled."""
    what, _, does = name.partition(" | ")
    owner, _, method = what.partition(".")
    try:
        expected = train(SingleDeviceStrategy, owner, method, does)
    except Exception as error:  # PyTorch or mmengine refuses it
        return harness.Outcome(expected_of(name), f"eager: {error}")
    return harness.compare(expected, train(FSDPStrategy, owner, method, does), 1e-4)
