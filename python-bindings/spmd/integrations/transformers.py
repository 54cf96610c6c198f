"""Hugging Face's Trainer with a compiled step: docs/integrations.md."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

import torch
from accelerate.optimizer import AcceleratedOptimizer
from transformers import Trainer

from ..remarks import remark
from ..training.compiled import CompiledStep, compile
from .optimizers import SteppedOptimizer, has_gradients
from .transformers_hooks import check_gradients, keeps_gradients, sees_gradients
from .users_lines import is_overridden, line_of

_PARTS = ("training_step", "create_optimizer", "_clip_grad_norm", "_get_grad_norm")


class SpmdTrainer(Trainer):
    """A transformers.Trainer that computes loss, gradients, their norm, clipping and the optimizer's step in one compiled
    step on `ranks` ranks. All else is the Trainer's: data, schedules, accumulation, logs, evaluation, checkpoints.

        trainer = SpmdTrainer(model, args, train_dataset=data, spmd=dict(ranks=4, policy="class:GPT2Block"))

    What a subclass overrides of compute_loss is compiled with the rest. A batch of the data loader is that of all ranks
    together. If a method or a callback can see gradients before the update, then loss with gradients, norm with clipping, and
    update are three compiled steps, between which it runs (transformers_hooks.py).

    Args:
      spmd: arguments of spmd.compile.
      Others as for transformers.Trainer.

    Raises:
      ValueError: the arguments ask for what a compiled step has in another way (processes, FSDP, DeepSpeed, f16).
    """

    def __init__(self, *args: Any, spmd: dict[str, Any] | None = None, **kwargs: Any):
        if missing := [name for name in _PARTS if not hasattr(Trainer, name)]:
            raise ImportError(f"this version of transformers has no Trainer.{missing[0]}; SpmdTrainer is for 5.23")
        super().__init__(*args, **kwargs)
        _check(self)
        self.compiled: CompiledStep = compile(self._step, **(spmd or {}))
        self._norm: torch.Tensor | None = None  # of the update that a compiled step has done; None: it is to be done
        self._was_computed = False  # training_step has run since the last update

    def create_optimizer(self, model: torch.nn.Module | None = None) -> torch.optim.Optimizer:
        super().create_optimizer(model)
        self._users_optimizer()
        return self.optimizer

    def training_step(self, model: torch.nn.Module, inputs: dict[str, Any],
                      num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
        if isinstance(num_items_in_batch, int):
            num_items_in_batch = torch.tensor(num_items_in_batch)
        updates = self.accelerator.sync_gradients and not sees_gradients(self, SpmdTrainer, super())
        self._was_computed = True
        model.train()
        inputs = self._prepare_inputs(inputs)
        with _prepared(self):
            loss, norm = self.compiled(model, self._users_optimizer(), inputs, num_items_in_batch, "all" if updates else "gradients")
        self._norm = norm if updates else None
        return loss

    def _step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, inputs: dict[str, Any] | None,
              num_items_in_batch: torch.Tensor | None, part: str, limit: float = 0.0) -> tuple[torch.Tensor | None, ...]:
        """Part of an update: "gradients", "clip" to `limit`, "update" and "update and clear"; or "all" of these."""
        loss = norm = None
        if part in ("all", "gradients"):
            loss = super().training_step(model, inputs, num_items_in_batch)
        if part in ("all", "clip"):
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit or self.args.max_grad_norm or float("inf"))
        if part in ("all", "update", "update and clear"):
            optimizer.step()
        if part in ("all", "update and clear"):
            optimizer.zero_grad()
        return loss, norm

    def _clip_grad_norm(self, model: torch.nn.Module) -> torch.Tensor | None:
        if is_overridden(super(), "_clip_grad_norm", Trainer):
            return super()._clip_grad_norm(model)
        return self._clipped(self.args.max_grad_norm)

    def _get_grad_norm(self, model: torch.nn.Module, grad_norm: Any = None) -> Any:
        if is_overridden(super(), "_get_grad_norm", Trainer):
            return super()._get_grad_norm(model, grad_norm=grad_norm)
        return self._clipped(float("inf")) if grad_norm is None else grad_norm

    def _clipped(self, limit: float) -> torch.Tensor:
        """The norm of the gradients, which are clipped to `limit`."""
        if self._norm is not None:
            return self._norm
        optimizer = self._users_optimizer()
        if not has_gradients(self.model.parameters()):
            return torch.zeros(())
        return self.compiled(self.model, optimizer, None, None, "clip", limit)[1]

    def _update(self) -> None:
        """In place of the optimizer's step in the Trainer's loop."""
        optimizer = self._users_optimizer()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if self._norm is not None:
            check_gradients(self, parameters)
        elif not has_gradients(parameters):
            optimizer.step()
        else:
            if not self._was_computed:
                remark(f"{type(self).__name__}.training_step computes gradients in eager PyTorch, on no rank\n"
                       f"{line_of(self.training_step)}\n  hint: call super().training_step()")
            is_seen = keeps_gradients(self.callback_handler.callbacks, self.model)
            self.compiled(self.model, optimizer, None, None, "update" if is_seen else "update and clear")
        self._norm, self._was_computed = None, False

    def _users_optimizer(self) -> torch.optim.Optimizer:
        """The optimizer of the compiled step. The Trainer's loop has a SteppedOptimizer in its place."""
        outer, found = None, self.optimizer
        while not isinstance(found, SteppedOptimizer) and isinstance(found, AcceleratedOptimizer):
            outer, found = found, found.optimizer
        if not isinstance(found, SteppedOptimizer):
            found = SteppedOptimizer(found, self._update)
            if outer is None:
                self.optimizer = found
            else:
                outer.optimizer = found
        return found.optimizer


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


def _check(trainer: Trainer) -> None:
    args = trainer.args
    for is_wrong, what, hint in (
            (args.world_size > 1, f"the Trainer runs in {args.world_size} processes",
             "start the script once, with spmd=dict(ranks=N), or call spmd.compile in a loop of your own, which torchrun may "
             "start"),
            (args.n_gpu > 1, f"the Trainer would copy the model to {args.n_gpu} GPUs",
             "show it one (CUDA_VISIBLE_DEVICES), or none with use_cpu=True"),
            (bool(args.fsdp), f"TrainingArguments has fsdp={args.fsdp!r}", "omit it, and pass spmd=dict(policy=…)"),
            (args.deepspeed is not None, "TrainingArguments has deepspeed", "leave it out"),
            (args.fp16, "TrainingArguments has fp16=True", "take bf16=True, or spmd=dict(precision=…)")):
        if is_wrong:
            raise ValueError(f"{what}\n  hint: {hint}")
