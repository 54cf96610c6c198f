"""Which code is observed: all Python that runs in a step, except the code that only traces it.

PyTorch's own modules keep numbers (the rate of a dropout, the steps of a scheduler), and so do libraries. What PyTorch runs to trace,
dispatch and differentiate keeps none that a graph depends on.
"""
from __future__ import annotations

import functools
import os
import sysconfig
import types
from typing import Any

import torch

_TORCH = os.path.dirname(torch.__file__) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep

# Parts of PyTorch that keep numbers which a step reads.
_OF_TORCH = tuple(_TORCH + part.replace("/", os.sep) for part in (
    "nn/attention/", "nn/modules/", "nn/utils/", "optim/lr_scheduler.py", "optim/swa_utils.py", "distributions/", "ao/", "amp/autocast_mode.py"))
# What PyTorch does around each call of a module: the hooks and modes that it reads are guarded by programs.look_at().
_AROUND_MODULES = _TORCH + os.path.join("nn", "modules", "module.py")
# Parts of Python that read or copy the user's objects.
_OF_PYTHON = tuple(_STDLIB + part.replace("/", os.sep) for part in (
    "collections/", "contextlib.py", "copy.py", "dataclasses.py", "functools.py", "types.py", "os.py", "operator.py", "statistics.py",
    "fractions.py", "string.py", "queue.py", "heapq.py", "bisect.py", "configparser.py", "weakref.py", "pathlib.py", "genericpath.py"))
_WEAKREF = _STDLIB + "weakref.py"
_FROZEN = ("<frozen os>", "<frozen _collections_abc>", "<frozen genericpath>")  # os.environ; what mappings inherit; os.path.exists
FILE_READERS = frozenset(("torch.serialization",))  # modules of PyTorch that open the user's files
# Libraries whose numbers reach no graph: arithmetic on shapes, progress bars, numerics on values that are compared as arrays.
_LIBRARIES = ("sympy", "mpmath", "numpy", "tqdm", "networkx", "triton", "packaging", "filelock", "huggingface_hub", "pytest", "_pytest",
              "pluggy", "tensorboard", "wandb", "rich")


def is_of_torch(module: str) -> bool:
    """Whether a module, by its name, is part of PyTorch."""
    return module.partition(".")[0] == "torch"


def is_of_python(path: str) -> bool:
    """Code of Python's own library."""
    return path.startswith("<frozen") or path.startswith(_STDLIB) and "site-packages" not in path


def is_called_to_trace(frame: types.FrameType) -> bool:
    """Whether this compiler or torch.vmap has called the code of Python's library that a frame runs: vmap reads its state by
    functools.cached_property. Other parts of PyTorch call the user's functions through that library."""
    caller = frame.f_back
    while caller is not None and is_of_python(caller.f_code.co_filename):
        caller = caller.f_back
    return caller is not None and caller.f_code.co_filename.startswith((_OURS, _TORCH + "_functorch"))


def is_observed(path: str, table: dict[str, Any], function: str = "") -> bool:
    """Whether the reads of the code of a function in a file are recorded, which has the globals `table`. Code without a file (made at run time, as
    the methods of dataclasses are) belongs to the module of its globals."""
    if path.startswith("<frozen"):
        return path in _FROZEN
    if path.startswith("<"):
        return str(table.get("__name__")).partition(".")[0] not in ("spmd", "torch")
    if path == _WEAKREF and function == "remove":  # runs when an object goes, whenever that is
        return False
    return _is_observed_file(path)


@functools.lru_cache(maxsize=None)
def _is_observed_file(path: str) -> bool:
    path = os.path.abspath(path)
    if path.startswith(_TORCH):
        return path.startswith(_OF_TORCH) and path != _AROUND_MODULES
    if path.startswith(_OURS):
        return False
    if "site-packages" + os.sep in path:
        return path.rpartition("site-packages" + os.sep)[2].split(os.sep)[0].removesuffix(".py") not in _LIBRARIES
    return not path.startswith(_STDLIB) or path.startswith(_OF_PYTHON)
