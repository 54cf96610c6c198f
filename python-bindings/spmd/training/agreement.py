"""What the processes of a job bring to a call of a compiled step, and must have alike.

Each calls the step for itself, with its own rows of the batch. Before anything is compiled or runs they compare what
they call it with; learning rates and written tensors are compared by the runtime (Runtime/Train/StepAgreement.h).
"""
from __future__ import annotations

import hashlib
from typing import Any, Sequence

import numpy as np
import torch

from ..arrays import NUMPY, to_numpy, to_torch
from ..capture.call import StepCall
from ..remarks import remark
from ..run.processes import Processes

Shapes = list[tuple[int, ...]]


class StepAgreement:
    """Of the processes that share a compiled step. `batch` is "rows" or "global", as for spmd.compile."""

    def __init__(self, processes: Processes, batch_dims: dict[str, int | None], batch: str):
        self.processes, self._batch_dims, self._gives_rows = processes, batch_dims, batch == "rows"

    def meet(self, call: StepCall, state: dict[str, str], choice: int,
             error: Exception | None) -> tuple[list[Shapes] | None, int]:
        """Compares what all call the step with: `state` names what must be the same.

        Returns the shapes of the batch of each process, None: all have the same; and the choice of all, which is the
        lowest.

        Raises:
          `error`, where there is one; ProcessError, where another process has one.
          ValueError: the processes differ.
        """
        shapes = [tuple(tensor.shape) for tensor in call.batch] if error is None else []
        said = repr((shapes, sorted(state.items()), error is None)).encode()
        answers = self.processes.gather(hashlib.sha256(said).digest() + choice.to_bytes(4, "little", signed=True))
        choices = [int.from_bytes(answer[-4:], "little", signed=True) for answer in answers]
        if error is None and len({answer[:-4] for answer in answers}) == 1:
            return None, min(choices)
        self.processes.raise_first(error)
        everything = self.processes.gather_objects((state, shapes))
        for rank, (other, _) in enumerate(everything):
            _compare(everything[0][0], other, rank)
        return [shapes for _, shapes in everything], min(choices)

    def global_call(self, call: StepCall, shapes: Sequence[Shapes] | None = None) -> StepCall:
        """The call on the batch of all processes, without its values. `shapes`: as `meet` gives them.

        Raises:
          ValueError: the tensors of the processes do not fit together.
        """
        batch = []
        for position, tensor in enumerate(call.batch):
            given = [tuple(tensor.shape)] * self.processes.world if shapes is None else [s[position] for s in shapes]
            dim = call.batch_dim(position, self._batch_dims) if self._gives_rows else None
            rest = [shape if dim is None else (shape[:dim], shape[dim + 1:]) for shape in given]
            for rank, other in enumerate(rest):
                if other != rest[0]:
                    raise ValueError(f"batch input {call.batch_names[position]!r} has the shape {list(given[rank])} on rank "
                                     f"{rank} and {list(given[0])} on rank 0" + ("; only rows may differ in number"
                                                                                 if dim is not None else ""))
            shape = list(given[0])
            if dim is not None:
                shape[dim] = sum(one[dim] for one in given)
            batch.append(torch.empty(shape, dtype=tensor.dtype, device="meta"))
        return call.with_batch(batch)

    def with_all_rows(self, call: StepCall) -> StepCall:
        """The call on the batch of all processes, with its values."""
        batch = []
        for position, tensor in enumerate(call.batch):
            dim = call.batch_dim(position, self._batch_dims) if self._gives_rows else None
            if dim is None:
                batch.append(tensor)
                continue
            array, dtype = to_numpy(tensor)
            parts = self.processes.gather_bytes(array.tobytes())
            shape = list(array.shape)
            slab = max(1, array.itemsize * int(np.prod(shape[:dim] + shape[dim + 1:])))
            arrays = [np.frombuffer(part, NUMPY[dtype]).reshape([*shape[:dim], len(part) // slab, *shape[dim + 1:]])
                      for part in parts]
            batch.append(to_torch(np.concatenate(arrays, dim), dtype))
        return call.with_batch(batch)

    def check_equal_rows(self, call: StepCall, refuses: bool) -> None:
        """Once: a sampler that gives every process the same rows trains on one of them. A Remark in rank 0; an error in all
        processes if the caller `refuses` it.

        Raises:
          ValueError: all processes have the same rows.
        """
        rows = [to_numpy(tensor)[0].tobytes() for position, tensor in enumerate(call.batch)
                if self._gives_rows and call.batch_dim(position, self._batch_dims) is not None]
        digests = self.processes.gather(hashlib.sha256(b"".join(rows)).digest())
        if rows and len(set(digests)) == 1:
            text = (f"all {self.processes.world} processes give the same rows of the first batch, so that each row is trained on "
                    f"{self.processes.world} times\n  hint: give each process rows of its own (DistributedSampler); or "
                    "batch=\"global\", when every process has the whole batch")
            if refuses:
                raise ValueError(text)
            if self.processes.rank == 0:
                remark(text)

    def compare(self, what: str, mine: Any) -> None:
        """Raises where a process has another value than rank 0."""
        values = self.processes.gather_objects(mine, waits=True)
        for rank, value in enumerate(values):
            if value != values[0]:
                raise ValueError(f"{what} is {value!r} on rank {rank} and {values[0]!r} on rank 0")


def _compare(first: dict[str, str], other: dict[str, str], rank: int) -> None:
    for name in (*first, *other):
        if first.get(name) != other.get(name):
            raise ValueError(f"{name} is {other.get(name)} on rank {rank} and {first.get(name)} on rank 0; every process "
                             "must call the step with the same")
