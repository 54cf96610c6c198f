"""A step for batches of several sizes: one package from captures at two of them, and whether it is the step at a third.

What of a graph depends on the number of rows is found by comparing captures, in the compiler (spmd-dynamic-batch, which
makes one program of two captures or refuses) and here: every size that a program is to serve is captured, too, and must
be what the two captures say it is. So nothing is concluded from two sizes about a third one that the step's own Python
could treat in another way.
"""
from __future__ import annotations

import copy
import math
import sys
from typing import Any, Callable, Iterable, Iterator, Sequence

import torch

from ...torch_api.tracing import pytree
from ..call import StepCall
from ..errors import CaptureError
from .outputs import Output
from .package import StepPackage

_VERSION = 8  # of a package that says dynamic_batch


def sizes_of(dynamic_batch: Any, option: str = "dynamic_batch") -> tuple[int, ...]:
    """The sizes that batches are padded to, ascending: a number, or several.

    Raises:
      ValueError: they are no numbers of rows.
    """
    given = tuple(dynamic_batch) if isinstance(dynamic_batch, Iterable) else (dynamic_batch,)
    if not given or any(isinstance(size, bool) or not isinstance(size, int) or size < 1 for size in given):
        raise ValueError(f"expected {option} to be the largest number of rows, or several numbers of rows to which batches "
                         f"are padded; got {dynamic_batch!r}")
    return tuple(sorted(set(given)))


def count_rows(call: StepCall, batch_dims: dict[str, int | None]) -> int:
    """The rows of the batch.

    Raises:
      CaptureError: inputs have different numbers of rows, or there are none.
    """
    rows: dict[str, int] = {}
    for position, (name, tensor) in enumerate(zip(call.batch_names, call.batch)):
        dim = call.batch_dim(position, batch_dims)
        if dim is not None:
            rows[name] = tensor.shape[dim]
    if len(set(rows.values())) != 1:
        said = ", ".join(f"{name!r} has {count}" for name, count in rows.items()) or "no input has any"
        raise CaptureError(f"dynamic_batch requires the same number of rows in all inputs; {said}\n  hint: pass batch_dims: "
                           "the dim of each input that counts samples, None for an input without one")
    return next(iter(rows.values()))


def with_rows(call: StepCall, size: int, batch_dims: dict[str, int | None]) -> StepCall:
    """The call on `size` rows: the first ones of its own, and the last one again where there are not so many, so that what
    is a row number stays one."""
    batch = []
    for position, tensor in enumerate(call.batch):
        dim = call.batch_dim(position, batch_dims)
        batch.append(tensor if dim is None else resized(tensor, dim, size))
    return call.with_batch(batch)


