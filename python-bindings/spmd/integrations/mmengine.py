"""mmengine's strategy with a compiled step: docs/integrations.md."""
from __future__ import annotations

import contextlib
import copy
import functools
import types
from pathlib import Path
from typing import Any, Callable

import numpy
import torch
from mmengine._strategy import SingleDeviceStrategy
from mmengine._strategy.utils import MetaTensorContext
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.registry import FUNCTIONS, STRATEGIES

from ..training.compiled import CompiledStep, compile
from .users_lines import line_of, overridden

_KINDS = {"full": "full", "local": "sharded", "FULL_STATE_DICT": "full", "LOCAL_STATE_DICT": "sharded",
          "SHARDED_STATE_DICT": "sharded"}
_POLICIES = ("auto_wrap_policy", "policy")


@STRATEGIES.register_module(name="SpmdFSDPStrategy")
class FSDPStrategy(SingleDeviceStrategy):
    """mmengine's FSDPStrategy, by its arguments, in one process on `ranks` ranks: loss, backward, clipping and the optimizer's
    step of a model's train_step are one compiled step.

    Keyword Args:
      model_wrapper: a config of MMFullyShardedDataParallel: `auto_wrap_policy`, a callable or the name of one in mmengine's
        FUNCTIONS, or a config of one (dict(type=…, …)), chooses the shard units; what else FSDP has means what it does in
        spmd.compile.
      skip_init_weights: the model is built without values, which a checkpoint then gives.
      state_dict_cfg: "full": a checkpoint is one file, of mmengine's own form. "local": a folder with a file for each rank.
        Or a dict with `state_dict_type`.
      activation_checkpointing: dict(check_fn=…): modules whose activations are computed again.
      spmd: further arguments of spmd.compile (ranks, precision, target, …).
      Others as for mmengine's strategies: work_dir, experiment_name, env_kwargs, log_kwargs, auto_scale_lr.

    Raises:
      ValueError: another kind of state dict, or an optimizer wrapper other than OptimWrapper, or AmpOptimWrapper in
        bfloat16, which is taken as autocast.
    """

    def __init__(self, *, model_wrapper: dict[str, Any] | None = None, skip_init_weights: bool = False,
                 state_dict_cfg: str | dict[str, Any] = "local", activation_checkpointing: dict[str, Any] | None = None,
                 spmd: dict[str, Any] | None = None, **kwargs: Any):
        if not isinstance(skip_init_weights, bool):
            raise TypeError(f"skip_init_weights is {skip_init_weights!r}; expected a bool")
        self._kind = _kind_of(state_dict_cfg)
        self._skip_init_weights, self._checkpointing = skip_init_weights, activation_checkpointing
        self._autocast: torch.dtype | None = None
        wrapper = {k: v for k, v in (model_wrapper or {}).items() if k != "type"}
        policy = {"policy": _function(wrapper.pop(name)) for name in _POLICIES if name in wrapper}
        self._spmd = {**policy, **wrapper, **(spmd or {})}
        super().__init__(**kwargs)

    compiled: CompiledStep

    def build_model(self, model: Any) -> torch.nn.Module:
        if not self._skip_init_weights or not isinstance(model, dict):
            return super().build_model(model)
        with MetaTensorContext():
            built = super().build_model(model)
        return built.to_empty(device="cpu")

    def _init_model_weights(self, model: torch.nn.Module) -> torch.nn.Module:
        return model if self._skip_init_weights else super()._init_model_weights(model)

    def _wrap_model(self, model: torch.nn.Module) -> torch.nn.Module:
        if self._checkpointing is not None:
            from ..torch_api.fsdp import apply_activation_checkpointing
            options = copy.deepcopy(self._checkpointing)
            apply_activation_checkpointing(model, check_fn=_function(options.pop("check_fn")), **options)
        for _, train_step in overridden(type(model), ("train_step",), BaseModel):
            raise TypeError(f"{type(model).__name__}.train_step does not run: the strategy has a compiled train_step\n"
                            f"{line_of(train_step)}\n  hint: compute the losses in forward(mode=\"loss\"), and combine them in "
                            "parse_losses")
        model = self.convert_model(model)
        model.to(next((parameter.device for parameter in model.parameters()), "cpu"))  # which a model may override
        self.compiled = compile(self._step, **self._spmd)
        self.compiled.training_state.refuses_equal_rows = True
        model.train_step = _TrainStep(self._train_step, model)
        return model

    def build_optim_wrapper(self, optim_wrapper: Any, model: torch.nn.Module | None = None) -> Any:
        if isinstance(optim_wrapper, dict) and optim_wrapper.get("type") == "AmpOptimWrapper":
            optim_wrapper = dict(optim_wrapper, type="OptimWrapper")
            if optim_wrapper.pop("dtype", None) not in ("bfloat16", torch.bfloat16):
                raise ValueError("AmpOptimWrapper computes in float16\n  hint: dtype='bfloat16', or spmd=dict(precision=…)")
            if optim_wrapper.pop("loss_scale", "dynamic") != "dynamic":
                raise ValueError("AmpOptimWrapper has a loss_scale, and bfloat16 needs none\n  hint: leave it out")
            self._autocast = torch.bfloat16
        built = super().build_optim_wrapper(optim_wrapper, model)
        if type(built) is not OptimWrapper:
            raise ValueError(f"the optimizer's wrapper is {type(built).__name__}\n  hint: OptimWrapper, or AmpOptimWrapper "
                             "with dtype='bfloat16'")
        return built

    def _train_step(self, model: torch.nn.Module, data: Any, optim_wrapper: OptimWrapper) -> dict[str, torch.Tensor]:
        """In place of the model's; what the wrapper counts and notes, it counts and notes here."""
        wrapper = optim_wrapper
        parts = torch.tensor(float(round(1 / float(wrapper.scale_loss(torch.ones((), dtype=torch.float64))))))
        wrapper._inner_count += 1
        logs, norm = self.compiled(model, wrapper.optimizer, model.data_preprocessor(data, True), wrapper, parts,
                                   wrapper.should_update())
        if norm is not None:
            wrapper.message_hub.update_scalar(f"train/{wrapper.grad_name}", float(norm))
        return logs

    def _step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer, data: Any, wrapper: OptimWrapper,
              parts: torch.Tensor, updates: bool) -> tuple[dict[str, torch.Tensor], torch.Tensor | None]:
        around = torch.autocast("cpu", self._autocast) if self._autocast else contextlib.nullcontext()
        with around:
            losses = model._run_forward(data, mode="loss")
        loss, logs = model.parse_losses(losses)
        (loss / parts).backward()
        norm = None
        if updates:
            if wrapper.clip_grad_kwargs:
                trained = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
                norm = wrapper.clip_func(trained, **wrapper.clip_grad_kwargs)
            optimizer.step()
            optimizer.zero_grad()
        return {name: value.detach() for name, value in logs.items()}, norm

    def save_checkpoint(self, filename: str, *, save_optimizer: bool = True, save_param_scheduler: bool = True,
                        extra_ckpt: dict | None = None, callback: Callable | None = None) -> None:
        if self._kind == "full":
            return super().save_checkpoint(filename, save_optimizer=save_optimizer, extra_ckpt=extra_ckpt,
                                           save_param_scheduler=save_param_scheduler, callback=callback)
        folder = Path(filename)
        self.compiled.save_checkpoint(folder, kind="sharded")
        rest = _Rest(extra_ckpt or {})
        rest["meta"] = {**rest.get("meta", {}), "seed": self.seed}
        if save_param_scheduler and hasattr(self, "param_schedulers"):
            rest["param_schedulers"] = self.scheduler_state_dict()
        if callback is not None:
            callback(rest)
        torch.save(dict(rest), folder / "rest.pth")

    def load_checkpoint(self, filename: str, **options: Any) -> dict:
        if not Path(filename).is_dir():
            with _readable():
                return super().load_checkpoint(filename, **options)
        if not hasattr(self, "optim_wrapper"):
            raise ValueError(f"{filename} is a checkpoint of a training\n  hint: prepare the strategy with an optim_wrapper")
        with _readable():
            rest = torch.load(Path(filename) / "rest.pth", weights_only=True)
        callback = options.get("callback")
        if callback is not None:
            callback(rest)
        self.compiled.load_checkpoint(filename, strict=options.get("strict", False),
                                      revise_keys=options.get("revise_keys", [(r"^module\.", "")]))
        return rest

    def resume(self, filename: str, **options: Any) -> dict:
        if Path(filename).is_dir():  # the optimizer's state is with the ranks' files
            options["resume_optimizer"] = False
        return super().resume(filename, **options)


