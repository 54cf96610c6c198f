"""The sizes of the batch that one program of a compiled step serves (docs/python.md, batches of several sizes)."""
from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np
import torch

from .capture import StepPackage
from .capture.batch_sizes import SizedStep, row_dims, with_rows
from .capture.call import StepCall
from .capture.left_values import Left


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
    left: Sequence[Left]
    output_shapes: list[Sequence[int]]
    rows: int | None = None


class BatchSizes:
    """Those that a program serves, of which each was captured and found to be what the program computes."""

    def __init__(self, package: StepPackage, sized: SizedStep, batch_dims: dict[str, int | None]):
        self.sized, self._batch_dims, self._row_dims = sized, batch_dims, row_dims(package)
        self._known: list[tuple[tuple[Any, ...], OneSize]] = []  # keys have no hash

    @property
    def largest(self) -> int:
        return self.sized.rows

    def find(self, key: tuple[Any, ...]) -> OneSize | None:
        """The size of a call with this key; None of one that was not captured."""
        return next((size for known, size in self._known if known == key), None)

    def add(self, key: tuple[Any, ...], rows: int, captured: StepPackage, shapes: Sequence[Sequence[int]]) -> None:
        """Calls with this key are served from now on. `shapes`: of the program's outputs."""
        size = OneSize(captured.result, captured.left, [], rows)
        size.output_shapes = [self._cut(shape, number, rows) for number, shape in enumerate(shapes)]
        self._known.append((key, size))

    def batch(self, call: StepCall, size: OneSize) -> list[torch.Tensor]:
        """The batch of a call as the program takes it."""
        return [*with_rows(call, self.largest, self._batch_dims).batch, torch.tensor(size.rows)]

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
