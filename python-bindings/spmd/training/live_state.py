"""One truth for every tensor: a model and its optimizer while the ranks of a compiled step hold the values.

[Note: live state] Between two compiled steps a tensor of the model or the optimizer is in one of two states.

  away   the ranks have the value. The tensor's class is a subclass (made by offloaded_class) whose __torch_function__ sees
         uses by PyTorch, pickle, copy, numpy or an optimizer; the first one fetches the value and gives the tensor its own
         class back. Functions that bypass __torch_function__ raise an error: the tensor has no storage (withheld.py).
  here   the tensor has the value, and whoever holds it may write. All tensors that are here are copied to the ranks
         before the next step, whether they were written or not: PyTorch can write without leaving a trace (p.data).

After a step everything goes away again, but for tensors whose memory something else shares (a state_dict that is kept,
p.detach(), an array of numpy): a use of that other tensor would be seen by nobody. Such a tensor stays here, and gets
its value back after every step until the other one is gone.

The memory of a tensor that is away for a whole step is given back until it is used again, so that there is one copy of a
model, that of the ranks. One step later than it could be: what is read after every step keeps its memory, and another
thread that computes with a tensor which it has read is through with it. Where another thread reads, memory stays.
"""
from __future__ import annotations

import dataclasses
import threading
import weakref
from typing import Any, Collection, Iterable, Iterator

import torch

from ..capture.optimizer.gradients import Gradients
from ..capture.optimizer.masters import keep_wide_states
from ..capture.optimizer.optimizers import Optimizers
from ..capture.world.held import Held, whole
from ..capture.write.package import OwnStates
from ..interrupts import uninterrupted
from ..models import DTYPES, set_gradient
from ..offloaded import slots
from ..run.runtime import Trainer
from ..run_error import RunError
from ..state.keys import key_of
from ..tensor_info import TensorInfo
from ..torch_api.tracing import DisableTorchFunctionSubclass
from .eager_gradients import EagerGradients, kept_gradient
from .lost_values import LostValues, StateLostError, Valueless
from .slots import ClearedGradient, Constant, Gradient, OwnOfRanks, Slot, UnkeptGradient, leave_meta

_OF_MODULES = ("param", "buffer", "constant")


@dataclasses.dataclass
class Replaced:
    """The slots of a live state in whose place the optimizer has something else, None where it has nothing."""

    live: LiveState
    states: list[tuple[Slot, Any]]


@dataclasses.dataclass(frozen=True)
class UsersObjects:
    """The user's objects whose tensors are the state.

    Attributes:
      held: what the step reaches besides model and optimizers.
    """

    model: torch.nn.Module
    optimizers: Optimizers
    held: Held


@dataclasses.dataclass(frozen=True)
class RanksState:
    """The state on the ranks.

    Attributes:
      states: the optimizer states and gradients that the trainer has for the user.
      has_own_buffers: each rank may have other values of a buffer, as with view="local".
      is_fresh: the trainer has been loaded with the values that the tensors have.
    """

    trainer: Trainer
    states: OwnStates
    has_own_buffers: bool
    is_fresh: bool = True


