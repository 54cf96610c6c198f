"""spmd: training steps captured from PyTorch, compiled ahead of time, run sharded over N ranks.

Only capturing and spmd.compile need PyTorch; spmd.load runs an artifact with numpy alone.
"""
from __future__ import annotations

import importlib
from typing import Any

from .torch_versions import REQUIREMENT

__version__ = "0.1.0"

_NAMES = {  # by the module that has them, which is imported when one of them is used
    ".capture": ("capture",),
    ".capture.errors": ("CaptureError",),
    ".capture.ops.anchors": ("anchor",),
    ".capture.ops.custom_ops": ("register_decomposition", "register_kernel"),
    ".capture.write.package": ("StepPackage",),
    ".compat.overrides": ("Override",),
    ".compat.parallel_mode": ("DataParallel",),
    ".compiler": ("CompileError",),
    ".passes": ("PassError",),
    ".planning": ("MemoryBudgetError",),
    ".program": ("Program",),
    ".remarks": ("Remark", "CompilerWarning"),
    ".run.artifact_info": ("Shard",),
    ".run.runtime": ("load", "Trainer"),
    ".run_error": ("RunError",),
    ".state.checkpoint": ("checkpoint",),
    ".tools": ("ToolError",),
    ".training.compiled": ("compile", "CompiledStep", "NonFiniteError"),
    ".training.lost_values": ("StateLostError",),
    ".units": ("shard_units", "fully_shard", "enable_wrap", "wrap"),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'spmd' has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES[name], __name__)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"spmd.{name} needs PyTorch: pip install '{REQUIREMENT}'") from error
    value = module if name in ("capture", "checkpoint") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["__version__", *_MODULES])
