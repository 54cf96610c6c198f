"""All hooks of Lightning's callbacks, and all methods of a LightningModule that its training calls."""
from __future__ import annotations

import functools
import logging
from typing import Any

import harness
import overrides
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from torch import nn

from spmd.integrations.lightning import SpmdModule

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
RUN, REFUSED = "right", "refused"
# What the compiled step contains, and what would change between its forward and its backward.
_COMPILED = ("training_step", "forward", "backward", "log", "log_dict", "print")
_REFUSED = {*(f"LightningModule.{name} | looks" for name in _COMPILED), *(f"{owner}.{name} | weights" for owner, name in (
    ("Callback", "on_before_zero_grad"), ("Callback", "on_before_backward"), ("LightningModule", "on_before_zero_grad"),
    ("LightningModule", "optimizer_zero_grad"), ("LightningModule", "on_before_backward")))}


def net(base: type) -> type:
    class Net(base):
        spmd = {"ranks": 2, "launcher": "none", "keep_grads": True}
        clip = {"gradient_clip_val": 0.5, "accumulate_grad_batches": 2}
        if issubclass(base, SpmdModule):
            gradient_clip_val, accumulate_grad_batches = 0.5, 2

        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)

        def forward(self, x):
            return self.last(torch.tanh(self.first(x)))

        def training_step(self, batch, batch_idx):
            loss = F.cross_entropy(self(batch[0]), batch[1])
            self.log("train_loss", loss)
            return {"loss": loss}

        def validation_step(self, batch, batch_idx):
            self.log("val_loss", F.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self):
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
            return [optimizer], [{"scheduler": torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9), "interval": "step"}]
    return Net


class Losses(pl.Callback):
    def __init__(self):
        self.seen: list[float] = []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.seen += [float(outputs["loss"]) if outputs else 0.0, trainer.optimizers[0].param_groups[0]["lr"]]


class NoHooks(pl.Callback):
    pass


def _model_of_callback(self: Any, *args: Any, **kwargs: Any) -> nn.Module:
    return next((one for one in args if isinstance(one, pl.LightningModule)), nn.Module())


def train(base: type, owner: str = "", name: str = "", does: str = "") -> list[Any]:
    """The losses, what the override has seen, and the parameters."""
    torch.manual_seed(0)
    seen: list[Any] = []
    generator = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(torch.randn(24, 5, generator=generator), torch.randint(3, (24,), generator=generator))
    kind, callbacks = net(base), [losses := Losses()]
    clip = kind.clip if base is pl.LightningModule else {}
    if owner == "LightningModule":
        kind = overrides.overriding(kind, name, does, lambda self, *args, **kwargs: self, seen)
    elif owner == "Callback":
        callbacks.insert(0, overrides.overriding(NoHooks, name, does, _model_of_callback, seen)())
    model = kind()
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, num_sanity_val_steps=0,
                         enable_progress_bar=False, enable_model_summary=False, callbacks=callbacks, **clip)
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    trainer.fit(model, loader, loader)
    return [*losses.seen, len(seen), *map(torch.tensor, seen), *(p.detach() for p in model.parameters())]


@functools.lru_cache(maxsize=None)
def owners() -> dict[str, tuple[str, ...]]:
    """What can be overridden. Names of one underscore are Lightning's own."""
    hooks = sorted(name for name, value in vars(pl.Callback).items() if callable(value) and not name.startswith("_"))
    methods = overrides.called(pl.LightningModule, lambda: train(pl.LightningModule))
    known = {name for name in methods if not name.startswith("_")} | {"training_step", "forward"}
    return {"Callback": tuple(hooks), "LightningModule": tuple(sorted(known))}


def names() -> list[str]:
    return overrides.cases(owners())


def expected_of(name: str) -> str:
    """The outcome that a case is to have."""
    return REFUSED if name in _REFUSED else RUN


def run(name: str) -> harness.Outcome:
    """One case: losses, what was seen, and parameters, eager and compiled."""
    what, _, does = name.partition(" | ")
    owner, _, method = what.partition(".")
    try:
        expected = train(pl.LightningModule, owner, method, does)
    except Exception as error:  # PyTorch or Lightning refuses it
        return harness.Outcome(expected_of(name), f"eager: {error}")
    return harness.compare(expected, train(SpmdModule, owner, method, does), 1e-4)
