"""The sizes of the batch that one program of a compiled step serves (docs/python.md, batches of several sizes)."""
from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import torch

from ..capture import StepPackage
from ..capture import CaptureError
from ..capture.call import StepCall
from ..capture.world.leaked_values import LeakedValue
from ..capture.world.settings import Setting
from ..capture.write.batch_sizes import SizedStep, resized, row_dims, with_rows


@dataclasses.dataclass(frozen=True)
class Dynamic:
    """What dynamic_batch asks for: the sizes to the next of which batches are padded, ascending. `falls_back`: where a step
    is none that one program could serve several sizes of, each is compiled for itself."""

    sizes: tuple[int, ...]
    falls_back: bool

    @property
    def option(self) -> str:
        return "maybe_dynamic_batch" if self.falls_back else "dynamic_batch"

    def size_for(self, rows: int) -> int | None:
        """The size that a batch of `rows` rows is padded to; None where there are more than any program has, or none."""
        return next((size for size in self.sizes if size >= rows > 0), None)


@dataclasses.dataclass
class OneSize:
    """Of a call: what it returns and leaves, in terms of outputs, and their shapes, where somebody asks for them. `rows`:
    of a program that serves several sizes, the rows of the batch."""

    result: Any
    left: Sequence[LeakedValue]
    output_shapes: list[Sequence[int]]
    rows: int | None = None
    settings: Sequence[Setting] = ()


@dataclasses.dataclass(frozen=True)
class RankRows:
    """How the rows of a call are those of the captured step: all of them, or a rank's, of which `parts` have as many."""

    parts: int
    batch_dims: dict[str, int | None]

    def captured(self, call: StepCall) -> StepCall:
        """The call that is captured.

        Raises:
          CaptureError: the ranks would have different numbers of rows.
        """
        return call if self.parts == 1 else call.of_one_rank(self.parts, self.batch_dims)

    def each(self, rows: int) -> int:
        """How many of `rows` rows the captured step has, at most."""
        return -(-rows // self.parts)

    def padded(self, call: StepCall, each: int) -> StepCall:
        """The call with so many rows of each part."""
        if self.parts == 1:
            return with_rows(call, each, self.batch_dims)
        own = call.rows_of_ranks(call.batch, self.parts, self.batch_dims)
        dims = [call.batch_dim(position, self.batch_dims) for position in range(len(call.batch))]
        return call.with_batch([tensor if dim is None else torch.cat([resized(part, dim, each) for part in own[name]], dim)
                                for name, tensor, dim in zip(call.batch_names, call.batch, dims)])


class BatchSizes:
    """Those that a program serves, of which each was captured and found to be what the program computes."""

    def __init__(self, package: StepPackage, sized: SizedStep, ranks: RankRows, here: RankRows):
        """`here`: of what this process passes."""
        self.sized, self._here, self._row_dims = sized, here, row_dims(package)
        self._known: list[tuple[tuple[Any, ...], OneSize]] = []  # keys have no hash
        if ranks.parts > 1 and any(found is not None for found in self._row_dims):
            raise CaptureError("the step returns rows of its batch, or writes into it: with view='local' each rank has only "
                               "a part of them\n  hint: omit dynamic_batch, return a number, or use view='global'")

    def find(self, key: tuple[Any, ...]) -> OneSize | None:
        """The size of a call with this key; None of one that was not captured."""
        return next((size for known, size in self._known if known == key), None)

    def add(self, key: tuple[Any, ...], rows: int, captured: StepPackage, shapes: Sequence[Sequence[int]]) -> None:
        """Calls with this key are served from now on. `shapes`: of the program's outputs."""
        size = OneSize(captured.result, captured.left, [], rows, captured.settings)
        size.output_shapes = [self._cut(shape, number, rows) for number, shape in enumerate(shapes)]
        self._known.append((key, size))

    def batch(self, call: StepCall, size: OneSize) -> list[torch.Tensor]:
        """The batch of a call as the program takes it."""
        return [*self._here.padded(call, self.sized.rows).batch, torch.tensor(size.rows)]

    def outputs(self, arrays: Sequence[np.ndarray], size: OneSize) -> list[np.ndarray]:
        """The outputs without rows that are not there."""
        return [array if list(array.shape) == list(shape) else array[tuple(map(slice, shape))].copy()
                for array, shape in zip(arrays, size.output_shapes)]

    def _cut(self, shape: Sequence[int], number: int, rows: int) -> list[int]:
        cut, found = list(shape), self._row_dims[number]
        if found is not None:
            cut[found[0]] = found[1] * rows
        return cut


@dataclasses.dataclass
class NewSizes:
    """Those of a program that is not there yet: its key, and the size that it was compiled for."""

    sizes: BatchSizes
    key: tuple[Any, ...]
    rows: int
    captured: StepPackage

    def put(self, program: Any, key: tuple[Any, ...]) -> None:
        """`key`: that of the call."""
        self.sizes.add(key, self.rows, self.captured, [info.shape for info in program.trainer.outputs])
        program.sizes, program.key = self.sizes, self.key
