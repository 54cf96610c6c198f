"""Traces one call of a training step (forward, backward, optimizer) into one graph of ATen ops, on fake tensors."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any, Callable, Collection

import torch
import torch.fx
import torch.fx.traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from ..models import DTYPES, tensor_names
from ..offloaded import fetch_tensors
from ..remarks import remark
from ..torch_versions import make_fx_options
from .call import StepCall
from .errors import CaptureError, explain
from .loops.iterations import Repeat, of_iteration
from .loops.placeholders import CannotRepeat
from .model.activation_checkpoint import inline_checkpoints
from .model.autocast import only_autocast_of_the_traced_device
from .model.data_assignments import DataAssignments
from .model.fakes import FakeStep, Input, ReplacedGradient
from .model.module_casts import followed_module_casts
from .model.torch_compiled import traced_through
from .observe import patches
from .observe.op_recorder import ProvenanceMode, user_stack
from .observe.operator_forms import OperatorForms
from .ops import custom_ops
from .ops.complex_numbers import ComplexNumbers, reach_pairs
from .ops.composites import one_op_composites
from .ops.draws import Draws
from .ops.meta_kernels import meta_kernels
from .ops.sync_batch_norm import sync_batch_norms
from .optimizer.adafactor import traceable_adafactor
from .optimizer.gradients import Gradients, first_use, has_values, names_of
from .optimizer.loss_scaling import traceable_scalers
from .optimizer.optimizer_numbers import OptimizerNumbers, check_numbers
from .optimizer.optimizer_state import traceable_step
from .optimizer.scheduled import Scheduled
from .values.chosen_rows import ChosenRows
from .values.lazy_rows import Check, refuse_rows, with_tensors
from .values.python_numbers import Number, symbol_of
from .values.segments import Segments
from .values.value_checks import no_value_checks
from .values.value_guards import Asked
from .world.closure_objects import Place, Reached
from .world.code_names import users_hooks
from .world.device_meshes import meshes_outside
from .world.function_caches import forgetting_fakes
from .world.grown_lists import Grown
from .world.held import Held, candidates, name_tensors, named_modules, no_gradients_outside, whole
from .world.iterators import check_taken, check_taken_so_far, has_ended
from .world.leaked_values import Left
from .world.no_sync import tell_if_within, told_of_no_sync
from .world.seeds import SeededGenerators
from .world.settings import Setting
from .world.side_effects import SideEffects, warn_of_output_and_clocks
from .write.normalize import check_pure, is_view_of_any, provenance
from .write.result import wrap

_SMALL = 64  # elements of a buffer that a call reads before it begins

# What a graph can give back: tensors, and .item() of one.
_TRACED = (torch.Tensor, torch.SymFloat, torch.SymInt, torch.SymBool)


@dataclasses.dataclass
class Trace:
    """A traced step. `inputs` are the graph's placeholders in order, then its constants, each with its nodes.

    `result` is the step's return value with an Output in the place of each tensor that has elements, and an Empty in
    the place of each that has none; `left` are the outputs that the step leaves behind (leaked_values.py), and `written`
    those that it leaves in tensors of its batch, which a captured step does in no other's. `held`: what the step reaches
    without an argument.
    """

    graph: torch.fx.Graph
    inputs: list[tuple[Input, list[torch.fx.Node]]]
    outputs: list[torch.fx.Node]
    result: Any
    left: list[Left] = dataclasses.field(default_factory=list)
    grown: list[Grown] = dataclasses.field(default_factory=list)
    written: list[tuple[str, Output]] = dataclasses.field(default_factory=list)
    checks: list[Check] = dataclasses.field(default_factory=list)  # what the caller wants to know of the step
    gradients: Gradients = Gradients()
    stepped_gradients: list[str] = dataclasses.field(default_factory=list)  # of parameters that optimizers got
    held: Held = dataclasses.field(default_factory=Held)
    around: _Surroundings | None = None  # of which `held` is what is used
    keeps_grads: bool = False
    updates: int = 1  # how often the step calls an optimizer's step()
    accumulates: bool = False  # it leaves gradients to later calls, or adds to those of earlier ones
    stepped: frozenset[int] = frozenset()  # the ids of the optimizers whose step() it calls
    optimizer_numbers: OptimizerNumbers = dataclasses.field(default_factory=OptimizerNumbers)
    untouched: frozenset[str] = frozenset()  # gradients that are as they were
    seeds: SeededGenerators = dataclasses.field(default_factory=SeededGenerators)
    asked: Asked = dataclasses.field(default_factory=Asked)  # what the step was told of its batch
    repeats: list[Repeat] = dataclasses.field(default_factory=list)
    settings: list[Setting] = dataclasses.field(default_factory=list)  # of modules


@dataclasses.dataclass(frozen=True)
class Output:
    """The place of outputs[index] in the step's return value; `scalar`: it was a Python number (.item())."""

    index: int
    scalar: bool


