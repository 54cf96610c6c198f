"""Where each captured op comes from: module path, phase and the user's Python line.

PyTorch's own annotations give almost nothing for a step that calls backward() itself, so a dispatch mode stamps every
operator call: it sits above the tracer, which copies the stamp to the node it makes.
"""
from __future__ import annotations

import collections
import contextlib
import operator
import os
import sys
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

import torch
import torch.fx.traceback as fx_traceback
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.modules import module as nn_module
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import CaptureError, Frame, depends_on_values, error_at, is_user_file, writes_constant
from ..loops.microbatches import Microbatches
from ..ops import collectives
from ..ops.complex_numbers import ComplexNumbers
from ..ops.custom_ops import check_kernel, decomposition
from ..ops.draws import Draws
from ..ops.prims import in_atens_words
from ..ops.strides import in_order_of_memory
from ..optimizer.optimizers import Optimizers
from ..values.known_values import MADE_OF_NUMBERS, KnownValues, hidden_writes
from ..values.value_guards import Asked
from ..world.closure_objects import Place
from .operator_forms import Call, OperatorForms, tensors_in
from .refusals import Refusals

_TORCH_ROOT = os.path.dirname(torch.__file__) + os.sep
_AUTOGRAD = os.path.join(_TORCH_ROOT, "autograd", "__init__.py")


class Provenance(NamedTuple):
    """The stamp of one node. `seed` marks the gradient that backward() starts from."""

    phase: str
    module: str | None
    stack: tuple[Frame, ...]
    seed: bool = False


_ITEM = torch.ops.aten._local_scalar_dense.default
# What they leave in a graph follows from their arguments as well, here where none but integers are an index.
_PLAIN = {*MADE_OF_NUMBERS, torch.ops.aten.empty, torch.ops.aten.empty_strided, torch.ops.aten.to, torch.ops.aten.lift_fresh,
          torch.ops.aten.silu_backward}
_INDEXED = {torch.ops.aten.index, torch.ops.aten.index_put, torch.ops.aten.index_put_}
# Factories whose numbers say how many elements they make.
_RANGES = {torch.ops.aten.arange, torch.ops.aten.range, torch.ops.aten.linspace, torch.ops.aten.logspace, torch.ops.aten.eye}

