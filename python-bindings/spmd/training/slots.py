"""The tensors of a training, one by one: the place of each on the ranks and in the model or the optimizer, and how its value
moves between them ([Note: live state] in live_state.py)."""
from __future__ import annotations

import dataclasses
import threading
from typing import ClassVar, Protocol

import torch

from ..arrays import to_numpy, to_torch
from ..capture.model.hooks import copy_hooks
from ..interrupts import uninterrupted
from ..models import DTYPES
from ..offloaded import set_slot
from ..run.runtime import Trainer
from ..tensor_info import TensorInfo
from ..torch_api.tensors import cdata_of, make_subclass, storage_use_count
from ..torch_api.tracing import DisableTorchFunctionSubclass, outside_transforms
from .offloaded_class import offloaded_class
from .withheld import give_back, withhold


class Owner(Protocol):
    """What a slot uses of the live state that it belongs to.

    Attributes:
      trainer: reads and writes the ranks' values.
      lock: held while a value moves.
      here: the slots whose tensors have their values.
      is_read_by_others: another thread than the one that trains reads values.
    """

    trainer: Trainer
    lock: threading.RLock
    here: list[Slot]
    is_read_by_others: bool

    def check(self) -> None:
        """Raises when the state is lost."""

    def note_reader(self) -> None:
        """A value is about to be read."""

    def fetch_all(self) -> None:
        """Brings all values here."""


@dataclasses.dataclass(eq=False)
class Slot:
    """One tensor of the state: `info` is its place on the ranks, `tensor` its place in the model or optimizer."""

    info: TensorInfo
    tensor: torch.Tensor
    owner: Owner
    is_here: bool = True
    has_value: bool = True  # false of a tensor that was made for the ranks' value, or has no memory, until that is read
    freed: int = 0  # bytes of memory that it has given back
    memory: torch.Tensor | None = None  # of a tensor that is away, whose storage is withheld
    is_kept: ClassVar[bool] = True  # the ranks have a value
    can_clear: ClassVar[bool] = False  # zero_() comes without fetching
    is_withheld: ClassVar[bool] = True  # the tensor has no storage while it is away

    def fetch(self) -> None:
        """Brings the ranks' value here, if it is away. After an error it is still away."""
        with self.owner.lock, uninterrupted(), outside_transforms():
            if self.is_here:
                return
            self.owner.check()
            self.owner.note_reader()
            self.come_back()
            try:
                self.download()
            except BaseException:
                self.go_away()
                raise
            self.owner.here.append(self)

    def bring(self) -> None:
        """Makes the tensor one that is here, for a value that the caller has."""
        self.has_value = True
        if not self.is_here:
            self.come_back()
            self.owner.here.append(self)

    def download(self) -> None:
        tensor, trainer, key = self.tensor, self.owner.trainer, (self.info.state, self.info.name)
        with torch.no_grad():
            if not tensor.is_contiguous() or tensor.device.type != "cpu" and not trainer.copies_tensor(*key, tensor):
                tensor.copy_(to_torch(trainer.read(*key), self.info.dtype))
                self.has_value = True
                return
            if tensor.device.type == "cpu":
                trainer.read(*key, out=to_numpy(tensor)[0])
            else:
                trainer.copy_tensor(*key, tensor)
                torch.cuda.current_stream(tensor.device).synchronize()  # other streams and threads may use it next
            self.has_value = True
            if not tensor.is_inference():  # autograd must know that values saved for a backward are gone
                torch.autograd.graph.increment_version(tensor)

    def upload(self) -> None:
        self.owner.trainer.write(self.info.state, self.info.name, self.tensor.detach())

    def hold(self, tensor: torch.Tensor) -> None:
        """Another tensor has the value from now on."""
        self.tensor, self.has_value = tensor, True

    def is_written(self) -> bool:
        """The tensor is here, and has another value than the ranks."""
        return self.is_here and not _has_same_bytes(to_torch(self.owner.trainer.read(self.info.state, self.info.name), self.info.dtype),
                                                    self.tensor.detach().contiguous())

    def fits(self) -> bool:
        """The tensor still has the shape and the dtype that the ranks know."""
        return tuple(self.tensor.shape) == self.info.shape and DTYPES.get(self.tensor.dtype) == self.info.dtype

    def go_away(self) -> None:
        self.tensor.__class__ = offloaded_class(type(self.tensor))
        set_slot(self.tensor, self)
        self.is_here = False
        # A thread that has just looked for the value may be about to use the memory.
        if self.is_withheld and self.tensor.numel() and not self.owner.is_read_by_others:
            self.memory = withhold(self.tensor, self.info)

    def come_back(self) -> None:
        """Gives the tensor its own class; its value is what it was when it went away, if it `has_value`."""
        set_slot(self.tensor, None)
        self.tensor.__class__ = type(self.tensor).__mro__[1]
        self.is_here = True
        if self.memory is not None:
            give_back(self.tensor, self.memory)
            self.memory = None
        if self.freed:
            self.tensor.untyped_storage().resize_(self.freed)
            self.freed = 0

    def free(self) -> None:
        """Gives the memory back of a tensor that is away, where nothing else has it. Gradients keep theirs: autograd adds
        to them without asking."""
        with DisableTorchFunctionSubclass():
            if self.is_here or self.freed or self.info.state == "grad" or self.has_alias():
                return
            storage = self._memory.untyped_storage()
            is_shared = storage.device.type == "cpu" and storage.is_shared()  # true of all on GPUs
            if not storage.nbytes() or not storage.resizable() or is_shared:
                return
            if not self.tensor.is_inference():  # a graph that has kept the value must not look there
                torch.autograd.graph.increment_version(self.tensor)
            self.freed, self.has_value = storage.nbytes(), False
            storage.resize_(0)

    def has_alias(self) -> bool:
        """True when another tensor or array shares the memory."""
        return _owners_of_memory(self._memory) > _OWNERS_OF_OWN

    @property
    def _memory(self) -> torch.Tensor:
        return self.tensor if self.memory is None else self.memory


class Constant(Slot):
    """A tensor that the step reads and belongs to no module: the ranks never write it."""

    is_withheld = False

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
    can_clear = True
    is_withheld = False  # autograd may add to it

    def fetch(self) -> None:
        raise RuntimeError(f"the gradient that the step leaves in parameter {self.info.name!r} is not kept on the ranks\n  "
                           "hint: set spmd.compile(keep_grads=True) to keep each rank's part, or return from the step the "
                           "values that you need")


class ClearedGradient(Slot):
    """What was a parameter's gradient until the step cleared that."""

    is_kept = False

    def fetch(self) -> None:
        raise RuntimeError(f"the gradient of parameter {self.info.name!r} is gone: a later call of the step cleared it\n  "
                           "hint: read p.grad before that call, or return from the step the values that you need")


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


def _has_same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of tensors of one shape and dtype: not a number is itself, and -0 is not 0."""
    return torch.equal(*(t.cpu().reshape(-1).view(torch.uint8) for t in (one, other)))


def _owners_of_memory(tensor: torch.Tensor) -> int:
    return storage_use_count(cdata_of(tensor.untyped_storage()))


_OWNERS_OF_OWN = _owners_of_memory(torch.empty(1))