@dataclasses.dataclass(frozen=True)
class Empty:
    """A tensor without elements in the step's return value: its shape and dtype are all there is to know."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def make(self) -> torch.Tensor:
        return torch.empty(self.shape, dtype=self.dtype)


def _is_empty(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not leaf.numel() and leaf.dtype in DTYPES


@dataclasses.dataclass
class _Surroundings:
    """What a step could reach without an argument: modules that get fakes, all that was found, and of tensors that no
    trace can go through, why."""

    held: Held
    reached: Reached
    excluded: dict[int, tuple[str, str]]
    scheduled: Scheduled
    read_left: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)  # by id, of earlier calls, and read


def trace(call: StepCall, keep_grads: bool = False, scheduled: Scheduled = Scheduled(),
          gradients: Collection[int] = ()) -> Trace:
    """Traces the call; the model, the optimizers and the batch are left as they were. `keep_grads`: gradients that the
    step leaves behind are part of its state also where it clears them before it computes them anew, and those that it
    clears once they are used, as the optimizer got them. `gradients`: the ids of parameters whose gradients are there when
    the step begins."""
    functions = [call.train_step, *users_hooks(call.model, call.optimizers), *custom_ops.functions()]
    known = [call.model, *call.optimizers.parts, *call.optimizers.holders, *call.batch, *call.model.parameters(), *call.model.buffers()]
    around = _Surroundings(*candidates(functions, call.model, call.others, known), scheduled)
    reach_pairs(around.reached, call.model)
    fetch_tensors(tensor for _, tensor in around.reached.tensors.values())
    tell_if_within(call.model)
    with told_of_no_sync():
        plain, leftover = _trace_reached(call, around, with_gradients=())
    traced = plain
    given = names_of(gradients, tensor_names(whole(call.model, around.held)))
    taken = list(dict.fromkeys([*leftover, *given]))
    if taken:  # these gradients outlive calls: they are part of the state. All others begin as they do: with none
        accumulates = has_values(gradients, call) or not _has_updated(call, traced, leftover)
        copied = [n for n in plain.stepped_gradients if n not in taken] if keep_grads and not accumulates else []
        def with_taken(keep_grads: bool) -> tuple[Trace, list[str]]:
            return _trace_reached(call, around, with_gradients=taken, keep_grads=keep_grads, accumulates=accumulates, copied=copied)
        try:
            traced, leftover = with_taken(keep_grads or accumulates)
        except ReplacedGradient:
            traced, leftover = with_taken(True)
            keep_grads = True
        traced.accumulates, traced.gradients = accumulates, _gradients_of(traced, taken, leftover, copied)
        found = traced.gradients
        fetch_tensors(p.grad for name, p in whole(call.model, traced.held).named_parameters() if name in found.read)
        if not (found.left or found.cleared or found.unkept):
            traced, plain.gradients = plain, Gradients(ignored=True)
    elif keep_grads and plain.stepped_gradients:
        copied = plain.stepped_gradients
        traced, _ = _trace_reached(call, around, with_gradients=(), keep_grads=True, copied=copied)
        traced.gradients = Gradients(copied=tuple(copied))
    traced.around, traced.keeps_grads = around, keep_grads or traced.accumulates
    return traced


def _has_updated(call: StepCall, traced: Trace, leftover: list[str]) -> bool:
    """Whether every gradient that the step leaves is one that an optimizer has used: else it is for a later call. Those of
    a held module that is not trained here are whoever's who clears them."""
    owners = {id(p): id(part) for part in call.optimizers.parts for group in part.param_groups for p in group["params"]}
    own = {name for name in leftover if name.split(".")[0] not in traced.held.modules}
    return all(owners.get(id(i.real)) in traced.stepped for i, _ in traced.inputs
               if i.kind == "param" and i.name in leftover and (i.name in own or id(i.real) in owners))


