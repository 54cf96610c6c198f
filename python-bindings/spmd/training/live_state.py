"""One truth for every tensor: a model and its optimizer while the ranks of a compiled step hold the values.

[Note: live state] Between two compiled steps a tensor of the model or the optimizer is in one of two states.

  away   the ranks have the value. The tensor's class is a subclass (made by away_class) whose __torch_function__ sees
         every use, whether by PyTorch, pickle, copy, numpy or an optimizer; the first one fetches the value and gives
         the tensor its own class back. So nothing is copied that nobody looks at, and nothing that was looked at is
         old.
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

import copy
import dataclasses
import threading
import weakref
from typing import Any, Callable, ClassVar, Collection, Iterable, Iterator, Sequence

import torch

from ..arrays import to_numpy, to_torch
from ..capture.model.fakes import copy_hooks
from ..capture.optimizer.gradients import Gradients
from ..capture.optimizer.masters import keep_wide_states
from ..capture.optimizer.optimizers import Optimizers
from ..capture.world.held import Held, whole
from ..capture.write.package import OwnStates
from ..interrupts import uninterrupted
from ..models import DTYPES, set_gradient
from ..offloaded import slots
from ..run.runtime import RunError, TensorInfo, Trainer
from ..torch_api.tensors import METADATA, cdata_of, foreach_zero_, make_subclass, storage_use_count, version_of
from ..torch_api.tracing import DisableTorchFunctionSubclass

_GETTERS = ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "grad", "grad_fn", "ndim",
            "names", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_sparse_csr", "is_mkldnn", "is_quantized",
            "is_nested", "is_xla", "is_xpu", "is_mps", "is_maia", "is_mtia", "is_vulkan", "is_ipu", "itemsize",
            "nbytes", "retains_grad", "output_nr", *METADATA)
_METHODS = ("size", "dim", "stride", "numel", "nelement", "element_size", "is_contiguous", "is_floating_point",
            "is_complex", "is_signed", "is_inference", "get_device", "requires_grad_", "register_hook",
            "retain_grad", "__len__", "register_post_accumulate_grad_hook", "dim_order", "storage_offset",
            "ndimension", "is_shared")


def _metadata() -> set[Any]:
    """Functions of a tensor that do not touch its values; they leave it away."""
    found = {getattr(torch.Tensor, name).__get__ for name in _GETTERS if hasattr(torch.Tensor, name)}
    found |= {getattr(torch.Tensor, name) for name in _METHODS if hasattr(torch.Tensor, name)}
    found |= {torch.Tensor.grad.__set__, torch.Tensor.requires_grad.__set__}
    return found | {torch.numel, torch.is_floating_point, torch.is_complex, torch.is_tensor, torch.is_same_size}


_METADATA = _metadata()
_CLEARS = {torch.Tensor.zero_, foreach_zero_}


_OF_MODULES = ("param", "buffer", "constant")


class StateLostError(RuntimeError):
    """A step failed half-way on the ranks: what parameters and optimizer state are, nobody knows."""


@dataclasses.dataclass(eq=False)
class Slot:
    """One tensor of the state: `info` is its place on the ranks, `tensor` its place in the model or optimizer."""

    info: TensorInfo
    tensor: torch.Tensor
    owner: "LiveState"
    is_here: bool = True
    has_value: bool = True  # false of a tensor that was made for the ranks' value, or has no memory, until that is read
    freed: int = 0  # bytes of memory that it has given back
    is_kept: ClassVar[bool] = True  # the ranks have a value

    def fetch(self) -> None:
        """Brings the ranks' value here, if it is away."""
        with self.owner.lock, uninterrupted():
            if self.is_here:
                return
            self.owner.check()
            self.owner.note_reader()
            self.come_back()
            self.download()
            self.owner.here.append(self)

    def bring(self) -> None:
        """Makes the tensor one that is here, for a value that the caller has."""
        self.has_value = True
        if not self.is_here:
            self.come_back()
            self.owner.here.append(self)

    def download(self) -> None:
        tensor, self.has_value = self.tensor, True
        with torch.no_grad():
            trainer, key = self.owner.trainer, (self.info.state, self.info.name)
            if not tensor.is_contiguous() or tensor.device.type != "cpu" and not trainer.copies_tensor(*key, tensor):
                tensor.copy_(to_torch(trainer.read(*key), self.info.dtype))
                return
            if tensor.device.type == "cpu":
                trainer.read(*key, out=to_numpy(tensor)[0])
            else:
                trainer.copy_tensor(*key, tensor)
                torch.cuda.current_stream(tensor.device).synchronize()  # other streams and threads may use it next
            if not tensor.is_inference():  # autograd must know that values saved for a backward are gone
                torch.autograd.graph.increment_version(tensor)

    def upload(self) -> None:
        self.owner.trainer.write(self.info.state, self.info.name, self.tensor.detach())

    def hold(self, tensor: torch.Tensor) -> None:
        """Another tensor has the value from now on."""
        self.tensor, self.has_value = tensor, True

    def fits(self) -> bool:
        """The tensor still has the shape and the dtype that the ranks know."""
        return tuple(self.tensor.shape) == self.info.shape and DTYPES.get(self.tensor.dtype) == self.info.dtype

    def go_away(self) -> None:
        self.tensor.__class__ = away_class(type(self.tensor))
        self.tensor._spmd_slot = self
        self.is_here = False

    def come_back(self) -> None:
        """Gives the tensor its own class; its value is what it was when it went away, if it `has_value`."""
        del self.tensor._spmd_slot
        self.tensor.__class__ = type(self.tensor).__mro__[1]
        self.is_here = True
        if self.freed:
            self.tensor.untyped_storage().resize_(self.freed)
            self.freed = 0

    def free(self) -> None:
        """Gives the memory back of a tensor that is away, where nothing else has it. Gradients keep theirs: autograd adds
        to them without asking."""
        with DisableTorchFunctionSubclass():
            if self.is_here or self.freed or self.info.state == "grad" or self.has_alias():
                return
            storage = self.tensor.untyped_storage()
            is_shared = storage.device.type == "cpu" and storage.is_shared()  # true of all on GPUs
            if not storage.nbytes() or not storage.resizable() or is_shared:
                return
            if not self.tensor.is_inference():  # a graph that has kept the value must not look there
                torch.autograd.graph.increment_version(self.tensor)
            self.freed, self.has_value = storage.nbytes(), False
            storage.resize_(0)

    def has_alias(self) -> bool:
        """True when another tensor or array shares the memory."""
        return _owners_of_memory(self.tensor) > _OWNERS_OF_OWN