def resized(tensor: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """Of `size` rows, in memory as the tensor is."""
    if tensor.shape[dim] == size:
        return tensor
    order = sorted(range(tensor.dim()), key=lambda d: (-tensor.stride(d), d))
    shape = [size if d == dim % tensor.dim() else length for d, length in enumerate(tensor.shape)]
    rows = torch.empty([shape[d] for d in order], dtype=tensor.dtype, device=tensor.device)
    rows = rows.permute([order.index(d) for d in range(tensor.dim())])
    with torch.no_grad():
        last = torch.arange(size, device=tensor.device).clamp(max=tensor.shape[dim] - 1)
        rows.copy_(tensor.detach().index_select(dim, last))
    return rows.requires_grad_(tensor.requires_grad)


def other_size(size: int) -> int:
    """The number of rows of the second capture: one row is too often a special case."""
    return size - 1 if size > 2 else size + 1


def for_sizes(largest: StepPackage, other: StepPackage, rows: int, other_rows: int) -> StepPackage:
    """One package for batches of up to `rows` rows, of captures with `rows` and with `other_rows` rows: the number of rows
    is a batch input of its own.

    Raises:
      CaptureError: the step is none that a program could serve several sizes of.
    """
    if largest.first_step is not None:
        raise CaptureError("the first call of this optimizer is a separate program, which supports only one batch size\n  "
                           "hint: run one eager step before the first compiled one, or omit dynamic_batch")
    if largest.read_left:
        raise CaptureError("the step reads a value that an earlier call stored in an attribute: its number of rows may be "
                           "that call's\n  hint: omit dynamic_batch, or store the value in a buffer of the model")
    if why := _of_this_batch(largest) or _of_this_batch(other):
        raise CaptureError(f"the step {why}: dynamic_batch does not support this\n  hint: omit dynamic_batch")
    name = "rows"
    while any(entry.get("name") == name for entry in largest.step["inputs"]):
        name += "_"
    package = copy.copy(largest)
    package.step = _with_input(largest.step, name, rows)
    package.other_batch = copy.copy(other)
    package.other_batch.step = _with_input(other.step, name, other_rows)
    dims = row_dims(package)
    for left in largest.left:
        outputs = [leaf for leaf in pytree.tree_leaves(left.value) if isinstance(leaf, Output)]
        if any(dims[output.index] is not None for output in outputs):
            raise CaptureError(f"the step stores rows of the batch in {left.path!r}: the next call may have another number "
                               "of rows\n  hint: omit dynamic_batch, or return them from the step")
    return package


def _of_this_batch(package: StepPackage) -> str:
    """What a capture has done that is known of the batch it was given alone; empty if there is none."""
    return "asks for values of its batch" if package.guards else "appends to a list" if package.grown else ""


def _with_input(step: dict[str, Any], name: str, size: int) -> dict[str, Any]:
    """The step with a batch input `name` behind the others; values after it count from one more."""
    inputs = step["inputs"]
    at = next((entry["id"] for entry in inputs if entry["kind"] == "constant"), len(inputs))

    def renumber(value: Any) -> Any:
        if isinstance(value, list):
            return [renumber(entry) for entry in value]
        return value + 1 if isinstance(value, int) and value >= at else value

    def argument(given: dict[str, Any]) -> dict[str, Any]:
        return {kind: renumber(value) if kind in ("value", "values") else value for kind, value in given.items()}

    def result(entry: dict[str, Any] | None) -> dict[str, Any] | None:
        return entry and entry | {"id": renumber(entry["id"])}

    moved = [entry | {"id": renumber(entry["id"])} for entry in inputs]
    moved.insert(at, {"id": at, "kind": "batch", "name": name, "shape": [], "dtype": "i64", "batch_dim": None})
    nodes = [node | {"args": [[key, argument(given)] for key, given in node["args"]],
                     "results": [result(entry) for entry in node["results"]]} for node in step["nodes"]]
    outputs = [output | {"value": renumber(output["value"])} for output in step["outputs"]]
    return step | {"version": _VERSION, "inputs": moved, "nodes": nodes, "outputs": outputs,
                   "dynamic_batch": {"rows": name, "size": size}}


class OtherStep(CaptureError):
    """The step does something different for one batch size."""

    def __init__(self, rows: int, why: str):
        super().__init__(f"the step does something different for a batch of {rows} row{'s' * (rows != 1)}: {why}\n  "
                         "hint: omit dynamic_batch to compile each size separately, or drop batches of this size")


class SizedStep:
    """Captures of a step with `rows` and `other_rows` rows, and what they say of others."""

    def __init__(self, largest: StepPackage, other: StepPackage, rows: int, other_rows: int):
        self._steps, self.rows, self._other_rows = (largest.step, other.step), rows, other_rows
        self._left, self._written = largest.left, largest.written

    def why_not(self, package: StepPackage, rows: int) -> str:
        """Empty when a capture with `rows` rows is the step that the two others say; else what is different."""
        largest, other = self._steps
        if why := _of_this_batch(package):
            return f"it {why}"
        for name in ("default_dtype", "parameters", "buffers", "units", "precision", "operators"):
            if not package.step.get(name) == largest.get(name) == other.get(name):
                return f"{name} of the step are others"
        # What an input's value was at its capture is no part of the graph: a learning rate, a seed, a state that is there.
        keys = ("id", "kind", "name", "state", "of", "group", "shape", "dtype", "batch_dim")
        entries = [[[entry.get(key) for key in keys] for entry in step["inputs"]] for step in (largest, other, package.step)]
        if why := self._differs(*entries, rows):
            return f"an entry of its inputs: {why}"
        own = {entry["id"]: entry["id"] for entry in largest["inputs"]}  # its number of each value
        if why := self._other_nodes(package.step["nodes"], own, rows):
            return why
        for a, b, c in zip(largest["outputs"], other["outputs"], package.step["outputs"]):
            if not (a | {"value": own[a["value"]]}) == (b | {"value": own[b["value"]]}) == c:
                return f"its output {c['path']!r} is another"
        if len(largest["outputs"]) != len(package.step["outputs"]):
            return "it has other outputs"
        return self._other_effects(package)

    def _other_nodes(self, nodes: list[dict[str, Any]], own: dict[int, int], rows: int) -> str:
        """What is another op in `nodes` than in the two captures; `own` gets the numbers that values have in it."""
        largest, other = self._steps
        left = iter(nodes)
        c = next(left, None)
        for number, (a, b) in enumerate(zip(largest["nodes"], other["nodes"])):
            place = f"op {number}, {a['op']!r}{_place(largest, a)}"
            if a["op"] != b["op"]:
                return f"{place}: it is {b['op']!r} with {self._other_rows} rows"
            if rows == 1 and (c is None or c["op"] != a["op"]) and self._adds_rows_up(a, b) \
                    and _could_be_its_operand(largest, number):
                own[a["results"][0]["id"]] = own[dict(a["args"])["self"]["value"]]
                continue
            if c is None or c["op"] != a["op"]:
                return f"{place}: it is " + ("not there" if c is None else repr(c["op"]))
            if why := self._differs(_content(a, own), _content(b, own), _content(c), rows):
                return f"{place}: {why}"
            own |= {mine["id"]: its["id"] for mine, its in zip(a["results"], c["results"]) if mine}
            c = next(left, None)
        return f"it has {c['op']!r} besides" if c else ""

    def _adds_rows_up(self, a: dict[str, Any], b: dict[str, Any]) -> bool:
        """A sum that PyTorch leaves out where there is one row: of a gradient, over a dim that was broadcast."""
        if a["op"] != "aten.sum.dim_IntList" or dict(a["args"])["keepdim"] != {"bool": True}:
            return False
        dims = dict(a["args"])["dim"].get("ints")
        shapes = [self._shape_of(step, dict(node["args"])["self"]["value"]) for step, node in zip(self._steps, (a, b))]
        return bool(dims) and all(shapes[0][dim] == self.rows and shapes[1][dim] == self._other_rows for dim in dims) \
            and dict(a["args"]).get("dtype", {"none": None}) == {"none": None}

    def _shape_of(self, step: dict[str, Any], number: int) -> list[int]:
        return next(entry["shape"] for entry in (*step["inputs"], *(r for n in step["nodes"] for r in n["results"] if r))
                    if entry["id"] == number)

    def _other_effects(self, package: StepPackage) -> str:
        def constants(left: Any) -> Any:
            return [(entry.path, entry.value if isinstance(entry.value, (bool, int, float, str, type(None))) else None)
                    for entry in left]
        if constants(self._left) != constants(package.left):
            return "what it leaves in attributes is another"
        if [name for name, _ in self._written] != [name for name, _ in package.written]:
            return "it writes into other inputs of its batch"
        return ""

    def _differs(self, a: Any, b: Any, c: Any, rows: int) -> str:
        """`a` and `b` are parts of the two captures, `c` the one with `rows` rows."""
        if isinstance(a, dict) and isinstance(b, dict) and isinstance(c, dict):
            if not a.keys() == b.keys() == c.keys():
                return f"it is {c}, and {a} with {self.rows} rows"
            return next(filter(None, (self._differs(a[key], b[key], c[key], rows) for key in a)), "")
        if isinstance(a, list) and isinstance(b, list) and isinstance(c, list):
            if not len(a) == len(b) == len(c):
                return f"it is {c}, and {a} with {self.rows} rows"
            return next(filter(None, (self._differs(*entries, rows) for entries in zip(a, b, c))), "")
        if a == b:
            return "" if c == a and type(c) is type(a) else f"it is {c}, and {a} with {self.rows} rows"
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (a, b, c))
        if numbers and any(_near(c, wanted) for wanted in self._expected(a, b, rows)):
            return ""
        return f"it is {c}, and {a} with {self.rows} rows, {b} with {self._other_rows}: neither proportional nor inversely " \
               "proportional to the batch size"

    def _expected(self, a: float, b: float, rows: int) -> Iterator[float]:
        """What a number is with `rows` rows that is `a` and `b` in the two captures, as spmd-dynamic-batch understands
        it (BatchSizes.cpp): proportional to the rows, divided by the rows, or by a count of elements less one."""
        if _near(a / self.rows, b / self._other_rows):
            yield a / self.rows * rows
        if _near(a * self.rows, b * self._other_rows):
            yield a * self.rows / rows
        elif a * self.rows != b * self._other_rows:
            count = round((a - b) / (a * self.rows - b * self._other_rows))
            less = [count * size - 1 for size in (self.rows, self._other_rows, rows)]
            if min(less) > 0 and _near(a * less[0], b * less[1]):
                yield a * less[0] / less[2]