def _gradients_of(traced: Trace, taken: list[str], leftover: list[str], copied: list[str]) -> Gradients:
    kept = {i.name: nodes[0] for i, nodes in traced.inputs if i.state == "grad"}
    uses = {name: first_use(traced.graph, node) for name, node in kept.items()}
    used = {name for name, use in uses.items() if use != "none"}
    return Gradients(frozenset(taken), frozenset(name for name, use in uses.items() if use in ("add", "read")),
                     frozenset(name for name, use in uses.items() if use == "read"),
                     frozenset(used & set(leftover)), frozenset(taken) - set(leftover),
                     tuple(name for name in leftover if name not in kept and name not in traced.untouched), tuple(copied))


def trace_first_step(call: StepCall, traced: Trace) -> Trace:
    """Traces the first call of an optimizer that computes it otherwise than all later ones, which `traced` has."""
    waiting = {id(p) for part in call.optimizers.parts if id(part) not in traced.stepped
               for group in part.param_groups for p in group["params"]}
    if traced.accumulates and any(id(i.real) in waiting for i, _ in traced.inputs
                                  if i.kind == "param" and i.name in traced.gradients.left):
        raise CaptureError("SGD with dampening computes its first step otherwise than all later ones, and the step leaves "
                           "its gradients to another call, so that nobody knows which call is the first\n"
                           "  cure: take one eager step first, or leave dampening out")
    kept = [i.name for i, _ in traced.inputs if i.state == "grad"]
    copied = traced.gradients.copied
    first, _ = _trace(call, traced.around, [name for name in kept if name not in copied], first_step=True,
                      keep_grads=traced.keeps_grads, copied=copied)
    if [(i.kind, i.name, i.state) for i, _ in first.inputs] != [(i.kind, i.name, i.state) for i, _ in traced.inputs]:
        raise CaptureError("the first step and the later ones do not have the same state\n"
                           "  cure: run one eager step before capturing")
    first.around = traced.around
    return first


def _trace_reached(call: StepCall, around: _Surroundings, with_gradients: Collection[str],
                   keep_grads: bool = False, accumulates: bool = False,
                   copied: Collection[str] = ()) -> tuple[Trace, list[str]]:
    """Until the held modules that have fakes are those that the step reaches as modules. One whose tensors it reads
    through a list of them, made before, has none: its tensors are read as any other tensor is. And until what earlier
    calls have left is blank where the step does not read it."""
    while True:
        found, read = [], {}
        try:
            traced = _trace(call, around, with_gradients, by_tensor=found, keep_grads=keep_grads,
                            accumulates=accumulates, copied=copied, read_left=read)
        except CaptureError:
            if not found and not read:
                raise
            around.read_left.update(read)
            around.held = around.held.only(name for name in around.held.modules if name not in found)
            continue
        around.held = traced[0].held.only(traced[0].held.modules)
        return traced