class Constant(Slot):
    """A tensor that the step reads and belongs to no module: the ranks never write it."""

    def download(self) -> None:
        pass

    def free(self) -> None:
        pass

    def has_alias(self) -> bool:
        """Also true of memory that is another library's: an array's writes go by no tensor."""
        return super().has_alias() or not self.tensor.untyped_storage().resizable()


@dataclasses.dataclass(eq=False)
class OwnOfRanks(Slot):
    """A buffer of which each rank may have another value, as the local view leaves them. Reading gives rank 0's, which
    must not become that of all ranks: only what was written since goes to them."""

    read: torch.Tensor | None = None

    def download(self) -> None:
        super().download()
        self.read = self.tensor.detach().clone()

    def upload(self) -> None:
        if self.read is None or not _has_same_bytes(self.tensor.detach(), self.read):
            super().upload()
            self.read = None

    def hold(self, tensor: torch.Tensor) -> None:
        super().hold(tensor)
        self.read = None


@dataclasses.dataclass(eq=False)
class Gradient(Slot):
    """A gradient that outlives calls of the step; see [Note: gradients over calls] in capture/optimizer/gradients.py."""

    is_clear: bool = False  # there is none: the ranks have zeros


class UnkeptGradient(Slot):
    """A gradient that the step leaves behind and clears before it uses it: the ranks do not keep it."""

    is_kept = False

    def fetch(self) -> None:
        raise RuntimeError(f"the gradient that the step leaves in parameter {self.info.name!r} is not kept on the "
                           "ranks\n  cure: spmd.compile(keep_grads=True), which keeps each rank's part of it; or return "
                           "from the step what you want to know of it")