class LiveState:
    """The tensors of a model and its optimizers that ranks hold; see [Note: live state].

    Attributes:
      optimizers: the optimizers of the step.
      trainer: holds the values.
      lock: held while values move.
      lost: why the state is lost; None: it is not.
      lost_values: what a released state has left without values.
      slots: all tensors.
      here: the slots whose tensors have their values.
      is_read_by_others: another thread than the one that trains reads values.
      kept_gradients: gradients that the step clears and the ranks keep, with their parameters, whose `grad` they are not.
      was_loaded: the last before_step() took other step counters, of a checkpoint.
    """

    def __init__(self, users: UsersObjects, ranks: RanksState, lock: threading.RLock):
        self.optimizers, self.trainer, self.lock = users.optimizers, ranks.trainer, lock
        self.lost: str | None = None
        self.lost_values = LostValues()
        self.slots: list[Slot] = []
        self.kept_gradients: list[tuple[Slot, torch.Tensor]] = []
        self.was_loaded = False
        self._resting: list[Slot] = []  # which went away at the last step
        self._thread, self.is_read_by_others = threading.get_ident(), False
        everything = whole(users.model, users.held)
        self._named = dict(everything.named_parameters(remove_duplicate=False))
        tensors = self._named | dict(everything.named_buffers(remove_duplicate=False))
        self._gradients: list[tuple[Gradient, torch.Tensor]] = []
        self._is_fresh = ranks.is_fresh  # what is here is what the ranks have
        states_of: dict[int, tuple[dict[str, Slot], torch.Tensor]] = {}
        # A parameter has a place in its unit's states of all kinds, those of another optimizer too.
        for info in ranks.trainer.tensors:
            if info.state == "constant":
                self.slots.append(Constant(info, users.held.tensors[info.name][1], self))
            elif info.state in _OF_MODULES:
                self.slots.append(self._slot_of_module(info, tensors[info.name], ranks))
            elif info.state != "rng" and (info.state, info.name) in ranks.states.names:
                slot, parameter = self._slot_of_optimizer(info, ranks), self._named[info.name]
                self.slots.append(slot)
                if isinstance(slot, Gradient):
                    self._gradients.append((slot, parameter))
                elif info.state == "grad":
                    self.kept_gradients.append((slot, parameter))
                else:
                    states_of.setdefault(id(parameter), ({}, parameter))[0][info.state] = slot
        self._eager = EagerGradients(self._gradients)
        self._states = list(states_of.values())  # of each parameter, by their names in the optimizer's
        self._unkept: dict[str, tuple[UnkeptGradient, torch.Tensor]] = {}
        self._by_name = {slot.info.name: slot for slot in self.slots
                         if slot.info.state in _OF_MODULES}
        self.here: list[Slot] = [slot for slot in self.slots if slot.is_here]
        fetch_all = weakref.WeakMethod(self.fetch_all)  # the optimizer must not keep the ranks
        self._hooks = users.optimizers.register_step_hooks(lambda *unused: (f := fetch_all()) and f())
        self._hooks += keep_wide_states(users.optimizers)

    def _slot_of_module(self, info: TensorInfo, tensor: torch.Tensor, ranks: RanksState) -> Slot:
        """The slot of a parameter or buffer."""
        is_own = info.state == "buffer" and ranks.has_own_buffers
        slot = (OwnOfRanks if is_own else Slot)(info, tensor, self)
        if slot.tensor.is_meta:  # the ranks have its value
            slot.freed, slot.has_value = leave_meta(slot.tensor), False
            slot.go_away()
        return slot

    def _slot_of_optimizer(self, info: TensorInfo, ranks: RanksState) -> Slot:
        """The slot of an optimizer state, or of a gradient."""
        parameter = self._named[info.name]
        if info.state == "grad" and info.name in ranks.states.copied:
            with DisableTorchFunctionSubclass():
                slot = Slot(info, torch.empty_like(parameter, requires_grad=False), self, has_value=False)
            slot.go_away()
            return slot
        tensor, is_made = self._state_tensor(info, parameter)
        slot = Slot(info, tensor, self) if info.state != "grad" else Gradient(info, tensor, self, is_clear=is_made)
        if is_made and info.state == "grad" and not ranks.is_fresh:
            tensor.zero_()  # the ranks have an old one
        elif is_made:  # the ranks have what it starts with
            slot.has_value = False
            slot.go_away()
            slot.free()
        return slot

    def _state_tensor(self, info: TensorInfo, parameter: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """The tensor of an optimizer state, or of a gradient that outlives the step; true: made, without a value, as
        there was none yet."""
        known = kept_gradient(parameter) if info.state == "grad" else self.optimizers.make_state_of(parameter).get(info.state)
        dtype = next(dtype for dtype, name in DTYPES.items() if name == info.dtype)
        if isinstance(known, torch.Tensor) and info.state != "grad" and known.dtype != dtype and dtype.is_floating_point:
            known = self.optimizers.make_state_of(parameter)[info.state] = known.to(dtype)  # it goes on with a master
        elif isinstance(known, torch.Tensor) and known.dtype != dtype and dtype.is_floating_point:
            known = known.to(dtype)  # of an eager backward()
            with DisableTorchFunctionSubclass():
                set_gradient(parameter, known)
        if isinstance(known, torch.Tensor):
            return known, False
        with DisableTorchFunctionSubclass():
            if tuple(parameter.shape) == info.shape and info.state != "step":
                made = torch.empty_like(parameter, dtype=dtype, requires_grad=False)
            else:  # a step counter lives on the CPU
                made = torch.empty(info.shape, dtype=dtype, device="cpu" if info.state == "step" else parameter.device)
        if info.state != "grad":
            self.optimizers.make_state_of(parameter)[info.state] = made
        return made, True

    @property
    def names(self) -> dict[int, str]:
        """The names of parameters on the ranks, by the identity of the tensors."""
        return {id(self._named[slot.info.name]): slot.info.name for slot in self.slots if slot.info.state == "param"}

    @property
    def states(self) -> Iterator[Slot]:
        """The slots of optimizer states."""
        return (slot for slots_of_it, _ in self._states for slot in slots_of_it.values())

    @property
    def named(self) -> dict[str, torch.Tensor]:
        """All parameters by name, by all names of one that is tied."""
        return self._named

    def parameters(self, names: Iterable[str]) -> list[torch.Tensor]:
        return [self._named[name] for name in names]

    def check(self) -> None:
        """Raises when the state is lost."""
        if self.lost:
            raise StateLostError(self.lost)

    def replaced_states(self) -> Replaced:
        """What the optimizer has now in place of the tensors of slots: one walk over its states."""
        with DisableTorchFunctionSubclass():
            return Replaced(self, list(self._replaced_states()))

    def is_replaced(self, replaced: Replaced | None = None) -> bool:
        """True when the optimizer or the model holds tensors that the ranks cannot take: then the next program starts
        from them. Tensors that the ranks can take (a loaded optimizer state) are taken by before_step(). `replaced`: what
        replaced_states() has found."""
        with DisableTorchFunctionSubclass():
            if not all(slot.fits() for slot in self.here):
                return True
            for slot, found in (replaced or self.replaced_states()).states:
                if not self._takes(slot, found):
                    return True
            for slot, parameter in self._gradients:
                if parameter.grad is not slot.tensor and (found := kept_gradient(parameter)) is not None \
                        and not self._takes(slot, found):
                    return True
        return False

    def _replaced_states(self) -> Iterator[tuple[Slot, Any]]:
        """The slots in whose place the optimizer has something else, None where it has nothing."""
        state_of = self.optimizers.state_of
        for slots_of_it, parameter in self._states:
            state = state_of(parameter)
            for name, slot in slots_of_it.items():
                found = state.get(name)
                if found is not slot.tensor:
                    yield slot, found

    def _takes(self, slot: Slot, tensor: Any) -> bool:
        return isinstance(tensor, torch.Tensor) and Slot(slot.info, tensor, self).fits()

    def trains_other(self, held: Held | None) -> bool:
        """True when a parameter that the optimizer trains is another one in `held`."""
        if held is None:
            return False
        trained = set(map(id, self.optimizers.parameters))
        return any(slot.tensor is not tensor and (id(slot.tensor) in trained or id(tensor) in trained)
                   for slot, tensor in self._held_slots(held))

    def _held_slots(self, held: Held) -> Iterator[tuple[Slot, torch.Tensor]]:
        """The slots of what is held, with the tensors that `held` has for them."""
        for root, (_, module) in held.modules.items():
            for name, tensor in (*module.named_parameters(root, remove_duplicate=False),
                                 *module.named_buffers(root, remove_duplicate=False)):
                if name in self._by_name:  # else it is tied, and has another name
                    yield self._by_name[name], tensor
        for name, (_, tensor) in held.tensors.items():
            yield self._by_name[name], tensor

    def take(self, held: Held) -> None:
        """What a step reaches without an argument may be other objects than at the call before."""
        with DisableTorchFunctionSubclass():
            found = [(slot, tensor) for slot, tensor in self._held_slots(held) if slot.tensor is not tensor]
        for slot, tensor in found:
            self._replace(slot, tensor)
            self._named[slot.info.name] = tensor
        if found:
            self._gradients = [(slot, self._named[slot.info.name]) for slot, _ in self._gradients]
            self._eager.watch(self._gradients)
            self._unkept = {name: (slot, self._named[name]) for name, (slot, _) in self._unkept.items()}

    def upload_constants(self) -> None:
        """What may have been written of the tensors that the ranks only read goes to them."""
        for slot in self.here:
            if isinstance(slot, Constant):
                slot.upload()

    def note_reader(self) -> None:
        """Another thread than the one that trains reads: it may use a tensor at any time, and memory stays."""
        self.is_read_by_others |= threading.get_ident() != self._thread

    def before_step(self, gradients: Gradients, replaced: Replaced | None = None) -> None:
        """What may have been written since the last step goes to the ranks. `gradients`: what the step does with them;
        `replaced`: what replaced_states() has found, where nothing has changed since."""
        self._thread = threading.get_ident()
        self._take_replaced(gradients.read, replaced)
        for slot, _ in self._gradients:
            if slot.is_here and slot.info.name in gradients.cleared and slot.has_alias():
                raise ValueError(f"a tensor that shares memory with the gradient of {slot.info.name!r} is kept over a call "
                                 "that clears it, and would have its last value in eager PyTorch\n  hint: drop it, or "
                                 "keep a clone() of it")
        self._upload()

    def before_save(self) -> None:
        """The same, for a checkpoint."""
        self._take_replaced()
        self._upload()

    def before_load(self) -> None:
        """What is loaded is to be seen in the tensors that model and optimizer have now."""
        self._take_replaced()
        self._is_fresh = False

    def _take_replaced(self, read: Collection[str] = (), replaced: Replaced | None = None) -> None:
        """Takes what model and optimizer have in place of the tensors of slots; `read`: whose gradients matter."""
        self.check()
        self.was_loaded = False
        if replaced is None or replaced.live is not self:
            replaced = self.replaced_states()
        for slot, found in replaced.states:
            self._replace(slot, found)
            self.was_loaded |= slot.info.state == "step"
        with DisableTorchFunctionSubclass():
            gradients = [parameter.grad for _, parameter in self._gradients]
        for (slot, _), gradient in zip(self._gradients, gradients):
            if gradient is slot.tensor:
                continue
            unkept = next((s for s in slots((gradient,)) if not s.is_kept), None)
            if unkept is not None:
                if slot.info.name in read:
                    unkept.fetch()  # raises
            elif gradient is None and not slot.is_clear:  # cleared from outside
                self._replace(slot, torch.zeros_like(slot.tensor))
                slot.is_clear = True
            elif gradient is not None:
                self._replace(slot, gradient)
                slot.is_clear = False

    def _upload(self) -> None:
        if not self._is_fresh:
            # A parameter that was written decides what its master is, which may be here as it was.
            for slot in sorted(self.here, key=lambda slot: slot.info.state == "param"):
                slot.upload()
        self._is_fresh = False

    def _replace(self, slot: Slot, tensor: torch.Tensor) -> None:
        """Another tensor takes the slot; the old one keeps its value, as in eager."""
        for other in slots((tensor,)):
            other.fetch()
        slot.fetch()
        slot.hold(tensor)
        self._is_fresh = False

    def after_step(self, gradients: Gradients) -> None:
        """The ranks have stepped: the tensors go away. `gradients`: what the step has done with them."""
        for name in gradients.unkept:
            if name not in self._unkept:
                self._unkept[name] = self._make_unkept(name)
            slot, parameter = self._unkept[name]
            with DisableTorchFunctionSubclass():
                set_gradient(parameter, slot.tensor)
            if slot.is_here:
                slot.go_away()
        self._go_away()
        with DisableTorchFunctionSubclass():
            for name in gradients.cleared:
                self._named[name].grad = None
        for slot, parameter in self._gradients:
            if slot.info.name in gradients.left:
                self._attach(slot, parameter)
            elif slot.info.name in gradients.cleared and not slot.is_clear:
                self._clear(slot)

    def _make_unkept(self, name: str) -> tuple[UnkeptGradient, torch.Tensor]:
        parameter = self._named[name]
        with DisableTorchFunctionSubclass():
            tensor = torch.empty_like(parameter).detach()
        return UnkeptGradient(TensorInfo(name, "grad", "", ()), tensor, self), parameter

    def _attach(self, slot: Gradient, parameter: torch.Tensor) -> None:
        """The parameter's gradient is what the ranks have."""
        slot.is_clear = False
        with DisableTorchFunctionSubclass():
            set_gradient(parameter, slot.tensor)

    def _clear(self, slot: Gradient) -> None:
        """The parameter has no gradient any more. Who has kept the tensor is told so at its use."""
        old = slot.tensor
        with DisableTorchFunctionSubclass():
            made = torch.empty_like(old)
        if not slot.is_here:
            slot.come_back()
            ClearedGradient(slot.info, old, self).go_away()
        else:
            self.here.remove(slot)
        slot.tensor, slot.has_value, slot.is_clear = made, False, True
        slot.go_away()

    def after_load(self) -> None:
        """The ranks have what was loaded: the tensors go away."""
        self._go_away()
        for slot, parameter in self._gradients:
            self._attach(slot, parameter)

    def _go_away(self) -> None:
        if not self.is_read_by_others:
            for slot in self._resting:
                slot.free()
        here, self.here, self._resting = self.here, [], []
        for slot in here:
            if slot.has_alias():
                slot.download()
                self.here.append(slot)
            else:
                slot.go_away()
                self._resting.append(slot)

    def gradients_of(self, names: set[str], keeps_grads: bool) -> list[Slot]:
        """The gradients of the named parameters that outlive the step.

        Args:
          keeps_grads: the ranks keep gradients that the step clears (`kept_gradients`).

        Raises:
          RuntimeError: the ranks do not keep the gradient of a parameter, or a call of the step has cleared the gradient.
        """
        for slot, parameter in self._unkept.values():
            if slot.info.name in names and parameter.grad is slot.tensor:
                slot.fetch()  # raises
        known = {slot.info.name for slot, _ in (*self._gradients, *self.kept_gradients)}
        trained = set(map(id, self.optimizers.parameters))
        cleared = [name for name in sorted(names - known) if id(self._named[name]) in trained]
        if cleared and not keeps_grads:
            raise RuntimeError(f"the step clears the gradient of parameter {cleared[0]!r}, and the ranks do not keep it\n  hint: "
                               "spmd.compile(keep_grads=True), which keeps each rank's part of it")
        cleared = [slot.info.name for slot, _ in self._gradients if slot.is_clear and slot.info.name in names]
        if cleared:
            raise RuntimeError(f"the gradient of parameter {cleared[0]!r} is gone: a call of the step cleared it\n  hint: "
                               "read gradients before that call, or return from the step the values that you need")
        return [slot for slot, _ in self._gradients if slot.info.name in names]

    def put_away(self, slots: Iterable[Slot]) -> None:
        """The ranks have the values of these, whatever the tensors hold."""
        for slot in slots:
            if not slot.is_here:
                continue
            if slot.has_alias():
                slot.download()
            else:
                self.here.remove(slot)
                slot.go_away()
                if not self.is_read_by_others:
                    slot.free()

    def lose(self, error: RunError, number: int) -> None:
        """The ranks failed in the middle of a step: no value is known any more."""
        self.lost = (f"step {number} failed on the ranks, and the state of model and optimizer is lost with it: "
                     f"{error}\n  hint: call reset() or load_checkpoint(); after reset() load model and optimizer, whose "
                     "parameters are nan but for those that were read just before the step, and go on")
        for slot in self.here:
            slot.go_away()
        self.here = []

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything, by its name in a weights file; here."""
        self.fetch_all()
        return {key_of(slot.info): slot.tensor for slot in self.slots}

    def fetch_all(self) -> None:
        """Brings everything here."""
        with self.lock:
            for slot in self.slots:
                slot.fetch()

    def release(self) -> None:
        """Gives all tensors back as they are, without fetching."""
        with self.lock, uninterrupted():
            for slot, parameter in self._unkept.values():
                with DisableTorchFunctionSubclass():
                    if parameter.grad is slot.tensor:
                        parameter.grad = None
            for slot in self.slots:
                if not slot.is_here:
                    slot.come_back()
            self.here = list(self.slots)
            self._drop_what_is_lost()
            for hook in (*self._hooks, self._eager):
                hook.remove()

    def _drop_what_is_lost(self) -> None:
        """After a failure that lost the state, what has no value: the optimizer's begins anew, that of the model is not
        to be taken for one."""
        for slots_of_it, parameter in self._states:
            state = self.optimizers.state_of(parameter)
            for name, slot in slots_of_it.items():
                if not slot.has_value and state.get(name) is slot.tensor:
                    state.clear()
                    self.lost_values.states[slot.info.name] = parameter
        for slot, parameter in self._gradients:
            if not slot.has_value and parameter.grad is slot.tensor:
                parameter.grad = None
        for slot in self.slots:
            if not slot.has_value and slot.info.state in _OF_MODULES:
                self.lost_values.tensors[slot.info.name] = Valueless(slot.tensor)
