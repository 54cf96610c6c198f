"""The only file that replaces attributes of PyTorch, of Python and of other libraries.

A capture runs the user's step while some attributes of libraries are replaced. Each replaced attribute has one entry in
this file, which gives the reason. The replacement itself is defined in the file of its feature:

    with patches.replaced({patches.MODULE_TO: noted_to}):
        ...

A replacement holds for the whole process. `replaced` therefore restores every attribute when the block ends, also after
an exception. If threads overlap in a block, the feature uses `Shared`.

The table has three kinds of entries:

  Patch    an attribute of a module, a class or a logger
  Switch   a setting of PyTorch that can only be set through a function
  Kernels  kernels that replace those of operators in PyTorch's dispatcher

The table does not have:

  - attributes of the user's objects: parameters, gradients, `param_groups`, optimizer state (model/fakes.py,
    write/put_back.py)
  - operators of the namespace `spmd`, which add to PyTorch and replace nothing
  - entries that spmd adds to tables of a program: `sys.path`, `sys.modules`, and the annotations of nodes in
    `torch.fx.traceback.current_meta`
  - dispatch modes, function modes, hooks, gradient mode, the garbage collector and warning filters, which have context
    managers or functions of their own
"""
from __future__ import annotations

import contextlib
import dataclasses
import inspect
import logging
import operator
import sys
import threading
import types
import warnings
from typing import Any, Callable, ContextManager, Iterator, Mapping, Protocol

import torch
import torch.distributed
import torch.utils.checkpoint

from ...torch_api import flex_attention as flex
from ...torch_api import replaced as private
from ...torch_api.autograd import CHECKPOINT_CALLEE
from ...torch_api.modules import compiler_stance, dynamo_config, is_dynamo_loaded
from ...torch_api.operators import destroy_library
from ...torch_api.settings import set_mkldnn_enabled
from .sequence_slots import kept_sequence_slots


class Entry(Protocol):
    """An entry of the table."""

    @property
    def reason(self) -> str:
        """Why a capture replaces the attribute, as one sentence."""

    def set_to(self, value: Any) -> ContextManager[None]:
        """While entered, the attribute is `value`."""


@dataclasses.dataclass(frozen=True)
class Patch:
    """The attribute `name` of `owner`, which is "module" or "module:Class". An optional attribute is not replaced while
    its module is not imported, or if the module lacks the class. PyTorch sets a lazy attribute at its first use."""

    owner: str
    name: str
    reason: str
    is_optional: bool = False
    is_lazy: bool = False

    def find_owner(self) -> Any:
        """The module or the class; None if it is optional and not there."""
        module, _, name = self.owner.partition(":")
        if self.is_optional:
            found = sys.modules.get(module)
            return getattr(found, name, None) if name else found
        return operator.attrgetter(name)(sys.modules[module]) if name else sys.modules[module]

    def value(self) -> Any:
        """The attribute as `owner.name` gives it: a function from a class that has a static method."""
        return getattr(self.find_owner(), self.name)

    @contextlib.contextmanager
    def set_to(self, value: Any) -> Iterator[None]:
        owner = self.find_owner()
        if owner is None:
            yield
            return
        is_own = self.name in vars(owner)
        # From the table of the owner, because getattr() would turn a class method into a bound method.
        saved = vars(owner)[self.name] if is_own else None if self.is_lazy else getattr(owner, self.name)
        with kept_sequence_slots(owner, self.name):
            setattr(owner, self.name, value)
        try:
            yield
        finally:
            with kept_sequence_slots(owner, self.name):
                if is_own:
                    setattr(owner, self.name, saved)
                else:
                    delattr(owner, self.name)  # a base class has it, or nothing


@dataclasses.dataclass(frozen=True)
class LoggerPatch(Patch):
    """The attribute `name` of the logger `owner`."""

    def find_owner(self) -> logging.Logger:
        return logging.getLogger(self.owner)


@dataclasses.dataclass(frozen=True)
class CodePatch(Patch):
    """The attribute __code__ of the function `owner`: whoever has the function under another name runs the new code, too."""

    @contextlib.contextmanager
    def set_to(self, value: types.CodeType) -> Iterator[None]:
        """The code runs with the globals of the replaced function."""
        function = self.find_owner()
        saved, function.__code__ = function.__code__, value
        try:
            yield
        finally:
            function.__code__ = saved