# Ops whose shape functions take operands of several types, and whose kernels do not.
_PRODUCTS = {getattr(torch.ops.aten, name) for name in (
    "mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "vdot", "convolution", "linear")}


def _aliased(func: torch._ops.OpOverload, args: tuple, kwargs: dict, are_written: bool = False) -> list[torch.Tensor]:
    """The tensors in whose memory the operator's results lie; or only those that it writes to."""
    values = [args[number] if number < len(args) else kwargs.get(argument.name)
              for number, argument in enumerate(func._schema.arguments)
              if argument.alias_info is not None and (argument.alias_info.is_write or not are_written)]
    return [x for x in pytree.tree_leaves(values) if isinstance(x, torch.Tensor)] if values else []


class ProvenanceMode(TorchDispatchMode):
    """Stamps each op of the step and refuses the two things a graph would get silently wrong.

    Those are real tensors in place of the traced ones (`foreign` maps their id to a description), or of a module that
    is not among what was `reached` (by the ids of tensors), or is `excluded` (why and the cure, by id), and explicit random
    generators, whose reseeding no graph can see. `asked` tells values of the `roots` (KnownValues).
    """

    def __init__(self, modules: Sequence[tuple[str, torch.nn.Module]], optimizers: Optimizers,
                 parameters: list[torch.Tensor], foreign: dict[int, str], reached: Mapping[int, tuple[Place, torch.Tensor]],
                 excluded: dict[int, tuple[str, str]], refusals: Refusals, complex_numbers: ComplexNumbers,
                 roots: Mapping[int, int | Place], asked: Asked, forms: OperatorForms, draws: Draws, may_repeat: bool):
        super().__init__()
        self._forms = forms
        self._complex = complex_numbers
        self._module_names: dict[int, str] = {}
        for name, module in modules:
            self._module_names.setdefault(id(module), name)
        self._reached, self._excluded, self.refusals = reached, excluded, refusals
        self.called: set[int] = set()  # ids of modules
        self._optimizers = optimizers
        self._parameters = parameters
        self._foreign = foreign
        self._modules: list[str] = []
        self._in_optimizer = False
        self.updates: collections.Counter[int] = collections.Counter()  # step() of each optimizer, by its id
        self._backward_seen = False
        self._forward_of: dict[int, tuple[str | None, tuple[Frame, ...]]] = {}  # autograd sequence number -> its op
        self._from_gradients: dict[int, torch.Tensor] = {}  # what the step computed from gradients, kept alive
        self.known, self.asked = KnownValues(roots, reached), asked
        self.microbatches = Microbatches(parameters, [module for _, module in modules], forms, draws, self.known, self.stamped_as,
                                         may_repeat)
        refusals.where = lambda: user_stack()[0]
        refusals.tell = lambda expression: self.asked.tell(expression, user_stack()[0])
        self._views: dict[int, torch.Tensor] = {}  # of real tensors, kept alive
        self.items: list[tuple[Any, tuple[Frame, ...]]] = []  # what .item() gave, and where
        self.met_foreign: int | None = None  # the real tensor that the trace has ended at
        self._earlier: Iterator[Provenance] | None = None
        self._last: torch._ops.OpOverload | None = None
        self.last_stack: tuple[Frame, ...] = ()
        self.optimizer_stack: tuple[Frame, ...] = ()  # of the last op of an optimizer

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # no code of a trace is torch.compile's, and telling it so at every op takes time

    @contextlib.contextmanager
    def tracking(self) -> Iterator[None]:
        """Follows which module and whether the optimizer is running, while entered."""

        def enter_module(module, inputs):
            self.called.add(id(module))
            if id(module) in self._module_names:
                self._modules.append(self._module_names[id(module)])
            else:
                self._refuse_stranger(module)

        def leave_module(module, inputs, output):
            if id(module) in self._module_names and self._modules:
                self._modules.pop()

        def refuse_other_optimizer(optimizer, *unused):
            if not any(optimizer is known for known in (*self._optimizers.parts, *self._optimizers.holders)):
                raise CaptureError(f"the step calls step() of a {type(optimizer).__qualname__} that is no argument of it, "
                                   "and that its code does not read from self, a closure or a global\n  cure: pass the "
                                   "optimizer as an argument")

        def set_in_optimizer(value):
            def hook(optimizer, *unused):
                self._in_optimizer = value
                self.updates[id(optimizer)] += value
            return hook

        handles = [register_optimizer_step_pre_hook(refuse_other_optimizer),
                   nn_module.register_module_forward_pre_hook(enter_module),
                   nn_module.register_module_forward_hook(leave_module, always_call=True),
                   *self._optimizers.register_step_hooks(set_in_optimizer(True), set_in_optimizer(False))]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = _on_the_cpu(kwargs)
        stack, caller = user_stack()
        self.microbatches.meet(func, args, kwargs)
        call = self._forms.find(func, args, kwargs)
        if self._is_known(call):
            return self._run_again(call, stack, caller)
        with self.refusals.of_operator():
            return self._run(func, args, kwargs, stack, caller, call)

    def again(self, func, args, kwargs):
        """The result of an operator that comes as it came before, for a mode above this one, which saves a dispatch;
        NotImplemented of any other."""
        self.microbatches.meet(func, args, kwargs)
        call = self._forms.find(func, args, _on_the_cpu(kwargs))
        return self._run_again(call, *user_stack()) if self._is_known(call) else NotImplemented

    def _is_known(self, call: Call | None) -> bool:
        return call is not None and call.form is not None and not any(map(self._is_watched, call.tensors))

    def _is_watched(self, tensor: torch.Tensor) -> bool:
        number = id(tensor)
        return number in self._foreign or number in self._excluded or number in self._views

    def _run_again(self, call: Call, stack, caller):
        """An operator that comes as it came before: whatever depends on it and on the form of its tensors is known."""
        self._last, self.last_stack = call.func, stack
        stamp = self._stamp(call.tensors, stack, caller)
        result = self._forms.again(call, {"spmd": stamp})
        self.microbatches.note_operator(True, [*call.tensors[:call.form.in_place], *hidden_writes(call.func, call.args)])
        made = tensors_in((result,), {})
        self.known.note(call.func, call.args, call.kwargs, call.tensors, made if call.form.in_place else [], made)
        if stamp.phase == "optimizer":
            self._note_from_gradients(made)
        return result

    def _note_from_gradients(self, made: list[torch.Tensor]) -> None:
        parameters = set(map(id, self._parameters))
        self._from_gradients.update((id(t), t) for t in made if id(t) not in parameters)

    @property
    def last_op(self) -> str | None:
        return None if self._last is None else str(self._last)

    def _run(self, func, args, kwargs, stack, caller, call):
        leaves = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, (torch.Tensor, torch.Generator))]
        if func.namespace != "prim":  # reading .device and the like
            self._last, self.last_stack = func, stack
        self._refuse(func, leaves, stack)
        written = _aliased(func, args, kwargs, are_written=True)
        if any(map(self._is_constant, written)):  # it would happen now, and never again
            raise writes_constant(stack, str(func))
        check_kernel(func, leaves, stack)
        if func is _ITEM and args[0].dim():  # of a tensor of one element
            with self:
                args = (args[0].reshape(()),)
            leaves = list(args)
        asked = self.known.asked(func, args)
        if asked is not None and not asked.roots:
            if (number := asked.run()) is not None:
                self.microbatches.note_operator(False)
                return number
        elif asked is not None and not _stands_for_itself(func, args) and (number := self.asked.tell_value(asked, stack)) is not None:
            self.microbatches.note_operator(False)
            return number
        args, kwargs = self._with_known_sizes(func, args, kwargs, stack)
        in_its_place = decomposition(func, self, stack) or collectives.in_its_place(func, self, stack) \
            or in_atens_words(func, leaves, self, self.known.knows) or in_order_of_memory(func, args, self) \
            or self._complex.rule(func, args, kwargs, self, stack)
        if in_its_place is not None:
            self._stamp(leaves, stack, caller)  # what the operator's backward computes belongs to the line of the call
            self.microbatches.note_operator(False)
            return in_its_place(*args, **kwargs)
        stamp = self._stamp(leaves, stack, caller)
        fx_traceback.current_meta["custom"] = {"spmd": stamp}
        result = func(*args, **kwargs)
        made = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        self._note_views(func, args, kwargs, made)
        self.known.note(func, args, kwargs, [x for x in leaves if isinstance(x, torch.Tensor)], written, made)
        if any(not isinstance(size, int) for t in made for size in t.shape):
            # Before an op that needs the shape says so, in words of its own.
            raise depends_on_values(stamp.stack, str(func), stamp.module)
        if func is _ITEM:
            self.items.append((result, stack))
            if asked is not None:
                self.asked.note_number(result, asked)
        if stamp.phase == "optimizer":
            self._note_from_gradients(made)
        if call is not None:
            self._forms.note(call, result)
        if func.namespace != "prim":
            self.microbatches.note_operator(self._is_plain(func, args), [*written, *hidden_writes(func, args)])
        return result

    def _is_plain(self, func, args) -> bool:
        """What the operator gives, and leaves in a graph, follows from the form of its tensors and its other arguments."""
        return self._forms.is_function(func) or func.overloadpacket in _PLAIN or func.overloadpacket in _INDEXED and not any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])

    def _with_known_sizes(self, func, args, kwargs, stack):
        """With the values of sizes that the batch says: what an operator makes has as many elements."""
        if not any(isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((args, kwargs))):
            return args, kwargs

        def known(leaf):
            told = self.asked.tell(leaf.node.expr, stack) if isinstance(leaf, torch.SymInt) else None
            return leaf if told is None else told

        kinds = {argument.name: str(argument.type) for argument in func._schema.arguments}
        sizes = [func.overloadpacket in _RANGES or "int" in kind.lower() for kind in kinds.values()]
        return (tuple(pytree.tree_map(known, value) if size else value for value, size in zip(args, sizes)),
                {name: pytree.tree_map(known, value) if func.overloadpacket in _RANGES or "int" in kinds.get(name, "").lower()
                 else value for name, value in kwargs.items()})

    def _refuse(self, func, leaves, stack) -> None:
        if func.overloadpacket in _PRODUCTS and len(dtypes := dict.fromkeys(leaf.dtype for leaf in leaves)) > 1:
            raise error_at(stack, f"{func} multiplies {' by '.join(map(str, dtypes))}, which eager PyTorch refuses",
                           "cast one of them, or compute in one type: precision=, torch.autocast")
        for leaf in leaves:
            if isinstance(leaf, torch.Generator):
                raise error_at(stack,
                               f"{func} draws from an explicit torch.Generator, whose seed a graph cannot follow",
                               "draw from the default generator, or draw outside the step and pass the tensor in")
            if id(leaf) in self._excluded:
                why, cure = self._excluded[id(leaf)]
                raise error_at(stack, f"{func} reads {why}", cure)
            self.refuse_foreign(str(func), id(leaf), stack)

    def refuse_foreign(self, reader: str, number: int, stack: tuple[Frame, ...] = ()) -> None:
        """Raises where a tensor with the id `number` must not turn up in the trace."""
        if number in self._foreign:
            self.met_foreign = number
            raise error_at(stack, f"{reader} reads {self._foreign[number]} through a reference kept outside the "
                           "model and the optimizer, which the captured step would not follow",
                           "reach it through the model inside the step: model.parameters(), model.named_buffers()")

    def _is_constant(self, value: Any) -> bool:
        """A real tensor, or a view of one."""
        return isinstance(value, torch.Tensor) and (not isinstance(value, FakeTensor) or id(value) in self._views)

    def _note_views(self, func, args, kwargs, made) -> None:
        if func is not torch.ops.aten.lift_fresh.default and any(r.alias_info is not None for r in func._schema.returns) \
                and any(map(self._is_constant, _aliased(func, args, kwargs))):
            self._views.update((id(tensor), tensor) for tensor in made)

    def _refuse_stranger(self, module: torch.nn.Module) -> None:
        """A module whose tensors would be constants for ever, because nobody knows where it comes from."""
        for name, tensor in (*module._parameters.items(), *module._buffers.items()):
            if tensor is not None and not isinstance(tensor, FakeTensor) and id(tensor) not in self._reached:
                raise error_at(user_stack()[0], f"the step calls a {type(module).__qualname__} whose {name!r} it "
                               "reaches in a way that nobody can follow, so that a later change would go unseen",
                               "hold it in a global, a closure, an attribute or a list, or make it part of the model")

    @contextlib.contextmanager
    def stamped_as(self, nodes: Iterable[torch.fx.Node]) -> Iterator[None]:
        """While entered, operators come from where these nodes did, one after the other."""
        self._earlier = (node.meta["custom"]["spmd"] for node in nodes if node.target is not operator.getitem)
        try:
            yield
        finally:
            self._earlier = None

    def _stamp(self, leaves, stack, caller) -> Provenance:
        if self._earlier is not None:
            return next(self._earlier)
        if torch._C._current_graph_task_id() != -1:
            self._backward_seen = True
            return self._backward_stamp(stack)
        if caller == "seed":
            self._backward_seen = True
            return Provenance("backward", None, stack, seed=True)
        if self._in_optimizer or caller == "optimizer" or self._reads_gradient(leaves):
            if self._in_optimizer:
                self.optimizer_stack = stack
            return Provenance("optimizer", None, stack)
        module = self._modules[-1] if self._modules else None
        # The first op under a sequence number made the autograd node; non-differentiable ops after it share it.
        self._forward_of.setdefault(torch.autograd._get_sequence_nr() - 1, (module, stack))
        return Provenance("forward", module, stack)

    def _backward_stamp(self, stack) -> Provenance:
        """A backward op belongs to the module and the line of the forward op it differentiates."""
        node = torch._C._current_autograd_node()
        module, forward_stack = self._forward_of.get(node._sequence_nr(), (None, stack)) if node else (None, stack)
        return Provenance("backward", module, forward_stack)

    def _reads_gradient(self, leaves) -> bool:
        """Handmade clipping and gradient scaling, outside the optimizer: it works on .grad, or on what came from it."""
        if not self._backward_seen or self._modules:
            return False
        gradients = {id(p.grad) for p in self._parameters if p.grad is not None}
        return any(id(leaf) in gradients or id(leaf) in self._from_gradients for leaf in leaves)


