"""Lightning modules with a compiled training step: docs/integrations.md."""
from __future__ import annotations

import contextlib
import inspect
import types
from typing import Any, Callable, Iterator

import torch
from pytorch_lightning import LightningModule

from ..torch_api.tracing import pytree
from ..training.compiled import CompiledStep, compile
from .lightning_batch import TrainingBatch
from .lightning_optimizers import with_stepped_optimizer
from .optimizers import drop_unkept_gradients
from .users_lines import is_overridden, line_of


class SpmdModule(LightningModule):
    """A LightningModule whose training_step, backward, clipping and optimizer's step are one compiled step on `ranks` ranks.
    It is written as any other: training_step gives a loss (or a dict with one, or None, which skips the batch),
    configure_optimizers an optimizer, alone or with a schedule. Its optimization is manual for Lightning's Trainer, which
    therefore takes neither gradient_clip_val nor accumulate_grad_batches: they are attributes here.

        class Model(SpmdModule):
            spmd = dict(ranks=4, policy="class:Block")
            gradient_clip_val = 1.0

    Attributes:
      spmd: arguments of spmd.compile.
      gradient_clip_val: the largest norm of all gradients together; None: they are not clipped.
      accumulate_grad_batches: after how many batches the optimizer steps; the loss of each is divided by it.

    If the module or a callback has hooks between loss and update, then gradients, clipping and update are compiled steps of
    their own, and the hooks run between them (lightning_batch.py). `backward` is compiled. What training_step logs is logged
    when the step is over; its value may be a tensor or a number.

    Raises:
      TypeError: training_step takes batches from an iterator, or a hook changes what the compiled step has already used.
      ValueError: configure_optimizers gives several optimizers or a ReduceLROnPlateau, the Trainer runs several processes,
        or all processes train on the same rows.
    """

    spmd: dict[str, Any] = {}
    gradient_clip_val: float | None = None
    accumulate_grad_batches: int = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "dataloader_iter" in inspect.signature(cls.training_step).parameters:
            raise TypeError(f"{cls.__name__}.training_step takes a dataloader_iter; a SpmdModule's takes a batch\n"
                            f"{line_of(cls.training_step)}\n  hint: training_step(self, batch, batch_idx)")

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.automatic_optimization = False
        # Lightning calls what the object has; super().training_step() calls what the classes have.
        self.__dict__["_spmd_users"] = {}
        for name, method in (("training_step", SpmdModule._spmd_train), ("configure_optimizers", SpmdModule._spmd_configure)):
            if is_overridden(type(self), name, LightningModule):
                self.__dict__[name] = types.MethodType(method, self)

    def __setattr__(self, name: str, value: Any) -> None:
        """A training_step of the object is compiled, as that of its class is."""
        if name in ("training_step", "configure_optimizers") and name in self.__dict__:
            self.__dict__["_spmd_users"][name] = value
        else:
            super().__setattr__(name, value)

    @property
    def compiled(self) -> CompiledStep:
        """The compiled step; after the first batch."""
        return self.__dict__["_spmd_compiled"]

    def cpu(self) -> Any:
        """Lightning moves a module at the end of a training: gradients that the ranks have not kept stay behind."""
        drop_unkept_gradients(self.parameters())
        return super().cpu()

    def to(self, *args: Any, **kwargs: Any) -> Any:
        drop_unkept_gradients(self.parameters())
        return super().to(*args, **kwargs)

    def _spmd_own(self, name: str) -> Callable[..., Any]:
        """A method as the user has written it."""
        return self.__dict__["_spmd_users"].get(name) or types.MethodType(getattr(type(self), name), self)

    def _spmd_configure(self) -> Any:
        """In place of configure_optimizers."""
        return with_stepped_optimizer(self._spmd_own("configure_optimizers")(), self._spmd_update)

    def _spmd_update(self) -> None:
        """In place of the optimizer's step."""
        batch = self.__dict__.get("_spmd_batch")
        if batch is not None:
            batch.update()

    def _spmd_train(self, batch: Any, batch_idx: int) -> Any:
        """In place of training_step: one batch of Lightning's automatic optimization."""
        if not self.trainer.training:  # a validation_step calls it
            return self._spmd_users_step(batch, batch_idx)
        if self.trainer.world_size > 1:
            raise ValueError(f"Lightning's Trainer runs {self.trainer.world_size} processes\n  hint: devices=1, and "
                             "spmd = dict(ranks=N)")
        if "_spmd_compiled" not in self.__dict__:
            self.__dict__["_spmd_compiled"] = compile(self._spmd_step, **self.spmd)
            self.compiled.training_state.refuses_equal_rows = True
        self.__dict__["_spmd_batch"] = TrainingBatch(self, batch, batch_idx)
        try:
            return self.__dict__["_spmd_batch"].run()
        finally:
            self.__dict__["_spmd_batch"] = None

    def _spmd_users_step(self, batch: Any, batch_idx: Any) -> Any:
        step = self._spmd_own("training_step")
        return step(batch, batch_idx) if len(inspect.signature(step).parameters) > 1 else step(batch)

    def _spmd_call(self, optimizer: torch.optim.Optimizer, batch: Any, batch_idx: int, part: str, clears: bool = False) -> Any:
        """Calls the compiled step, and logs what it logs."""
        with _recorded(self):
            result, logged = self.compiled(self, optimizer, batch, torch.tensor(batch_idx), part, clears)
        for (name, options), value in logged.items():
            self.log(name, value, **dict(options))
        return result

    def _spmd_step(self, module: "SpmdModule", optimizer: torch.optim.Optimizer, batch: Any, batch_idx: torch.Tensor, part: str,
                   clears: bool) -> tuple[Any, dict[Any, Any]]:
        """Part of an update: "gradients", "clip" and "update"; or "all" of these. `clears`: gradients of earlier batches."""
        result, logged = None, {}
        if part in ("all", "gradients"):
            result = module._spmd_users_step(batch, batch_idx)
            logged = module.log.take()
            if clears:
                optimizer.zero_grad()
            result = module._spmd_backward(result)
        if part in ("all", "clip") and module.gradient_clip_val is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), module.gradient_clip_val)
        if part in ("all", "update"):
            optimizer.step()
        return result, logged

    def _spmd_backward(self, result: Any) -> Any:
        """Calls backward() on the loss of a training_step; gives what Lightning passes on of its result."""
        loss = result.get("loss") if isinstance(result, dict) else result
        if loss is None:
            return None
        loss = loss / self.accumulate_grad_batches
        self.backward(loss)
        return pytree.tree_map(_detached, {**result, "loss": loss} if isinstance(result, dict) else loss)


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value


class _Log:
    """What a step logs, until it is over."""

    def __init__(self) -> None:
        self.values: dict[Any, Any] = {}

    def __call__(self, name: str, value: Any, **options: Any) -> None:
        self.values[name, tuple(sorted(options.items()))] = _detached(value)

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
