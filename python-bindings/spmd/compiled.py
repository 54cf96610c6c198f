"""spmd.compile: a training step that captures, compiles and runs itself."""
from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any, Callable, Sequence

import torch
from safetensors.torch import save_file
from torch.utils import _pytree as pytree

from .arrays import to_torch
from .capture import StepPackage, capture
from .capture.call import StepCall
from .capture.trace import Output
from .compiler import compile_package
from .policies import policy_option
from .runtime import Trainer


class CompiledStep:
    """A training step compiled for N ranks; calls like the function it was made from.

    The first call captures and compiles. From then on parameters and optimizer state live in the ranks: sync() writes
    them back into the model and the optimizer. The learning rates of optimizer.param_groups are read at every call. A
    call whose batch has other shapes, whose Python arguments have other values, or whose optimizer has other options
    (weight decay, momentum) is another program: the state is carried over to it.

    Attributes: `train_step`, the function it was made from; and, None before the first call, `package` (what was
    captured), `artifact` (the compiled folder), `trainer`.
    """

    def __init__(self, train_step: Callable, options: Sequence[str], batch_dims: dict[str, int | None] | None,
                 run_options: dict[str, Any]):
        functools.update_wrapper(self, train_step)
        self.train_step = train_step
        self._options = list(options)
        self.batch_dims = batch_dims
        self._run_options = run_options
        self._call: StepCall | None = None
        self._signature: Any = None
        self.package: StepPackage | None = None
        self.artifact: Path | None = None
        self.trainer: Trainer | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = StepCall(self.train_step, args, kwargs)
        if self._call is not None and (call.model is not self._call.model or call.optimizer is not self._call.optimizer):
            raise ValueError(f"{self.__name__} was compiled for another model or optimizer; call reset() first")
        if self.trainer is None or call.signature_of_values() != self._signature:
            self.sync()
            self._start(call)
        for group, options in enumerate(call.optimizer.param_groups):
            self.trainer.set_hyper("lr", group, float(options["lr"]))
        call.optimizer._opt_called = True  # lr_scheduler.step() asks whether the optimizer has stepped before it
        outputs = [to_torch(o, info.dtype) for o, info in zip(self.trainer.run(call.batch), self.trainer.outputs)]
        return pytree.tree_map(
            lambda leaf: leaf if not isinstance(leaf, Output)
            else outputs[leaf.index].item() if leaf.scalar else outputs[leaf.index],
            self.package.result, is_leaf=lambda leaf: isinstance(leaf, Output))

    def sync(self) -> None:
        """Writes parameters, buffers and optimizer state from the ranks into the model and the optimizer."""
        if self.trainer is None:
            return
        model, optimizer = self._call.model, self._call.optimizer
        tensors = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        with torch.no_grad():
            for info in self.trainer.tensors:
                if info.state == "constant":
                    continue
                value = to_torch(self.trainer.read(info.state, info.name), info.dtype)
                target = tensors[info.name]
                if info.state in ("param", "buffer"):
                    target.copy_(value)
                elif info.state == "grad":
                    target.grad = value.to(target)
                else:
                    self._sync_state(optimizer.state[target], info.state, value, target)

    @staticmethod
    def _sync_state(state: dict, name: str, value: torch.Tensor, parameter: torch.Tensor) -> None:
        if isinstance(state.get(name), torch.Tensor):
            state[name].copy_(value)
        else:  # a step counter lives on the CPU, everything of a parameter's shape beside it
            state[name] = value.clone() if value.dim() == 0 and parameter.dim() else value.to(parameter.device).clone()

    def reset(self) -> None:
        """Forgets the ranks' state: the next call starts from what model and optimizer hold then."""
        if self.trainer is not None:
            self.trainer.close()
        self._call = self._signature = self.package = self.artifact = self.trainer = None

    def _start(self, call: StepCall) -> None:
        package = capture(self.train_step, *call.args, batch_dims=self.batch_dims, **call.kwargs)
        artifact = compile_package(package, self._options)
        with tempfile.TemporaryDirectory(prefix="spmd.") as folder:
            weights = Path(folder) / "weights.safetensors"
            save_file({n: t.detach().cpu().clone(memory_format=torch.contiguous_format)
                       for n, t in package.weights.items()}, weights)
            trainer = Trainer(artifact, weights=weights, **self._run_options)
        if self.trainer is not None:
            self.trainer.close()
        self._call, self._signature = call, call.signature_of_values()
        self.package, self.artifact, self.trainer = package, artifact, trainer


def compile(train_step: Callable | None = None, *, ranks: int, policy: Any = "none", mode: str = "fully_shard",
            view: str = "global", target: str = "host", batch_dims: dict[str, int | None] | None = None,
            options: Sequence[str] = (), threads: int | None = None, timeout: float | None = None) -> Any:
    """Compiles a training step for `ranks` ranks; as a decorator, or given the function.

        @spmd.compile(ranks=4, policy=ModuleWrapPolicy({Block}))
        def train_step(model, optimizer, x, y): ...

    Args:
      train_step: as for spmd.capture. Without it, a decorator is returned.
      ranks: how many ranks share parameters, gradients, optimizer state and batch.
      policy: which modules' parameters are gathered together: a --policy string, or one of FSDP's wrap policies.
      mode: "fully_shard" or "replicate".
      view: "global": the batch of a call is the global batch.
      target: "host".
      batch_dims: as for spmd.capture.
      options: further options of spmd-compile, as strings.
      threads: CPU threads of all ranks together; by default one per core.
      timeout: seconds after which a collective that waits for a rank is an error.

    Returns:
      A CompiledStep.
    """
    words = [f"--ranks={ranks}", f"--mode={mode}", f"--policy={policy_option(policy)}", f"--target={target}",
             *([] if view == "global" else [f"--view={view}"]), *options]
    run_options = {k: v for k, v in (("threads", threads), ("timeout", timeout)) if v is not None}

    def wrap(function: Callable) -> CompiledStep:
        return CompiledStep(function, words, batch_dims, run_options)

    return wrap if train_step is None else wrap(train_step)