def _out_of_inference_mode(function: Callable) -> Callable:
    """Whose tensors no trace can follow; gradients stay off there."""
    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        has_gradients = torch.is_grad_enabled()
        with torch.inference_mode(False), torch.set_grad_enabled(has_gradients):
            return function(*args, **options)
    return call


def _trace(call: StepCall, *args: Any, **options: Any) -> tuple[Trace, list[str]]:
    """As _trace_once(), without repetitions if something goes wrong with them."""
    try:
        return _trace_once(call, *args, **options)
    except CannotRepeat:
        return _trace_once(call.traced_each(), *args, **options)


@_out_of_inference_mode
def _trace_once(call: StepCall, around: _Surroundings, with_gradients: Collection[str], first_step: bool = False,
                by_tensor: list[str] | None = None, keep_grads: bool = False,
                accumulates: bool = False, copied: Collection[str] = (),
                read_left: dict[int, torch.Tensor] | None = None) -> tuple[Trace, list[str]]:
    """`by_tensor` gets the name of a held module that the trace has met by one of its tensors, and `read_left` what the
    step has read of what earlier calls have left.

    Raises:
      CannotRepeat: only if the call `may_repeat`.
    """
    step_file = call.train_step.__code__.co_filename if hasattr(call.train_step, "__code__") else ""
    fakes = FakeStep(call.model, call.optimizers, around.held, call.batch_names, call.batch, with_gradients, first_step,
                     around.scheduled, copied, around.read_left, call.precision)
    result: list[Any] = []
    with meta_kernels(), traceable_adafactor(), fakes.installed(), traceable_scalers(fakes.whole.modules()), \
            no_gradients_outside(around.reached, fakes.foreign), forgetting_fakes(around.reached.caches), \
            contextlib.ExitStack() as undo:
        batch = [i.fake for i in fakes.inputs if i.kind == "batch"]
        numbers, kept_numbers = fakes.all_numbers(), fakes.optimizer_numbers()
        effects = undo.enter_context(SideEffects(call.train_step, fakes, call.model, call.optimizers,
                                                 call.others).watched())
        draws = Draws(*fakes.rng(), again=None if around.scheduled else lambda *operator: stamps.again(*operator))
        stamps = ProvenanceMode(list(named_modules(call.model, fakes.whole)), call.optimizers, fakes.parameters(),
                                fakes.foreign, around.reached.tensors, around.excluded, fakes.refusals,
                                ComplexNumbers(fakes.real_of), _known_roots(fakes.inputs) if call.asks_batch else {},
                                asked := Asked(call.batch), OperatorForms(fakes.mode), draws, call.may_repeat)
        undo.enter_context(stamps.microbatches.or_cannot_repeat())

        assigned = DataAssignments(fakes.inputs, stamps.known)

        chosen = ChosenRows(stamps.known)
        segments = Segments(lambda size: asked.tell(size, ()), lambda: user_stack()[0])

        def traced_step(*unused):
            # The placeholders are the very fakes installed in model, optimizer and batch: the tracer knows them by
            # identity, and the user's code reaches them by its own ways.
            with (fakes.refusals.of_conversions(), assigned.followed(), one_op_composites(), sync_batch_norms(), no_value_checks(),
                  segments.followed(), chosen.followed(), followed_module_casts(), meshes_outside(stamps.known.value),
                  patches.replaced({patches.ONEDNN: False}), stamps, stamps.tracking(), around.scheduled.tracing(),
                  warn_of_output_and_clocks(), draws):
                hooks = call.optimizers.register_step_hooks(fakes.note_gradients)
                versions = [tensor._version for tensor in batch]
                try:
                    with stamps.microbatches.followed():
                        returned = with_tensors(call.run(batch))
                    check_taken(call.takings)
                finally:
                    for hook in hooks:
                        hook.remove()
                for name, tensor in zip(call.batch_names, batch):
                    if tensor.is_leaf and tensor.grad is not None:
                        remark(f"the step computes a gradient of {name!r}, of which a compiled step leaves {name}.grad as it was\n"
                               f"  cure: return {name}.grad from the step, or clear it there if nobody wants it")
                assigned.write()
                fakes.keep_first_state()
                if keep_grads:
                    fakes.keep_gradients()
            leaves, spec = pytree.tree_flatten(wrap(returned))
            refuse_rows(leaves)
            fakes.refusals.refuse_texts(leaves)
            leaves = [Empty(tuple(leaf.shape), leaf.dtype) if _is_empty(leaf) else leaf for leaf in leaves]
            lefts, grown = [*fakes.left(), *effects.left()], effects.grown()
            effects.expect(lefts)
            changed = [n for n, (tensor, version) in enumerate(zip(batch, versions))
                       if call.writes_batch and tensor._version != version]
            # Of parameters and buffers, the very objects are left.
            kept = [leaf for leaf in pytree.tree_leaves([[left.value for left in lefts], [one.items for one in grown]])
                    if isinstance(leaf, _TRACED) and fakes.own_of(leaf) is None]
            refuse_rows(kept)
            checks = [*segments.checks, *chosen.checks(call.optimizers.unmoved_by_zeros)] if call.writes_batch else []
            tensors = [*(leaf for leaf in leaves if isinstance(leaf, _TRACED)), *kept, *(batch[n].detach() for n in changed),
                       *(check.value for check in checks)]
            for tensor in tensors:
                stamps.refuse_foreign("the step", id(tensor))
                if isinstance(tensor, torch.Tensor) and tensor.is_complex():
                    raise CaptureError(f"the step returns a tensor of {tensor.dtype}, which has no counterpart\n"
                                       "  cure: return torch.view_as_real() of it")
            stamps.microbatches.refuse_outputs([tensor.tensor if isinstance(tensor, Number) else tensor for tensor in tensors])
            tensors = list(map(symbol_of, tensors))
            places = iter(range(len(tensors)))

            def place(leaf: Any) -> Output:
                return Output(next(places), not isinstance(leaf, torch.Tensor) or id(leaf) in fakes.numbers)

            found = pytree.tree_unflatten([place(leaf) if isinstance(leaf, _TRACED) else leaf for leaf in leaves], spec)
            def place_tree(tree: Any) -> Any:
                return pytree.tree_map(lambda leaf: leaf if not isinstance(leaf, _TRACED) else
                                       place(leaf) if fakes.own_of(leaf) is None else fakes.own_of(leaf), tree)

            result[:] = [found, [left._replace(value=place_tree(left.value)) for left in lefts],
                         [one._replace(items=place_tree(one.items)) for one in grown],
                         [(call.batch_names[n], place(batch[n])) for n in changed],
                         [check._replace(value=place(check.value)) for check in checks]]
            return tensors

        try:
            with fakes.mode, patches.replaced({patches.FAKE_TENSOR_LOG: True}), traced_through(), inline_checkpoints(), \
                    only_autocast_of_the_traced_device(), traceable_step(call.optimizers), fx_traceback.preserve_node_meta(), \
                    torch.autograd.set_multithreading_enabled(False), torch.set_grad_enabled(torch.is_grad_enabled()):
                module = make_fx(traced_step, **make_fx_options())(*(i.fake for i in fakes.inputs))
            if fakes.refusals.error is not None:  # the step has caught it
                raise fakes.refusals.error
            chosen.check()
        except CaptureError:
            check_taken_so_far(call.takings)
            owner = fakes.held_owner(stamps.met_foreign)
            if owner is not None and by_tensor is not None:
                by_tensor.append(owner)
            if read_left is not None:
                read_left.update(fakes.blanks_met(stamps.met_foreign))
            raise
        except Exception as error:
            check_taken_so_far(call.takings)
            if has_ended(call.takings) and fakes.refusals.error is None:
                raise  # what the step makes of the end of its data, as in eager
            if fakes.blanks and read_left is not None:  # maybe a value was asked for
                read_left.update(fakes.blanks_met(None))
            error = fakes.refusals.error or error
            if isinstance(error, CaptureError):
                raise error
            last_op = None if result else stamps.last_op  # of a step that went on after it
            raise explain(error, step_file, last_op, stamps.last_stack) from error
        finally:
            fx_traceback.current_meta.pop("custom", None)
            fakes.refusals.tell_no_more()
        for value, stack in stamps.items:
            effects.note_item(value, stack)
        effects.check()
        check_numbers(numbers, fakes.all_numbers(), stamps.optimizer_stack)
        settings, leftover = fakes.settings(), fakes.leftover_gradients()
        if not leftover or with_gradients:
            placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
            used = _used(placeholders, stamps.microbatches.repeats)
            fakes.check_side_effects({id(i.fake) for i, n in zip(fakes.inputs, placeholders, strict=True) if n in used})
    traced = _collect(module, fakes, around, accumulates, stamps.microbatches.repeats, *result)
    traced.stepped_gradients, traced.optimizer_numbers = fakes.stepped_gradients(), kept_numbers
    traced.settings, traced.untouched = settings, frozenset(fakes.untouched_gradients())
    asked.forget_batch()
    traced.asked, traced.seeds = asked, effects.seeds
    traced.stepped = frozenset(number for number, count in stamps.updates.items() if count)
    traced.updates = max(stamps.updates.values(), default=1)
    traced.held.watched = {path: found for path, found in traced.held.watched.items()
                           if any(id(part) in stamps.called for part in found[1].modules())}
    return traced, leftover


