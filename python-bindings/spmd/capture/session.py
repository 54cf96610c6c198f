"""One trace of a step: the call, which run of it this is, the fakes that stand for its state, and what follows its operators."""
from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any, Callable, Iterable, Iterator

import torch
import torch.fx
import torch.fx.traceback as fx_traceback

from ..remarks import remark
from ..torch_api.flex_attention import preload
from ..torch_api.tensors import version_of
from ..torch_api.tracing import make_fx, make_fx_options, pytree
from .call import StepCall
from .errors import CaptureError, explain
from .followers import Followers, follow
from .loops.placeholders import CannotRepeat
from .model.activation_checkpoint import Checkpoints
from .model.fakes import FakeStep
from .model.module_casts import followed_module_casts
from .model.run import Run
from .model.torch_compiled import traced_through
from .model.traced_device import only_autocast_of_the_traced_device
from .observe import patches
from .ops import custom_ops
from .ops.composites import one_op_composites
from .ops.flex_attention import flex_attention_in_graph
from .ops.meta_kernels import meta_kernels
from .ops.sync_batch_norm import sync_batch_norms
from .ops.varlen_attention import varlen_attention_in_graph
from .optimizer.adafactor import traceable_adafactor
from .optimizer.loss_scaling import traceable_scalers
from .optimizer.number_snapshot import refuse_writes
from .optimizer.optimizer_state import traceable_step
from .values.lazy_rows import refuse_rows, with_tensors
from .values.number import Number, symbol_of, traceable_math
from .values.value_checks import no_value_checks
from .world.unfollowed_hooks import TensorHooks
from .world.code_names import users_hooks
from .world.device_meshes import meshes_outside
from .world.environment import Environment
from .world.function_caches import forgetting_fakes
from .world.held import named_modules, no_gradients_outside
from .world.reads.attributes import read_attribute
from .world.reads.guards import ReadGuards
from .world.reads.observer import Observer
from .world.reads.records import Records
from .world.reads.refused import refuse_changes
from .world.reads.writes import Write, take_writes
from .world.iterators import check_taken, check_taken_so_far, has_ended
from .world.side_effects import SideEffects, warn_of_output_and_clocks
from .write.collect import collect, used
from .write.graph import Trace
from .write.outputs import Results, without_empty
from .write.result import wrap


@dataclasses.dataclass
class Findings:
    """What a trace that has failed has met: names of held modules by one of their tensors, and, by id, tensors that earlier calls have
    left and that the step reads. A trace that takes these into account may succeed."""

    modules: list[str] = dataclasses.field(default_factory=list)
    left: dict[int, torch.Tensor] = dataclasses.field(default_factory=dict)
    unstepped: set[int] = dataclasses.field(default_factory=set)  # as of Environment, of a trace that has not failed

    def __bool__(self) -> bool:
        return bool(self.modules or self.left)


