"""spmd: training steps captured from PyTorch, compiled ahead of time, run sharded over N ranks.

Only capturing and spmd.compile need PyTorch; spmd.load runs an artifact with numpy alone.
"""
from __future__ import annotations

import importlib
from typing import Any

from .torch_versions import REQUIREMENT

__version__ = "0.1.0"

_LAZY = {"capture": ".capture", "checkpoint": ".state.checkpoint", "CaptureError": ".capture.errors", "StepPackage": ".capture.write.package",
         "register_decomposition": ".capture.ops.custom_ops", "register_kernel": ".capture.ops.custom_ops", "anchor": ".capture.ops.anchors", "compile": ".training.compiled", "CompiledStep": ".training.compiled", "DataParallel": ".compat.parallel_mode", "NonFiniteError": ".training.compiled",
         "CompileError": ".compiler",
         "Remark": ".remarks", "Override": ".compat.overrides", "PassError": ".passes", "Program": ".program", "CompilerWarning": ".remarks", "StateLostError": ".training.lost_values",
         "MemoryBudgetError": ".planning",
         "shard_units": ".units", "fully_shard": ".units", "enable_wrap": ".units", "wrap": ".units",
         "load": ".run.runtime", "Trainer": ".run.runtime", "RunError": ".run.runtime", "Shard": ".run.runtime", "ToolError": ".tools"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'spmd' has no attribute {name!r}")
    try:
        module = importlib.import_module(_LAZY[name], __name__)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"spmd.{name} needs PyTorch: pip install '{REQUIREMENT}'") from error
    value = module if name in ("capture", "checkpoint") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *_LAZY])