class ClearedGradient(Slot):
    """What was a parameter's gradient until the step cleared that."""

    is_kept = False

    def fetch(self) -> None:
        raise RuntimeError(f"this was the gradient of parameter {self.info.name!r}, which a call of the step has cleared "
                           "since, and the ranks do not keep it\n  cure: read p.grad before that call, or return from the "
                           "step what you want to know of it")


class Valueless:
    """A tensor whose value is lost: nan, the least integer, or False, until it is written."""

    def __init__(self, tensor: torch.Tensor):
        self.tensor = tensor
        with torch.no_grad():
            tensor.fill_(self._mark)
        self._version = -1 if tensor.is_inference() else version_of(tensor)

    @property
    def _mark(self) -> float | int | bool:
        dtype = self.tensor.dtype
        return float("nan") if dtype.is_floating_point else dtype is not torch.bool and torch.iinfo(dtype).min

    def is_written(self) -> bool:
        """It has another value; p.data.copy_() leaves no trace but that."""
        tensor, mark = self.tensor.detach(), self._mark
        return self._version not in (-1, version_of(tensor)) or \
            not bool((tensor.isnan() if mark != mark else tensor == mark).all())


def leave_meta(tensor: torch.Tensor) -> int:
    """Makes a tensor of the meta device one of the CPU, the same object, without memory. Returns how many bytes it
    would have."""
    with DisableTorchFunctionSubclass(), torch.no_grad():
        twin = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
        storage = twin.untyped_storage()
        size = storage.nbytes()
        storage.resize_(0)
        twin = make_subclass(type(tensor), twin, tensor.requires_grad)
        twin.__dict__.update(tensor.__dict__)
        copy_hooks(tensor, twin)
        torch.utils.swap_tensors(tensor, twin)
        return size


@dataclasses.dataclass
class Replaced:
    """The slots of a live state in whose place the optimizer has something else, None where it has nothing."""

    live: LiveState
    states: list[tuple[Slot, Any]]