class TraceSession:
    """Traces `call` once, as `run` says, in the `environment` that was found."""

    def __init__(self, call: StepCall, environment: Environment, run: Run, findings: Findings):
        self.call, self.environment, self.run, self.findings = call, environment, run, findings
        self.fakes = FakeStep(call.model, call.optimizers, list(zip(call.batch_names, call.batch, strict=True)), environment, run, call.precision)
        self.results: Results | None = None
        self.followers: Followers | None = None  # while the step is traced
        self.checkpoints: Checkpoints | None = None
        self.effects: SideEffects | None = None
        self.observer = Observer(Records(_is_ours))
        self.writes: list[Write] = []

    def trace(self) -> tuple[Trace, list[str]]:
        """The trace, and the parameters whose gradients outlive the step. Loops are traced iteration by iteration, and activations of
        checkpoint regions are kept, if nothing else works."""
        try:
            return self._trace_loops()
        except Exception as error:
            if self.findings or not self.call.recomputes or self.checkpoints is None or not self.checkpoints.are_met:
                raise
            self.call.keep_activations(error)
        return TraceSession(self.call, self.environment, self.run, self.findings).trace()

    def _trace_loops(self) -> tuple[Trace, list[str]]:
        try:
            return self._trace()
        except CannotRepeat:
            return TraceSession(self.call.traced_each(), self.environment, self.run, self.findings)._trace()

    def _trace(self) -> tuple[Trace, list[str]]:
        with entered(self._around_trace()):
            module = self._graph_module()
            self._check()
            settings, leftover = self.fakes.settings(), self.fakes.leftover_gradients()
            if not leftover or self.run.gradients:
                placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
                read = used(placeholders, self.followers.iterations.repeats)
                self.fakes.check_side_effects({id(i.fake) for i, n in zip(self.fakes.inputs, placeholders, strict=True) if n in read})
        traced = collect(module, self.fakes, self.environment, self.followers.iterations.repeats, self.results)
        self.followers.guards.forget_batch()
        updates = +self.followers.recorder.updates  # of optimizers whose step() was called
        self.findings.unstepped = set() if self.run.is_first else self.fakes.unstepped(updates, self.call.options.counts)
        traced.held.watched = {path: found for path, found in traced.held.watched.items()
                               if any(id(part) in self.followers.recorder.called for part in found[1].modules())}
        return dataclasses.replace(
            traced, settings=settings, checkpoints=self.checkpoints, guards=self.followers.guards, reads=ReadGuards(self.observer.records),
            python_writes=self.writes, seeds=self.effects.seeds, optimizer_numbers=self._optimizer_numbers,
            stepped_gradients=self.fakes.stepped_gradients(), untouched=frozenset(self.fakes.untouched_gradients()),
            stepped=frozenset(updates), updates=max(updates.values(), default=1),
            first_step_differs=self.fakes.first_step_differs(updates, traced.inputs)), leftover

    # What is entered, from the outside to the inside. Each context is made when those before it are entered.

    def _around_trace(self) -> Iterable[Callable[[], contextlib.AbstractContextManager]]:
        """Around everything: fakes are in the place of the user's tensors, and what the step does beside its results is watched."""
        yield out_of_inference_mode
        yield meta_kernels
        yield traceable_adafactor
        yield self.fakes.installed
        yield lambda: traceable_scalers(self.fakes.whole.modules(), functools.partial(read_attribute, self.observer.records))  # the modules are fakes by now
        yield lambda: no_gradients_outside(self.environment.reached, self.fakes.foreign)
        yield lambda: forgetting_fakes(self.environment.reached.caches)
        yield self._watched
        yield self._followed

    def _around_tracer(self) -> Iterable[Callable[[], contextlib.AbstractContextManager]]:
        """Around PyTorch's tracer: its settings, and what it would not trace as it runs."""
        yield lambda: self.fakes.mode
        yield lambda: patches.replaced({patches.FAKE_TENSOR_LOG: True})
        yield traced_through
        yield preload
        yield self.checkpoints.followed
        yield only_autocast_of_the_traced_device
        yield lambda: traceable_step(self.call.optimizers)
        yield fx_traceback.preserve_node_meta
        yield lambda: torch.autograd.set_multithreading_enabled(False)
        yield lambda: torch.set_grad_enabled(torch.is_grad_enabled())

    def _around_step(self) -> Iterable[Callable[[], contextlib.AbstractContextManager]]:
        """Around the user's step: replaced functions first, then the dispatch mode, which sees what they call, then hooks."""
        yield self.fakes.refusals.of_conversions
        yield self.followers.assigned.followed
        yield one_op_composites
        yield flex_attention_in_graph
        yield varlen_attention_in_graph
        yield sync_batch_norms
        yield no_value_checks
        yield traceable_math
        yield self.followers.segments.followed
        yield self.followers.checks.followed
        yield self.followers.chosen.followed
        yield followed_module_casts
        yield lambda: meshes_outside(self.followers.known.value)
        yield lambda: patches.replaced({patches.ONEDNN: False})
        yield lambda: self.followers.draws.entered(self.followers.operators)
        yield self.call.optimizers.refusing_others
        yield self.followers.foreign.refusing_inputs
        yield lambda: self.followers.recorder.tracking(self.followers.foreign.refuse_stranger, self.call.optimizers.register_step_hooks)
        yield warn_of_output_and_clocks
        yield self._noted_gradients

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """What the step's Python changes beside its results (world/side_effects.py)."""
        self._numbers, self._optimizer_numbers = self.fakes.all_numbers(), self.fakes.optimizer_numbers()
        self._hooks = TensorHooks((i.name, i.fake) for i in self.fakes.inputs if i.kind in ("param", "buffer"))
        call, everything = self.call, self.fakes.whole
        functions = [call.train_step, *users_hooks(everything, call.optimizers.tables_of_hooks()), *custom_ops.functions()]
        effects = SideEffects(functions, list(named_modules(call.model, everything)), self.fakes, call.others)
        with effects.watched() as self.effects:
            yield

    @contextlib.contextmanager
    def _followed(self) -> Iterator[None]:
        """Makes what follows the step's functions and operators (followers.py)."""
        self.followers = followers = follow(self.call, self.environment, self.run, self.fakes)
        self.checkpoints = Checkpoints([followers.recorder.place, lambda: lambda: followers.numbers], self.call.recomputes)
        with self.followers.iterations.or_cannot_repeat():
            yield

    @contextlib.contextmanager
    def _noted_gradients(self) -> Iterator[None]:
        hooks = self.call.optimizers.register_step_hooks(self.fakes.note_gradients)
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _batch(self) -> list[torch.Tensor]:
        return [i.fake for i in self.fakes.inputs if i.kind == "batch"]

    # The trace.

    def _graph_module(self) -> torch.fx.GraphModule:
        refusals, takings = self.fakes.refusals, self.call.takings
        try:
            with entered(self._around_tracer()):
                module = make_fx(self._step(), **make_fx_options())(*(i.fake for i in self.fakes.inputs))
            if refusals.error is not None:  # the step has caught it
                raise refusals.error
            self.followers.chosen.check()
            return module
        except CaptureError:
            check_taken_so_far(takings)
            if (owner := self.fakes.held_owner(self.followers.foreign.met)) is not None:
                self.findings.modules.append(owner)
            self.findings.left.update(self.fakes.blanks_met(self.followers.foreign.met))
            raise
        except Exception as error:
            check_taken_so_far(takings)
            if has_ended(takings) and refusals.error is None:
                raise  # what the step makes of the end of its data, as in eager
            if self.fakes.blanks:  # maybe a value was asked for
                self.findings.left.update(self.fakes.blanks_met(None))
            error = refusals.error or error
            if isinstance(error, CaptureError):
                raise error
            step_file = self.call.train_step.__code__.co_filename if hasattr(self.call.train_step, "__code__") else ""
            last_op = None if self.results else self.followers.last.name  # of a step that went on after it
            raise explain(error, step_file, last_op, self.followers.last.stack) from error
        finally:
            fx_traceback.current_meta.pop("custom", None)
            refusals.tell_no_more()

    def _step(self) -> Callable:
        """The function that the tracer runs. Its placeholders are the very fakes installed in model, optimizer and batch: the tracer
        knows them by identity, and the user's code reaches them by its own ways."""
        batch = self._batch()

        def traced_step(*unused: Any) -> list[Any]:
            with entered(self._around_step()):
                versions = list(map(version_of, batch))
                with self.followers.iterations.followed(), self.followers.functions:
                    returned = with_tensors(self._run(batch))
                check_taken(self.call.takings)
                self._tell_of_gradients(batch)
                self.followers.assigned.write()
                self.fakes.keep_state()
                if self.run.keeps_gradients:
                    self.fakes.keep_gradients()
            return self._outputs(returned, batch, versions)
        return traced_step

    def _run(self, batch: list[torch.Tensor]) -> Any:
        """Runs the step; what its Python writes is put back, for a compiled step to write it after each call."""
        call, records = self.call, self.observer.records
        roots = [("self", getattr(call.train_step, "__self__", None)), *call.others.items(),
                 *((path or "model", module) for path, module in named_modules(call.model, self.fakes.whole)),
                 *((type(part).__name__, part) for part in call.optimizers.parts)]
        for label, value in roots:
            records.register(value, label)
        records.with_modes = frozenset(map(id, self.fakes.whole.modules()))
        try:
            with self.observer.watched():
                return call.run(batch)
        finally:
            if call.options.writes_batch:
                self.writes = take_writes(records, call.optimizers.parts if call.options.counts else ())

    def _tell_of_gradients(self, batch: list[torch.Tensor]) -> None:
        for name, tensor in zip(self.call.batch_names, batch):
            if tensor.is_leaf and tensor.grad is not None:
                remark(f"the step computes a gradient of {name!r}, of which a compiled step leaves {name}.grad as it was\n"
                       f"  hint: return {name}.grad from the step, or clear it there if nobody wants it")

    def _outputs(self, returned: Any, batch: list[torch.Tensor], versions: list[int]) -> list[Any]:
        """The graph's outputs; what they are in the step is in `results` then."""
        fakes, writes_batch = self.fakes, self.call.options.writes_batch
        result = wrap(returned)
        leaves = pytree.tree_leaves(result)
        refuse_rows(leaves)
        fakes.refusals.refuse_texts(leaves)
        found = Results(without_empty(result), [*fakes.left(writes_batch), *self.effects.left()], self.effects.grown(),
                        [(name, tensor) for name, tensor, version in zip(self.call.batch_names, batch, versions)
                         if writes_batch and version_of(tensor) != version])
        self.effects.expect(found.left)
        refuse_rows(found.kept(fakes.own_of))
        followers = self.followers
        found.checks = [*followers.checks.checks, *followers.segments.checks,
                        *followers.chosen.checks(self.call.optimizers.unmoved_by_zeros)] if writes_batch else []
        values = list(found.values(fakes.own_of))
        for value in values:
            self.followers.foreign.refuse("the step", id(value))
            if isinstance(value, torch.Tensor) and value.is_complex():
                raise CaptureError(f"the step returns a tensor of {value.dtype}, which has no counterpart\n"
                                   "  hint: return torch.view_as_real() of it")
        self.followers.iterations.refuse_outputs([value.tensor if isinstance(value, Number) else value for value in values])
        outputs = list(map(symbol_of, values))
        self.results = found.placed(fakes.own_of, lambda leaf: id(leaf) in fakes.numbers)
        return outputs

    def _check(self) -> None:
        """After the trace: what the step has changed, a graph can change."""
        for value, stack in self.followers.values.items:
            self.effects.note_item(value, stack)
        self.effects.check()
        self._hooks.check()
        if self.observer.failure is not None:
            raise self.observer.failure
        refuse_writes(self.call.optimizers.parts, self.writes)
        refuse_changes(self.observer.records)
        if self.run.is_first:
            self.fakes.first_numbers(self._optimizer_numbers, self.followers.values.recipe)
        else:
            self._optimizer_numbers.counted = self.fakes.counted.check((self._numbers, self.fakes.all_numbers()), self.followers.values.recipe,
                                                                       self.followers.recorder.optimizer_stack, self.call.options.counts)


def _is_ours(value: Any) -> bool:
    """What the trace itself has put in the place of something."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(module, str) and module.partition(".")[0] == "spmd"


@contextlib.contextmanager
def entered(contexts: Iterable[Callable[[], contextlib.AbstractContextManager]]) -> Iterator[None]:
    """Makes and enters contexts one after the other."""
    with contextlib.ExitStack() as stack:
        for make in contexts:
            stack.enter_context(make())
        yield


@contextlib.contextmanager
def out_of_inference_mode() -> Iterator[None]:
    """No trace can follow the tensors of inference mode; gradients stay off there."""
    has_gradients = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(has_gradients):
        yield