class _Rest(dict):
    """What a checkpoint has besides the files of the ranks, which have the weights."""

    def __missing__(self, key: str) -> Any:
        if key == "state_dict":
            raise ValueError("a hook changes the weights of a checkpoint, as EMAHook does, and a folder of state_dict_cfg='local' has those "
                             "of the ranks\n  hint: state_dict_cfg='full'")
        raise KeyError(key)


class _TrainStep:
    """In place of a model's train_step. A copy of the model, as EMAHook makes it, has that of its class."""

    def __init__(self, step: Callable[..., Any], model: torch.nn.Module):
        self._step, self._model = step, model

    def __call__(self, data: Any, optim_wrapper: OptimWrapper) -> dict[str, torch.Tensor]:
        return self._step(self._model, data, optim_wrapper)

    def __deepcopy__(self, memo: dict[int, Any]) -> Callable[..., Any]:
        return _train_step_of(memo.get(id(self._model), self._model))

    def __reduce__(self) -> tuple[Any, ...]:
        return _train_step_of, (self._model,)


def _train_step_of(model: torch.nn.Module) -> Callable[..., Any]:
    return types.MethodType(type(model).train_step, model)


def _readable() -> contextlib.AbstractContextManager:
    """What mmengine's checkpoints hold besides tensors, which torch.load takes no longer unless it is told."""
    makes = [numpy.zeros(1).__reduce__()[0], numpy.float64(0).__reduce__()[0]]
    return torch.serialization.safe_globals([HistoryBuffer, (_method, "builtins.getattr"), numpy.ndarray, numpy.dtype, *makes,
                                             *(type(numpy.dtype(code)) for code in ("f8", "i8"))])


def _method(owner: Any, name: str) -> Any:
    """What a HistoryBuffer is saved with."""
    if owner is not HistoryBuffer:
        raise ValueError(f"the checkpoint asks for {owner!r}.{name}")
    return getattr(owner, name)


def _kind_of(config: str | dict[str, Any]) -> str:
    if isinstance(config, dict):
        given = config.get("state_dict_type", "LOCAL_STATE_DICT")
        config = getattr(given, "name", given)
    if config not in _KINDS:
        raise ValueError(f"state_dict_cfg is {config!r}; allowed: 'full', 'local', or a dict with state_dict_type")
    return _KINDS[config]


def _function(given: Any) -> Any:
    """A callable, or one of mmengine's FUNCTIONS by its name or its config."""
    if isinstance(given, dict):
        options = dict(given)
        return functools.partial(_function(options.pop("type")), **options)
    found = FUNCTIONS.get(given) if isinstance(given, str) else given
    if not callable(found):
        raise TypeError(f"{given!r} is no function, and FUNCTIONS of mmengine has none of this name")
    return found