class LiveState:
    """The tensors of a model and its optimizers that the ranks of `trainer` hold; see [Note: live state].

    `held`: what the step reaches besides; `states`: those that the trainer has for the user, with which `view`.
    `is_fresh`: the trainer has been loaded with the values that the tensors have.
    """

    def __init__(self, model: torch.nn.Module, optimizers: Optimizers, held: Held, trainer: Trainer,
                 lock: threading.RLock, states: OwnStates, view: str, is_fresh: bool = True):
        self.optimizers, self.trainer, self.lock = optimizers, trainer, lock
        self.lost: str | None = None
        self.without_value: dict[str, Valueless] = {}  # of a released state that was lost, by name
        self.without_state: dict[str, torch.Tensor] = {}  # parameters whose optimizer state was lost, likewise
        self._resting: list[Slot] = []  # which went away at the last step
        self._thread, self._is_read_by_others = threading.get_ident(), False
        everything = whole(model, held)
        self.parameters = dict(everything.named_parameters(remove_duplicate=False))
        tensors = self.parameters | dict(everything.named_buffers(remove_duplicate=False))
        constants = {name: tensor for name, (_, tensor) in held.tensors.items()}
        self.slots: list[Slot] = []
        states_of: dict[int, tuple[dict[str, Slot], torch.Tensor]] = {}
        self.kept_gradients: list[tuple[Slot, torch.Tensor]] = []  # which the step clears: no parameter has them as its own
        self._gradients: list[tuple[Gradient, torch.Tensor]] = []
        self._is_fresh = is_fresh  # what is here is what the ranks have
        # A parameter has a place in its unit's states of all kinds, those of another optimizer too.
        for info in trainer.tensors:
            if info.state == "rng" or info.state not in _OF_MODULES and (info.state, info.name) not in states.names:
                continue
            if info.state == "constant":
                self.slots.append(Constant(info, constants[info.name], self))
                continue
            if info.state in ("param", "buffer"):
                is_own = info.state == "buffer" and view == "local"
                slot = (OwnOfRanks if is_own else Slot)(info, tensors[info.name], self)
                if slot.tensor.is_meta:  # the ranks have its value
                    slot.freed, slot.has_value = leave_meta(slot.tensor), False
                    slot.go_away()
                self.slots.append(slot)
                continue
            parameter = self.parameters[info.name]
            if info.state == "grad" and info.name in states.copied:
                with DisableTorchFunctionSubclass():
                    slot = Slot(info, torch.empty_like(parameter, requires_grad=False), self, has_value=False)
                slot.go_away()
                self.slots.append(slot)
                self.kept_gradients.append((slot, parameter))
                continue
            tensor, is_made = self._state_tensor(info, parameter)
            slot = Slot(info, tensor, self) if info.state != "grad" else Gradient(info, tensor, self, is_clear=is_made)
            if is_made and info.state == "grad" and not is_fresh:
                tensor.zero_()  # the ranks have an old one
            elif is_made:  # the ranks have what it starts with
                slot.has_value = False
                slot.go_away()
                slot.free()
            self.slots.append(slot)
            if info.state == "grad":
                self._gradients.append((slot, parameter))
            else:
                states_of.setdefault(id(parameter), ({}, parameter))[0][info.state] = slot
        self._states = list(states_of.values())  # of each parameter, by their names in the optimizer's
        self._unkept: dict[str, tuple[UnkeptGradient, torch.Tensor]] = {}
        self._by_name = {slot.info.name: slot for slot in self.slots
                         if slot.info.state in _OF_MODULES}
        self.here: list[Slot] = [slot for slot in self.slots if slot.is_here]
        self.was_loaded = False  # the last before_step() took other step counters: a checkpoint's
        fetch_all = weakref.WeakMethod(self.fetch_all)  # the optimizer must not keep the ranks
        self._hooks = optimizers.register_step_hooks(lambda *unused: (f := fetch_all()) and f())
        self._hooks += keep_wide_states(optimizers)

    def _state_tensor(self, info: TensorInfo, parameter: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """The tensor of an optimizer state, or of a gradient that outlives the step; true: made, without a value, as
        there was none yet."""
        known = _kept(parameter) if info.state == "grad" else self.optimizers.make_state_of(parameter).get(info.state)
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
        return {id(self.parameters[slot.info.name]): slot.info.name for slot in self.slots if slot.info.state == "param"}

    def parameters(self, names: Iterable[str]) -> list[torch.Tensor]:
        return [self.parameters[name] for name in names]

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
                if parameter.grad is not slot.tensor and (found := _kept(parameter)) is not None \
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
            self.parameters[slot.info.name] = tensor
        if found:
            self._gradients = [(slot, self.parameters[slot.info.name]) for slot, _ in self._gradients]
            self._unkept = {name: (slot, self.parameters[name]) for name, (slot, _) in self._unkept.items()}

    def upload_constants(self) -> None:
        """What may have been written of the tensors that the ranks only read goes to them."""
        for slot in self.here:
            if isinstance(slot, Constant):
                slot.upload()

    def note_reader(self) -> None:
        """Another thread than the one that trains reads: it may use a tensor at any time, and memory stays."""
        self._is_read_by_others |= threading.get_ident() != self._thread

    def before_step(self, gradients: Gradients, replaced: Replaced | None = None) -> None:
        """What may have been written since the last step goes to the ranks. `gradients`: what the step does with them;
        `replaced`: what replaced_states() has found, where nothing has changed since."""
        self._thread = threading.get_ident()
        self._take_replaced(gradients.read, replaced)
        for slot, _ in self._gradients:
            if slot.is_here and slot.info.name in gradients.cleared and slot.has_alias():
                raise ValueError(f"a tensor that shares memory with the gradient of {slot.info.name!r} is kept over a call "
                                 "that clears it, and would have its last value in eager PyTorch\n  cure: drop it, or "
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
                self.parameters[name].grad = None
        for slot, parameter in self._gradients:
            if slot.info.name in gradients.left:
                self._attach(slot, parameter)
            elif slot.info.name in gradients.cleared and not slot.is_clear:
                self._clear(slot)

    def _make_unkept(self, name: str) -> tuple[UnkeptGradient, torch.Tensor]:
        parameter = self.parameters[name]
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
        if not self._is_read_by_others:
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
                if not self._is_read_by_others:
                    slot.free()

    def lose(self, error: RunError, number: int) -> None:
        """The ranks failed in the middle of a step: no value is known any more."""
        self.lost = (f"step {number} failed on the ranks, and the state of model and optimizer is lost with it: "
                     f"{error}\n  cure: call reset() or load_checkpoint(); after reset() load model and optimizer, whose "
                     "parameters are nan but for those that were read just before the step, and go on")
        for slot in self.here:
            slot.go_away()
        self.here = []

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything, by its name in a weights file; here."""
        self.fetch_all()
        return {key_in_file(slot.info): slot.tensor for slot in self.slots}

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
            for hook in self._hooks:
                hook.remove()

    def _drop_what_is_lost(self) -> None:
        """After a failure that lost the state, what has no value: the optimizer's begins anew, that of the model is not
        to be taken for one."""
        for slots_of_it, parameter in self._states:
            state = self.optimizers.state_of(parameter)
            for name, slot in slots_of_it.items():
                if not slot.has_value and state.get(name) is slot.tensor:
                    state.clear()
                    self.without_state[slot.info.name] = parameter
        for slot, parameter in self._gradients:
            if not slot.has_value and parameter.grad is slot.tensor:
                parameter.grad = None
        for slot in self.slots:
            if not slot.has_value and slot.info.state in _OF_MODULES:
                self.without_value[slot.info.name] = Valueless(slot.tensor)


def _kept(parameter: torch.Tensor) -> torch.Tensor | None:
    """The parameter's gradient, if there is one and it has a value."""
    with DisableTorchFunctionSubclass():
        gradient = parameter.grad
    return None if any(not slot.is_kept for slot in slots((gradient,))) else gradient


def _has_same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of tensors of one shape and dtype: not a number is itself, and -0 is not 0."""
    return torch.equal(*(t.cpu().reshape(-1).view(torch.uint8) for t in (one, other)))


def key_in_file(info: TensorInfo) -> str:
    """The name of a tensor in weights files and checkpoints."""
    if info.state in ("param", "buffer"):
        return info.name
    return f"{info.state}/{info.name}" if info.state in ("constant", "rng") else f"optimizer/{info.state}/{info.name}"


def _owners_of_memory(tensor: torch.Tensor) -> int:
    return storage_use_count(cdata_of(tensor.untyped_storage()))


_OWNERS_OF_OWN = _owners_of_memory(torch.empty(1))


def _torch_function(cls: type, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
    if func in _METADATA:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))
    for slot in slots((args, kwargs or {})):
        if func in _CLEARS and isinstance(slot, UnkeptGradient):
            slot.come_back()  # zero_grad(set_to_none=False)
        else:
            slot.fetch()
    return func(*args, **(kwargs or {}))


def _deepcopy(self: torch.Tensor, memo: dict) -> torch.Tensor:
    for slot in slots((self,)):
        slot.fetch()
    return copy.deepcopy(self, memo)


def _reduce_ex(self: torch.Tensor, protocol: int) -> Any:
    for slot in slots((self,)):
        slot.fetch()
    return self.__reduce_ex__(protocol)


_away_classes: dict[type, type] = {}


def away_class(kind: type) -> type:
    """The class that a tensor of class `kind` has while it is away."""
    if kind not in _away_classes:
        _away_classes[kind] = type(kind)(kind.__name__, (kind,), {
            "__module__": kind.__module__, "__doc__": "A tensor whose value the ranks of a compiled step hold.",
            "__torch_function__": classmethod(_torch_function), "__deepcopy__": _deepcopy, "__reduce_ex__": _reduce_ex})
    return _away_classes[kind]