def _known_roots(inputs: list[Input]) -> dict[int, int | Place]:
    """Inputs whose values a call knows when it begins, by the ids of their fakes: the tensors of the batch, by their number,
    and small buffers (a flag, a count of calls), which the ranks are asked for."""
    batch = [i.fake for i in inputs if i.kind == "batch"]
    buffers = {id(i.fake): Place.always(i.name, i.real) for i in inputs
               if i.kind == "buffer" and i.real is not None and i.real.numel() <= _SMALL}
    return {**buffers, **{id(fake): number for number, fake in enumerate(batch)}}


def _used(placeholders: list[torch.fx.Node], repeats: list[Repeat]) -> set[torch.fx.Node]:
    """Those that a node is given, or an iteration in the place of another one."""
    fed = {node for one in repeats for _, nodes in one.fed for node in nodes}
    return {n for n in placeholders if n.users or n in fed}


def _collect(module: torch.fx.GraphModule, fakes: FakeStep, around: _Surroundings, with_all_state: bool, repeats: list[Repeat],
             result: Any, left: list[Left], grown: list[Grown], written: list[tuple[str, Output]], checks: list[Check]) -> Trace:
    """`with_all_state`: also the state that the graph neither reads nor writes, which another program does."""
    graph = module.graph
    for node in reversed(list(graph.nodes)):  # Optimizer.step brackets itself for the profiler
        if node.op == "call_function" and str(node.target).startswith("profiler."):
            graph.erase_node(node)
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    dropped = _drop_unread_gradients(graph, fakes, placeholders)
    with_users = _used(placeholders, repeats)
    held = around.held.only(_used_modules(fakes, placeholders, with_users))
    fakes.check_memory(held)
    unused = set(around.held.modules) - set(held.modules)
    inputs = [(i, [n]) for i, n in zip(fakes.inputs, placeholders, strict=True)
              if (i.kind not in ("state", "rng") or n in with_users or with_all_state and i.kind == "state" and n not in dropped)
              and not (i.kind in ("param", "buffer") and i.name.split(".")[0] in unused)]
    constants: dict[str, list[torch.fx.Node]] = {}
    for node in graph.nodes:
        if node.op == "get_attr":
            constants.setdefault(node.target, []).append(node)
    hyper = {n for i, nodes in inputs if i.kind == "hyper" for n in nodes}
    fixed = {n for nodes in constants.values() for n in nodes}
    for node in graph.nodes:
        if node.op != "call_function" or fixed.isdisjoint(given := node.all_input_nodes) and hyper.isdisjoint(given):
            continue
        check_pure(node, fixed, hyper)
        for own in (fixed, hyper):
            if is_view_of_any(node, own):
                own.add(node)
    outputs = list(next(n for n in graph.nodes if n.op == "output").args[0])
    tensors = {name: getattr(module, name) for name in constants}
    places = name_tensors(tensors.items(), around.reached)
    held.tensors = {places[name][0]: (places[name][1], tensor) for name, tensor in tensors.items()}
    inputs += [(Input("constant", places[name][0], None, tensors[name]), nodes) for name, nodes in constants.items()]
    return Trace(graph, inputs, outputs, result, left, grown, written, checks, held=held, repeats=repeats)


