"""Lightning modules with a compiled training step: docs/integrations.md."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator

import torch
from pytorch_lightning import LightningModule

from ..training.compiled import CompiledStep, compile
from .lightning_hooks import check_callbacks, check_module
from .optimizers import SteppedOptimizer


class SpmdModule(LightningModule):
    """A LightningModule whose training_step, backward, clipping and optimizer's step are one compiled step on `ranks` ranks.
    It is written as any other: training_step gives a loss (or a dict with one), configure_optimizers an optimizer, alone or
    with a schedule. Its optimization is manual for Lightning's Trainer, which therefore takes neither
    gradient_clip_val nor accumulate_grad_batches: they are attributes here.

        class Model(SpmdModule):
            spmd = dict(ranks=4, policy="class:Block")
            gradient_clip_val = 1.0

    Attributes:
      spmd: arguments of spmd.compile.
      gradient_clip_val: the largest norm of all gradients together; None: they are not clipped.
      accumulate_grad_batches: after how many batches the optimizer steps; the loss of each is divided by it.

    What training_step logs is logged when the step is over; its value may be a tensor or a number.

    Raises:
      TypeError: the class, the object or a callback of the Trainer has a hook that the compiled step would not run.
      ValueError: configure_optimizers gives several optimizers or a ReduceLROnPlateau, the Trainer runs several processes,
        or all processes train on the same rows.
    """

    spmd: dict[str, Any] = {}
    gradient_clip_val: float | None = None
    accumulate_grad_batches: int = 1
    _users_step: Callable[..., Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_module(cls)
        if cls.training_step is not SpmdModule.training_step:  # the class's own, or of a class that stands before SpmdModule
            cls._users_step = cls.training_step
            cls.training_step = SpmdModule.training_step
        configure = cls.configure_optimizers
        if configure is not LightningModule.configure_optimizers and not hasattr(configure, "gives_stepped"):
            cls.configure_optimizers = _with_steps_of_ours(configure)

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        if not self.trainer.training:  # a validation_step calls it
            return self._users_step(batch, batch_idx)
        check_module(self)
        check_callbacks(self.trainer.callbacks)
        if self.trainer.world_size > 1:
            raise ValueError(f"Lightning's Trainer runs {self.trainer.world_size} processes\n  cure: devices=1, and "
                             "spmd = dict(ranks=N)")
        if "_compiled" not in self.__dict__:
            self.__dict__["_compiled"] = compile(self._step, **self.spmd)
            self.compiled.training_state.refuses_equal_rows = True
        optimizer = self.optimizers()
        is_last = self.trainer.is_last_batch or (batch_idx + 1) % self.accumulate_grad_batches == 0
        with _recorded(self):
            loss, logged = self.compiled(self, _own(optimizer), batch, is_last)
        for (name, options), value in logged.items():
            self.log(name, value, **dict(options))
        if is_last:
            optimizer.step()  # Lightning counts it
            self._step_schedule(batch_idx)
        return loss

    @property
    def compiled(self) -> CompiledStep:
        """The compiled step; after the first batch."""
        return self.__dict__["_compiled"]

    def _step(self, module: "SpmdModule", optimizer: torch.optim.Optimizer, batch: Any,
              updates: bool) -> tuple[torch.Tensor, dict[Any, Any]]:
        result = module._users_step(batch, 0)
        logged = module.log.take()
        loss = result["loss"] if isinstance(result, dict) else result
        (loss / module.accumulate_grad_batches).backward()
        if updates:
            if module.gradient_clip_val is not None:
                torch.nn.utils.clip_grad_norm_(module.parameters(), module.gradient_clip_val)
            optimizer.step()
            optimizer.zero_grad()
        return loss.detach(), logged

    def _step_schedule(self, batch_idx: int) -> None:
        for config in self.trainer.strategy.lr_scheduler_configs:
            count = self.global_step if config.interval == "step" else self.current_epoch + 1
            if (config.interval == "step" or self.trainer.is_last_batch) and count % config.frequency == 0:
                config.scheduler.step()


class _Log:
    """What a step logs, until it is over."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def __call__(self, name: str, value: Any, **options: Any) -> None:
        self.values[name, tuple(sorted(options.items()))] = value.detach() if isinstance(value, torch.Tensor) else value

    def all(self, values: dict[str, Any], **options: Any) -> None:
        for name, value in values.items():
            self(name, value, **options)

    def take(self) -> dict[Any, Any]:
        values, self.values = self.values, {}
        return values


@contextlib.contextmanager
def _recorded(module: SpmdModule) -> Iterator[None]:
    """In place of the methods, which would ask the Trainer while a step is captured."""
    log = module.__dict__.setdefault("_kept_log", _Log())
    module.__dict__.update(log=log, log_dict=log.all)
    try:
        yield
    finally:
        del module.__dict__["log"], module.__dict__["log_dict"]


def _own(optimizer: Any) -> torch.optim.Optimizer:
    """That which a SteppedOptimizer, and Lightning's, stand for."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def _with_steps_of_ours(configure: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What Lightning is given does not step a second time; schedules, which move the optimizer itself, say they are its."""
    def configure_optimizers(self: SpmdModule) -> Any:
        given = configure(self)
        schedules: Any = []
        if isinstance(given, dict):
            given, schedules = given["optimizer"], given.get("lr_scheduler", [])
        elif isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], (list, tuple)):
            given, schedules = given
        optimizers = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(optimizers) != 1:
            raise ValueError(f"configure_optimizers gives {len(optimizers)} optimizers, and a SpmdModule has one\n"
                             "  cure: one with several param groups, or spmd.compile in manual optimization")
        stepped = SteppedOptimizer(optimizers[0])
        schedules = list(schedules) if isinstance(schedules, (list, tuple)) else [schedules]
        for one in schedules:
            schedule = one["scheduler"] if isinstance(one, dict) else one
            if isinstance(schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
                raise ValueError("configure_optimizers gives a ReduceLROnPlateau, whose metric a SpmdModule does not pass on\n"
                                 "  cure: keep it in an attribute, and call its step(metric) in on_validation_epoch_end")
            schedule.optimizer = stepped
        return [stepped], schedules
    configure_optimizers.gives_stepped = True
    return configure_optimizers
