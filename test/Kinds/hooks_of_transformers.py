"""All hooks of callbacks of transformers' Trainer, and all of its methods that its training calls."""
from __future__ import annotations

import functools
import tempfile
from typing import Any

import harness
import overrides
import torch
import torch.nn.functional as F
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from spmd.integrations.transformers import SpmdTrainer

logging.set_verbosity_error()
RUN, REFUSED = "right", "refused"
# Methods that the compiled step contains: it cannot print what they see.
_COMPILED = ("compute_loss", "compute_loss_context_manager", "autocast_smart_context_manager", "_prepare_context_parallel_inputs")
_REFUSED = {f"Trainer.{name} | looks" for name in _COMPILED}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 3)

    def forward(self, x, labels):
        logits = self.last(torch.tanh(self.first(x)))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


class NoHooks(TrainerCallback):
    pass


def train(base: type, owner: str = "", name: str = "", does: str = "") -> list[Any]:
    """The logs, what the override has seen, and the parameters."""
    torch.manual_seed(0)
    seen: list[Any] = []
    generator = torch.Generator().manual_seed(1)
    data = [{"x": torch.randn(5, generator=generator), "labels": torch.randint(3, (), generator=generator)} for _ in range(24)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder, report_to=[], use_cpu=True, disable_tqdm=True, per_device_train_batch_size=4, learning_rate=0.1,
            num_train_epochs=1, logging_steps=1, gradient_accumulation_steps=2, save_strategy="epoch", eval_strategy="epoch",
            optim="sgd", max_grad_norm=0.5)
        kind = overrides.overriding(base, name, does, lambda self, *args, **kwargs: self.model, seen) if owner == "Trainer" else base
        callbacks = [overrides.overriding(NoHooks, name, does, lambda self, *args, **kwargs: kwargs["model"], seen)()] \
            if owner == "TrainerCallback" else []
        trainer = kind(Net(), arguments, train_dataset=data, eval_dataset=data[:4], callbacks=callbacks,
                       **({"spmd": {"ranks": 2, "launcher": "none"}} if issubclass(base, SpmdTrainer) else {}))
        trainer.train()
    kept = ("loss", "grad_norm", "learning_rate", "eval_loss", "step")
    logs = [entry[key] for entry in trainer.state.log_history for key in kept if key in entry]
    return [*logs, len(seen), *map(torch.tensor, seen), *trainer.model.parameters()]


@functools.lru_cache(maxsize=None)
def owners() -> dict[str, tuple[str, ...]]:
    """What can be overridden."""
    return {"TrainerCallback": tuple(sorted(name for name in vars(TrainerCallback) if name.startswith("on_"))),
            "Trainer": tuple(overrides.called(Trainer, lambda: train(Trainer)))}


def names() -> list[str]:
    return overrides.cases(owners())


def expected_of(name: str) -> str:
    """The outcome that a case is to have."""
    return REFUSED if name in _REFUSED else RUN


def run(name: str) -> harness.Outcome:
    """One case: logs, what was seen, and parameters, eager and compiled."""
    what, _, does = name.partition(" | ")
    owner, _, method = what.partition(".")
    try:
        expected = train(Trainer, owner, method, does)
    except Exception as error:  # PyTorch or the Trainer refuses it
        return harness.Outcome(expected_of(name), f"eager: {error}")
    return harness.compare(expected, train(SpmdTrainer, owner, method, does), 1e-4)