def _used_modules(fakes: FakeStep, placeholders: list[torch.fx.Node], with_users: set[torch.fx.Node]) -> list[str]:
    """Those held modules of which the graph reads or writes a tensor, or whose parameters the optimizer has."""
    used = {i.name for i, n in zip(fakes.inputs, placeholders) if n in with_users and i.kind in ("param", "buffer")}
    used = {name.split(".")[0] for name in used | _trained(fakes)}
    return [name for name in fakes.held.modules if name in used]


def _drop_unread_gradients(graph: torch.fx.Graph, fakes: FakeStep,
                           placeholders: list[torch.fx.Node]) -> set[torch.fx.Node]:
    """The gradient of a held parameter that this step neither trains nor clears (a critic's, in its generator's step)
    grows from call to call, for whoever clears it. Where nothing else reads it here, it need not be computed: it is one
    that the step leaves behind and does not keep. Gives the placeholders of such gradients."""
    trained, dropped = _trained(fakes), set()
    for i, placeholder in zip(fakes.inputs, placeholders):
        if i.state != "grad" or i.name in trained or i.name.split(".")[0] not in fakes.held.modules:
            continue
        sums = [placeholder]
        for node in sums:
            sums += (user for user in node.users if user not in sums)
        if all(n.target is torch.ops.aten.add_.Tensor and n.args[0] in sums for n in sums[1:]):
            dropped.add(placeholder)
            for node in reversed(sums[1:]):
                graph.erase_node(node)
    return dropped