def capture_sizes(capture: Callable[[StepCall], StepPackage], call: StepCall, size: int,
                  batch_dims: dict[str, int | None]) -> tuple[StepPackage, SizedStep]:
    """A package for batches of up to `size` rows, and what it says of a capture of each.

    Raises:
      CaptureError: with the call's own number of rows the step is another one.
    """
    rows, other_rows = count_rows(call, batch_dims), other_size(size)
    if not 0 < rows <= size:
        raise CaptureError(f"the batch has {rows} rows, and dynamic_batch is {size}\n  hint: capture the step with 1 to {size} "
                           "rows")
    captured = {count: capture(with_rows(call, count, batch_dims).traced_each()) for count in dict.fromkeys((size, other_rows, rows))}
    package = for_sizes(captured[size], captured[other_rows], size, other_rows)
    sized = SizedStep(captured[size], captured[other_rows], size, other_rows)
    if why := sized.why_not(captured[size], size):
        raise CaptureError(f"the step does something different for {size} rows than for {other_rows}: {why}\n  hint: omit "
                           "dynamic_batch to compile each size separately")
    if why := sized.why_not(captured[rows], rows):
        raise OtherStep(rows, why)
    return package, sized


def row_dims(package: StepPackage) -> list[tuple[int, int] | None]:
    """Of each output of a package for several sizes: its dim that has rows of the batch, and how many for each."""
    largest, other = package.step, package.other_batch.step
    return [next(((dim, a // largest["dynamic_batch"]["size"]) for dim, (a, b) in enumerate(zip(*shapes)) if a != b), None)
            for shapes in zip(_output_shapes(largest), _output_shapes(other))]


def _output_shapes(step: dict[str, Any]) -> list[list[int]]:
    shapes = {entry["id"]: entry["shape"] for entry in step["inputs"]}
    shapes |= {entry["id"]: entry["shape"] for node in step["nodes"] for entry in node["results"] if entry}
    return [shapes[output["value"]] for output in step["outputs"]]


def _values_of(node: dict[str, Any], names: Sequence[str] | None = None) -> set[int]:
    """The numbers of the values that are its arguments, or those of `names`."""
    found: set[int] = set()
    for name, given in node["args"]:
        if names is None or name in names:
            found.update([given["value"]] if "value" in given else filter(None.__ne__, given.get("values", ())))
    return found


def _could_be_its_operand(step: dict[str, Any], number: int) -> bool:
    """Whether all would be the same if the result of node `number` were the memory of its operand: nothing is written
    into the one that is then read from the other."""
    base: dict[int, int] = {}  # of values that share memory, the first

    def memory(values: set[int]) -> set[int]:
        return {base.get(value, value) for value in values}

    for node in step["nodes"]:
        if "view_of" in node:
            for of in _values_of(node, [node["view_of"]]):
                base.update((entry["id"], base.get(of, of)) for entry in node["results"] if entry)
    own, result = memory(_values_of(step["nodes"][number])), step["nodes"][number]["results"][0]["id"]
    is_written = False
    for node in step["nodes"][number + 1:]:
        writes = memory(_values_of(node, node.get("mutates", ())))
        is_written |= result in writes
        if own & writes or (is_written and own & memory(_values_of(node))):
            return False
    return not (is_written and own & memory({output["value"] for output in step["outputs"]}))


def _content(node: dict[str, Any], own: dict[int, int] | None = None) -> dict[str, Any]:
    """A node without what is no part of the computation: the numbers of its results, and of its stack. Those of its
    operands are `own`."""
    def argument(given: dict[str, Any]) -> dict[str, Any]:
        if own is None:
            return given
        if "value" in given:
            return {"value": own[given["value"]]}
        return {"values": [number if number is None else own[number] for number in given["values"]]} \
            if "values" in given else given

    return node | {"stack": None, "args": [[name, argument(given)] for name, given in node["args"]],
                   "results": [entry and [entry["shape"], entry["dtype"]] for entry in node["results"]]}


def _place(step: dict[str, Any], node: dict[str, Any]) -> str:
    if node["stack"] is None:
        return ""
    frame = step["stacks"][node["stack"]][0]
    return f" ({frame['file']}:{frame['line']})"


def _near(a: float, b: float) -> bool:
    return a == b or math.isclose(a, b, rel_tol=4 * sys.float_info.epsilon)