@dataclasses.dataclass(frozen=True)
class Switch:
    """A setting that `read` gives and that `set_to` sets until its context manager ends."""

    name: str
    reason: str
    read: Callable[[], Any]
    set_to: Callable[[Any], ContextManager[None]]


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Kernels of the `operators` of a namespace for the dispatch keys `keys`."""

    operators: tuple[str, ...]
    keys: tuple[str, ...]
    reason: str
    namespace: str = "aten"

    @contextlib.contextmanager
    def set_to(self, functions: Mapping[str, Callable]) -> Iterator[None]:
        """`functions`: the kernels by operator, or by "operator.overload"."""
        if unlisted := [name for name in functions if name.partition(".")[0] not in self.operators]:
            raise KeyError(f"operator {unlisted[0]!r} has no entry in {__name__}")
        library = torch.library.Library(self.namespace, "IMPL")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch warns of each kernel that is replaced, which is intended
                for key in self.keys:
                    for name, function in functions.items():
                        library.impl(name, function, key)
            yield
        finally:
            destroy_library(library)


@contextlib.contextmanager
def replaced(values: Mapping[Entry, Any]) -> Iterator[None]:
    """While entered, each entry has its value. Entries are replaced in the order of `values`, and restored in reverse
    order."""
    with contextlib.ExitStack() as undo:
        for entry, value in values.items():
            undo.enter_context(entry.set_to(value))
        yield


class Shared:
    """Replacements that several threads use at once. The first user puts them in place, and the last user restores the
    attributes. `make` gives the replacements for each first user."""

    def __init__(self, make: Callable[[], Mapping[Entry, Any]]):
        self._make, self._users = make, 0
        self._lock, self._undo = threading.Lock(), contextlib.ExitStack()

    @contextlib.contextmanager
    def replaced(self) -> Iterator[None]:
        """While entered by any thread, the attributes are replaced."""
        with self._lock:
            if not self._users:
                self._undo.enter_context(replaced(self._make()))
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._undo.close()


# model/: modules, tensors and what PyTorch runs around them

FAKE_TENSOR_DATA = Patch(private.FAKE_TENSOR, "data", "The tracer must see assignments to .data, which are not operators.")
MODULE_TO = Patch("torch.nn:Module", "to", "A cast of a module inside a step would replace parameters that the step trains.")
AUTOCAST_INIT = Patch("torch:autocast", "__init__", "A region that the step disables itself is not an error.")
AUTOCAST_ENTER = Patch("torch:autocast", "__enter__",
                       "Autocast for another device would have no effect on a trace on CPU fakes.")
FOREACH_TYPES = Patch(*private.FOREACH_TYPES,
                      "clip_grad_norm_ and zero_grad choose their foreach form by type: a fake counts as a tensor.")
ENGINE_RUN_BACKWARD = Patch(*private.ENGINE_RUN_BACKWARD,
                            "backward() and grad() give nothing for inputs that are not part of the trace.")
CHECKPOINT = Patch("torch.utils.checkpoint:checkpoint.__wrapped__", CHECKPOINT_CALLEE,
                   "A region runs again with the casts and the provenance of its first run, however the step refers to "
                   "checkpoint().", is_lazy=True)
CHECKPOINT_IS_COMPILING = Patch(*private.CHECKPOINT_IS_COMPILING,
                                "Under a tracer, a selective checkpoint would save every operator's result.")


def _of_dynamo(set_to: Callable[[Any], ContextManager[None]]) -> Callable[[Any], ContextManager[None]]:
    """Without torch._dynamo nothing is compiled, and importing it takes a second."""
    return lambda value: set_to(value) if is_dynamo_loaded() else contextlib.nullcontext()


NESTED_TRACE_ERRORS = Switch(
    "torch.compile's error_on_nested_fx_trace", "A trace goes through what torch.compile has made.",
    lambda: dynamo_config().error_on_nested_fx_trace,
    _of_dynamo(lambda value: dynamo_config().patch(error_on_nested_fx_trace=value)))
COMPILER_STANCE = Switch(
    "torch.compiler.set_stance", "The reference step runs what torch.compile was given.",
    compiler_stance, _of_dynamo(lambda value: torch.compiler.set_stance(value)))

# ops/: operators that are traced in another form

_AUTOGRAD_KEYS = ("AutogradCPU", "AutogradCUDA", "AutogradMeta", "AutogradPrivateUse1")
ONE_OP = Kernels(("rms_norm", "scaled_dot_product_attention", "dropout", "_grouped_mm", "affine_grid_generator",
                  "grid_sampler_2d", "ctc_loss"), _AUTOGRAD_KEYS,
                 "PyTorch would dissolve the operator into what the device of the trace runs.")
FUSED_OPTIMIZERS = Kernels(("_fused_sgd_", "_fused_adam_", "_fused_adamw_", "_fused_adagrad_"), ("Meta",),
                           "Without a shape function, a fake tensor mode runs the operator on real zeros of full size.")
SYNC_BATCH_NORM = Patch("torch.nn:SyncBatchNorm", "forward", "The operators of SyncBatchNorm exist for GPUs only.")

_FLEX = "flex_attention() is an attention operator of the graph, with gradients on the CPU, where a step is traced."
FLEX_VALIDATE_DEVICE = Patch(*flex.VALIDATE_DEVICE, _FLEX, is_optional=True)
FLEX_CALLS_OPERATOR = Patch(*flex.CALLS_OPERATOR_DIRECTLY, _FLEX, is_optional=True)
FLEX_OPERATOR = Patch(*flex.OPERATOR, _FLEX, is_optional=True)
FLEX_MAKE_TABLES = Patch(*flex.MAKE_TABLES, "The trace follows which tables of blocks create_block_mask() has made.", is_optional=True)
VARLEN_ATTENTION = Kernels((flex.VARLEN_OPERATOR,), _AUTOGRAD_KEYS, "The operator has kernels for GPUs only.", flex.VARLEN_NAMESPACE)


@contextlib.contextmanager
def _set_onednn(value: bool) -> Iterator[None]:
    saved = torch.backends.mkldnn.enabled
    set_mkldnn_enabled(value)
    try:
        yield
    finally:
        set_mkldnn_enabled(saved)


# torch.backends.mkldnn.flags() would set more, and warn.
ONEDNN = Switch("torch.backends.mkldnn.enabled", "An LSTM is traced as arithmetic, not as one operator of oneDNN.",
                lambda: torch.backends.mkldnn.enabled, _set_onednn)

_STATES = "A step that saves and restores the random generator's state draws the numbers of the saved place again."
GET_RNG_STATE = tuple(Patch(owner, "get_rng_state", _STATES) for owner in ("torch", "torch.random"))
SET_RNG_STATE = tuple(Patch(owner, "set_rng_state", _STATES) for owner in ("torch", "torch.random"))

# values/: functions that depend on the values of tensors

_ROWS = "The trace follows tensors whose number of rows depends on data."
TENSOR_NONZERO = Patch("torch:Tensor", "nonzero", _ROWS)
TORCH_NONZERO = Patch("torch", "nonzero", _ROWS)
TORCH_WHERE = Patch("torch", "where", _ROWS)
TENSOR_GETITEM = Patch("torch:Tensor", "__getitem__", _ROWS)
TENSOR_SETITEM = Patch("torch:Tensor", "__setitem__", _ROWS)
TORCH_MASKED_SELECT = Patch("torch", "masked_select", _ROWS)
TENSOR_MASKED_SELECT = Patch("torch:Tensor", "masked_select", _ROWS)
L1_LOSS = Patch("torch.nn.functional", "l1_loss", _ROWS)
FUNCTION_APPLY = Patch("torch.autograd:Function", "apply",
                       "A torch.autograd.Function receives tensors, not rows whose number depends on data.")
ONE_HOT = Patch("torch.nn.functional", "one_hot", "A mask from a one-hot tensor selects the rows of one class.")
JIT_SCRIPT = Patch("torch.jit", "script", "The compiler of TorchScript only accepts PyTorch's own functions.")
FAKE_TENSOR_TOLIST = Patch(private.FAKE_TENSOR, "tolist", "The trace follows sizes of segments from a tensor to split().")
TENSOR_SPLIT = Patch("torch:Tensor", "split", "A split by data-dependent sizes gives segments of unknown length.")

COV = Kernels(("cov",), _AUTOGRAD_KEYS, "torch.cov reads values only to warn.")
TORCH_ANY = Patch("torch", "any", "gaussian_nll_loss reads values only to reject a negative variance.")
CAUSAL_MASK = Patch(*private.DETECT_IS_CAUSAL_MASK,
                    "nn.TransformerEncoder reads a mask only to replace it by an equal one.")
CHECK_WITH = Patch(*private.CHECK_WITH, "A condition that is known only in the step is a result of the step.")
VALIDATE_ARGS = Patch(*private.VALIDATE_ARGS,
                      "torch.distributions reads values only to reject them.")

MATH = tuple(Patch("math", name, "A step computes with Python numbers that are another one in each call.")
             for name in ("sqrt", "pow", "exp", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh", "atan", "hypot"))

# observe/ and messages: conversions out of PyTorch, and what PyTorch logs

TENSOR_NUMPY = Patch("torch:Tensor", "numpy",
                     "Under a fake tensor mode, numpy() of a real tensor gives invalid memory.")
TEXTS = tuple(Patch(owner, name, "A string that a traced value is printed into would be a constant.")
              for owner in ("torch:SymFloat", "torch:SymInt", "torch:SymBool", private.FAKE_TENSOR)
              for name in ("__repr__", "__str__"))
CONVERSIONS = tuple(Patch(private.FAKE_TENSOR, name,
                          "A failed conversion ends the capture, also if the step catches the error.")
                    for name in ("numpy", "__array__", "__format__", "data_ptr", "__dlpack__"))
FAKE_TENSOR_LOG = LoggerPatch(private.FAKE_TENSOR_LOGGER, "disabled",
                              "The capture reports an operator that rejects its shapes, with the user's line.")
EXPORT_LOG_HANDLERS = LoggerPatch("torch.export", "handlers",
                                  "torch.export.load only logs the error that explains a failure.")
EXPORT_LOG_PROPAGATE = LoggerPatch("torch.export", "propagate", "The capture reports the logged error itself.")

# optimizer/

IS_COMPILING = Patch(*private.IS_COMPILING_FLAG,
                     "On the CPU, optimizers accept a tensor learning rate only while this flag is set.")
ADAFACTORS = tuple(Patch(owner, name,
                         "PyTorch's Adafactor reads the step count and norms as Python numbers.")
                   for owner, name in private.ADAFACTOR_UPDATES)
ADAFACTOR_OF_TRANSFORMERS = Patch("transformers.optimization:Adafactor", "step",
                                  "Adafactor of transformers reads the step count as a Python number.",
                                  is_optional=True)
_SCALER = "GradScaler reads from tensors whether gradients are finite."
AMP_CHECK_AND_UNSCALE = Patch(*private.AMP_CHECK_AND_UNSCALE, _SCALER)
AMP_UPDATE_SCALE = Patch(*private.AMP_UPDATE_SCALE, _SCALER)
SCALER_MAYBE_OPT_STEP = Patch(*private.MAYBE_OPT_STEP, _SCALER)
SCALER_STEP = Patch("torch.amp:GradScaler", "step", "A fused optimizer checks for infinities in its own kernel.")
SCALER_SCALE = Patch("torch.amp:GradScaler", "scale",
                     "A scaler that the step creates itself would begin anew at every call.")
_CLIPPING = "Narrow gradients are clipped by a norm and a coefficient in f32, as FSDP1 does."
GET_TOTAL_NORM = Patch(*private.GET_TOTAL_NORM, _CLIPPING)
CLIP_WITH_NORM = Patch(*private.CLIP_GRADS_WITH_NORM, _CLIPPING)
MAKE_GRADS = Patch(*private.MAKE_GRADS, "A scaled loss shows which gradients are rounding errors.")

GET_RANK = CodePatch("torch.distributed:get_rank", "__code__", "A step whose graph follows from the number of its process has another graph in each process.")

# world/: side effects and the step's surroundings

_OUTPUT = "A compiled step prints and logs only once, during the capture."
PRINT = Patch("builtins", "print", _OUTPUT)
LOGGER_HANDLE = Patch("logging:Logger", "handle", _OUTPUT)
_FILES = "A call compares what is in the files and folders that the step reads."
OPEN = tuple(Patch(owner, "open", _FILES) for owner in ("builtins", "io", "_io"))
OS_OPEN = Patch("os", "open", _FILES)
LISTDIR = Patch("os", "listdir", _FILES)
SCANDIR = Patch("os", "scandir", _FILES)
CLOCKS = tuple(Patch("time", name, "A compiled step reads the clock only once, during the capture.")
               for name in ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns",
                            "process_time", "process_time_ns"))
_SEEDS = "A step that seeds a generator draws the same numbers at every call."
SEED = Patch("random", "seed", _SEEDS)
SEED_OF_NUMPY = Patch("numpy.random", "seed", _SEEDS, is_optional=True)
NO_SYNC = Patch("torch.nn.parallel:DistributedDataParallel", "no_sync",
                "A compiled step reduces gradients in each backward, which a remark reports.")


def mesh_methods() -> list[Patch]:
    """One entry for each method of DeviceMesh; none while torch.distributed.device_mesh is not imported."""
    module = sys.modules.get("torch.distributed.device_mesh")
    methods = {} if module is None else vars(module.DeviceMesh)
    return [Patch("torch.distributed.device_mesh:DeviceMesh", name, "A DeviceMesh is created outside of the trace.")
            for name, method in methods.items() if name in ("__init__", "__getitem__") or not name.startswith("__")
            and (isinstance(method, (staticmethod, classmethod)) or inspect.isroutine(method))]


def table() -> list[Entry]:
    """All entries, the methods of DeviceMesh as they are now."""
    found: list[Entry] = []
    for value in list(globals().values()):
        found += (entry for entry in (value if isinstance(value, tuple) else (value,))
                  if isinstance(entry, (Patch, Switch, Kernels)))
    return [*found, *mesh_methods()]
