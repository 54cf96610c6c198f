"""Lightning's hooks that a SpmdModule does not run, because the compiled step does what they are called around."""
from __future__ import annotations

from typing import Iterable

from pytorch_lightning import Callback, LightningModule

from .users_lines import line_of, overridden

_IN_THE_STEP = "training_step may do it; or call spmd.compile in a LightningModule with manual optimization"
_SCHEDULES = "change optimizer.param_groups in on_train_batch_start, or give a scheduler of your own"
# What a module can override and the compiled step does by itself, and what to do instead.
_OF_MODULES = {
    "on_before_zero_grad": _IN_THE_STEP, "optimizer_zero_grad": _IN_THE_STEP, "on_before_backward": _IN_THE_STEP,
    "backward": _IN_THE_STEP, "on_after_backward": _IN_THE_STEP, "on_before_optimizer_step": _IN_THE_STEP,
    "configure_gradient_clipping": "gradient_clip_val of the SpmdModule; or call spmd.compile in a LightningModule with manual "
                                   "optimization",
    "optimizer_step": _SCHEDULES, "lr_scheduler_step": _SCHEDULES}
_OF_CALLBACKS = ("on_before_zero_grad", "on_before_backward", "on_after_backward", "on_before_optimizer_step")


def check_module(module: type | LightningModule) -> None:
    """Raises for a class, or an object, with a hook that would not run."""
    for name, hook in overridden(module, tuple(_OF_MODULES), LightningModule):
        kind = module if isinstance(module, type) else type(module)
        raise TypeError(f"{kind.__name__}.{name} does not run: a SpmdModule does this in its compiled step\n{line_of(hook)}\n"
                        f"  cure: {_OF_MODULES[name]}")


def check_callbacks(callbacks: Iterable[Callback]) -> None:
    """Raises for a callback with a hook that sees gradients."""
    for callback in callbacks:
        for name, hook in overridden(callback, _OF_CALLBACKS, Callback):
            raise TypeError(f"{type(callback).__name__}.{name} does not run: gradients exist only in the compiled step of a "
                            f"SpmdModule\n{line_of(hook)}\n  cure: {_IN_THE_STEP}")
