"""Hugging Face's Trainer with a compiled step: docs/integrations.md."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

import torch
from transformers import Trainer

from ..training.compiled import CompiledStep, compile
from .optimizers import SteppedOptimizer
from .transformers_hooks import check_callbacks, check_gradients, check_methods

_PARTS = ("training_step", "create_optimizer", "_clip_grad_norm", "_get_grad_norm")


class SpmdTrainer(Trainer):
    """A transformers.Trainer that computes loss, gradients, their norm, clipping and the optimizer's step in one compiled
    step on `ranks` ranks. All else is the Trainer's: data, schedules, accumulation, logs, evaluation, checkpoints.

        trainer = SpmdTrainer(model, args, train_dataset=data, spmd=dict(ranks=4, policy="class:GPT2Block"))

    What a subclass overrides of compute_loss is compiled with the rest. A batch of the data loader is that of all ranks
    together.

    Args:
      spmd: arguments of spmd.compile.
      Others as for transformers.Trainer.

    Raises:
      TypeError: the class, the object or a callback has a method that would need the gradients of the compiled step.
      ValueError: the arguments ask for what a compiled step has in another way (processes, FSDP, DeepSpeed, f16).
    """

    def __init__(self, *args: Any, spmd: dict[str, Any] | None = None, **kwargs: Any):
        if missing := [name for name in _PARTS if not hasattr(Trainer, name)]:
            raise ImportError(f"this version of transformers has no Trainer.{missing[0]}; SpmdTrainer is for 5.23")
        super().__init__(*args, **kwargs)
        _check(self)
        self._check_hooks()
        self.compiled: CompiledStep = compile(self._step, **(spmd or {}))
        self._norm: torch.Tensor | None = torch.zeros(())  # that of an update without a step

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        if not isinstance(self.optimizer, SteppedOptimizer):
            self.optimizer = SteppedOptimizer(super().create_optimizer(model), self._check_update)
        return self.optimizer

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any],
                      num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
        if isinstance(num_items_in_batch, int):
            num_items_in_batch = torch.tensor(num_items_in_batch)
        self._check_hooks()
        model.train()
        inputs = self._prepare_inputs(inputs)
        with _prepared(self):
            loss, self._norm = self.compiled(model, _own(self.optimizer), inputs, num_items_in_batch,
                                             self.accelerator.sync_gradients)
        return loss

    def _step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: dict[str, Any],
              num_items_in_batch: torch.Tensor | None, updates: bool) -> tuple[torch.Tensor, torch.Tensor | None]:
        loss, norm = super().training_step(model, inputs, num_items_in_batch), None
        if updates:
            limit = self.args.max_grad_norm or float("inf")
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
            optimizer.step()
            optimizer.zero_grad()
        return loss, norm

    def _check_hooks(self) -> None:
        check_methods(self, SpmdTrainer, super())
        check_callbacks(self.callback_handler.callbacks)

    def _check_update(self) -> None:
        check_gradients(self, _own(self.optimizer))
        self._norm = torch.zeros(())

    def _clip_grad_norm(self, model: torch.nn.Module) -> torch.Tensor | None:
        return self._norm

    def _get_grad_norm(self, model: torch.nn.Module, grad_norm: Any = None) -> Any:
        return self._norm


@contextlib.contextmanager
def _prepared(trainer: SpmdTrainer) -> Iterator[None]:
    """The Trainer's training_step, which is compiled, does not prepare the inputs a second time."""
    own, prepare = trainer.__dict__.get("_prepare_inputs"), trainer._prepare_inputs

    def prepare_others(inputs: dict[str, Any]) -> dict[str, Any]:
        is_prepared = sys._getframe(1).f_code.co_name == "training_step"
        return inputs if is_prepared else prepare(inputs)

    trainer.__dict__["_prepare_inputs"] = prepare_others
    try:
        yield
    finally:
        del trainer.__dict__["_prepare_inputs"]
        if own is not None:
            trainer.__dict__["_prepare_inputs"] = own


def _own(optimizer: Any) -> torch.optim.Optimizer:
    """That which a SteppedOptimizer, and what accelerate makes of it, stand for."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _check(trainer: Trainer) -> None:
    args = trainer.args
    for is_wrong, what, cure in (
            (args.world_size > 1, f"the Trainer runs in {args.world_size} processes",
             "start the script once, with spmd=dict(ranks=N), or call spmd.compile in a loop of your own, which torchrun may "
             "start"),
            (args.n_gpu > 1, f"the Trainer would copy the model to {args.n_gpu} GPUs",
             "show it one (CUDA_VISIBLE_DEVICES), or none with use_cpu=True"),
            (bool(args.fsdp), f"TrainingArguments has fsdp={args.fsdp!r}", "leave it out, and give spmd=dict(policy=…)"),
            (args.deepspeed is not None, "TrainingArguments has deepspeed", "leave it out"),
            (args.fp16, "TrainingArguments has fp16=True", "take bf16=True, or spmd=dict(precision=…)")):
        if is_wrong:
            raise ValueError(f"{what}\n  cure: {cure}")
