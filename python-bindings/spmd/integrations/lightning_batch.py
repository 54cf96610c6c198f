"""One batch of a SpmdModule: the hooks that Lightning's automatic optimization has between loss and update, in its order.

Without such hooks one compiled step does all. With one of them the step has parts: gradients, clipping, update. Forward and
backward are one part. So on_before_zero_grad and optimizer_zero_grad run before the forward, and on_before_backward after the
backward with the gradients of before; a change of weights there, or of the loss, is an error.
"""
from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch
from pytorch_lightning import Callback, LightningModule
from pytorch_lightning.trainer import call
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from ..training.written import WrittenTensors
from .optimizers import SteppedOptimizer, has_gradients
from .users_lines import Methods, is_overridden, line_of

_OF_BOTH = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")
_OF_CALLBACKS = Methods(Callback, *_OF_BOTH)
_CLIPPING = Methods(LightningModule, "configure_gradient_clipping", "clip_gradients")
_OF_MODULES = Methods(LightningModule, *_OF_BOTH, "optimizer_zero_grad", "configure_gradient_clipping", "clip_gradients",
                      "optimizer_step")


class TrainingBatch:
    """One batch, which run() trains on; `module` is a SpmdModule."""

    def __init__(self, module: Any, batch: Any, batch_idx: int):
        self._module, self._batch, self._batch_idx, self._trainer = module, batch, batch_idx, module.trainer
        count = module.accumulate_grad_batches
        self._is_first = batch_idx % count == 0
        self._is_last = self._trainer.is_last_batch or (batch_idx + 1) % count == 0
        self._stepped: SteppedOptimizer = self._trainer.optimizers[0]
        self._is_apart = _OF_MODULES.is_overridden_by(module) or any(map(_OF_CALLBACKS.is_overridden_by, self._trainer.callbacks))
        self._result: Any = None
        self._has_result = False

    def run(self) -> Any:
        """Trains, and gives what Lightning's hooks get as outputs."""
        optimizer = self._module.optimizers()
        if not self._is_apart:
            self._result = self._call("all" if self._is_last else "gradients", self._is_first)
            if self._is_last:
                optimizer.step()  # Lightning counts it
        elif self._is_last:
            call._call_lightning_module_hook(self._trainer, "optimizer_step", self._trainer.current_epoch, self._batch_idx,
                                             optimizer, self._closure)
            if not self._has_result:
                raise MisconfigurationException(f"{type(self._module).__name__}.optimizer_step does not call its closure\n"
                                                f"{line_of(self._module.optimizer_step)}\n"
                                                "  hint: optimizer.step(closure=optimizer_closure)")
        else:
            self._closure()
        if self._is_last:
            self._step_schedules()
        return self._result

    def update(self) -> None:
        """What the optimizer's step does."""
        if not self._is_apart:
            return
        module, optimizer = self._module, self._stepped.optimizer
        if _CLIPPING.is_overridden_by(module):
            call._call_lightning_module_hook(self._trainer, "configure_gradient_clipping", self._stepped,
                                             gradient_clip_val=module.gradient_clip_val, gradient_clip_algorithm=None)
        elif module.gradient_clip_val is not None and has_gradients(module.parameters()):
            self._call("clip")
        if has_gradients(p for group in optimizer.param_groups for p in group["params"]):
            self._call("update")
        else:
            optimizer.step()

    def _call(self, part: str, clears: bool = False) -> Any:
        is_whole = part in ("all", "gradients")
        return self._module._spmd_call(self._stepped.optimizer, self._batch if is_whole else None, self._batch_idx, part, clears)

    def _closure(self) -> torch.Tensor | None:
        """The closure of Lightning's optimizer_step."""
        has_zero_hooks = self._has_hook("on_before_zero_grad") \
            or is_overridden(self._module, "optimizer_zero_grad", LightningModule)
        if self._is_first and has_zero_hooks:
            with self._without_writes("on_before_zero_grad", "optimizer_zero_grad"):
                self._hooks("on_before_zero_grad", self._stepped)
                call._call_lightning_module_hook(self._trainer, "optimizer_zero_grad", self._trainer.current_epoch,
                                                 self._batch_idx, self._stepped.optimizer)
        sees_loss = self._has_hook("on_before_backward")
        clears = self._is_first and not has_zero_hooks
        if sees_loss and clears:
            self._stepped.optimizer.zero_grad()
        parameters = list(self._module.parameters())
        before = [p.grad for p in parameters]
        if sees_loss:
            for p in parameters:
                p.grad = None
        self._result, self._has_result = self._call("gradients", clears and not sees_loss), True
        loss = self._result.get("loss") if isinstance(self._result, dict) else self._result
        if sees_loss:
            self._before_backward(loss, parameters, before)
        if loss is not None:
            self._hooks("on_after_backward")
        return loss

    def _before_backward(self, loss: torch.Tensor | None, parameters: list[torch.Tensor],
                         before: list[torch.Tensor | None]) -> None:
        """Runs on_before_backward with the gradients of before the backward, then adds those of the backward."""
        added = [p.grad for p in parameters]
        for p, gradient in zip(parameters, before):
            p.grad = gradient
        if loss is None:
            return
        shown = loss.clone()
        with self._without_writes("on_before_backward"):
            self._hooks("on_before_backward", shown)
        if not torch.equal(shown, loss):
            raise self._error("the loss", ("on_before_backward",))
        for p, gradient in zip(parameters, added):
            if gradient is not None:
                p.grad = gradient if p.grad is None else p.grad + gradient

    def _step_schedules(self) -> None:
        for config in self._trainer.strategy.lr_scheduler_configs:
            count = self._module.global_step if config.interval == "step" else self._module.current_epoch + 1
            if (config.interval == "step" or self._trainer.is_last_batch) and count % config.frequency == 0:
                call._call_lightning_module_hook(self._trainer, "lr_scheduler_step", config.scheduler, None)

    def _hooks(self, name: str, *args: Any) -> None:
        call._call_callback_hooks(self._trainer, name, *args)
        call._call_lightning_module_hook(self._trainer, name, *args)

    def _has_hook(self, name: str) -> bool:
        return is_overridden(self._module, name, LightningModule) \
            or any(is_overridden(callback, name, Callback) for callback in self._trainer.callbacks)

    @contextlib.contextmanager
    def _without_writes(self, *names: str) -> Iterator[None]:
        """Raises if weights change meanwhile: the compiled step has both the forward, before these hooks, and the backward."""
        written = WrittenTensors(self._module)
        yield
        if name := written.first():
            raise self._error(f"{name!r}", names)

    def _error(self, what: str, names: tuple[str, ...]) -> TypeError:
        owners = [(self._module, LightningModule), *((callback, Callback) for callback in self._trainer.callbacks)]
        owner, name = next((owner, name) for name in names for owner, base in owners if is_overridden(owner, name, base))
        return TypeError(f"{type(owner).__name__}.{name} changes {what} between the forward and the backward pass: both are "
                         f"one compiled step\n{line_of(getattr(owner, name))}\n  hint: change it in training_step; change "
                         "weights in on_train_batch_start")