def _stands_for_itself(func: torch._ops.OpOverload, args: tuple) -> bool:
    """What .item() gives goes on as a symbol until Python looks at it. One of a boolean could not: `is True` asks nobody."""
    return func is _ITEM and args[0].dtype is not torch.bool


def _on_the_cpu(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """A step for the GPU is traced on the CPU, and no device is recorded."""
    return dict(kwargs or {}) | ({"device": torch.device("cpu")} if kwargs and kwargs.get("device") is not None else {})


_exported: list[tuple[Frame, ...]] = [()]


@contextlib.contextmanager
def at_lines(stack: tuple[Frame, ...]) -> Iterator[None]:
    """While entered, ops come from these lines, inside of the frames that run: those of code that was exported."""
    _exported.append(stack)
    try:
        yield
    finally:
        _exported.pop()


def user_stack() -> tuple[tuple[Frame, ...], str | None]:
    """The user's frames of this op, outermost first, down to the traced step; and who in PyTorch called it."""
    frame, frames, caller = sys._getframe(1), [], None
    while frame is not None:
        name = frame.f_code.co_filename
        if is_user_file(name):
            frames.append(Frame(name, frame.f_lineno, frame.f_code.co_name))
        elif name.startswith(_TORCH_ROOT) and not frames:
            if name.endswith("clip_grad.py") or frame.f_code.co_name == "zero_grad":
                caller = "optimizer"
            elif name == _AUTOGRAD:
                caller = "seed"
        elif frame.f_code.co_name == "traced_step":  # trace.py: what called capture() is no part of the step
            break
        frame = frame.f_back
    return (*reversed(frames), *_exported[-1]), caller