def _trained(fakes: FakeStep) -> set[str]:
    """The parameters that the optimizer has."""
    own = set(map(id, fakes.optimizers.parameters))
    return {i.name for i in fakes.inputs if i.kind == "param" and id(i.fake) in own}


def loss_output(traced: Trace) -> tuple[int | None, torch.fx.Node | None]:
    """Which output is the loss: (its index, its node).

    It is the tensor that backward() was called on, possibly detached or read with .item() before it is returned. When
    the step returns something else (a sum of microbatch losses), the first floating 0-dim output stands for it; when it
    returns none, the index is None and the node is the tensor of the first backward().
    """
    seeds = [n.args[0] for n in traced.graph.nodes if n.op == "call_function" and provenance(n).seed]
    for index, node in enumerate(traced.outputs):
        while node not in seeds and (node.target is of_iteration or isinstance(node.target, torch._ops.OpOverload)
                                     and node.target.overloadpacket.__name__ in ("detach", "alias", "clone", "_to_copy", "_local_scalar_dense")):
            node = node.args[0]
        if node in seeds:
            return index, traced.outputs[index]
    for index, node in enumerate(traced.outputs):
        value = node.meta["val"]
        if isinstance(value, torch.SymFloat) or (isinstance(value, torch.Tensor) and value.dim() == 0
                                                 and value.dtype in (torch.float32, torch.float64)):
            return index, node
    return None, seeds[0] if seeds else None
