"""Rows that a mask chooses: `position, token = torch.where(one_hot[expert])`, whose rows `x[token]` go through an expert and are added
up by `index_add_`. What is done to them is noted (lazy_rows.py), and done to all rows at once where they are added up.

[Note: loops] `for expert in (one_hot.sum(...) > 0).nonzero():` goes on over all experts, also over those that no row has chosen:
eager skips these, so nothing but rows may come out of the loop, and they are none. That is checked: what operators compute in a
turn is used in none but rows, nothing is written, and no number of Python's is counted up. When the loop is over, what its
turns did alike is done at once, by the expert of each row, which the one_hot says. Where no turn with a parameter is one of
eager's (the only one, of experts that are modules), that has no gradient there, and here one of zeros, which an optimizer takes:
when the step is over, it says so.
"""
from __future__ import annotations

import contextlib
import itertools
import math
import numbers
import operator
import sys
from typing import Any, Callable, Iterator, NamedTuple, Sequence

import torch

from ...torch_api.operators import OpOverload, schema_of
from ...torch_api.tensors import base_of, version_of
from ...torch_api.tracing import FakeTensor, SHAPE_FUNCTION_MODULES, disable_current_modes, get_proxy_mode, pytree
from ..errors import CaptureError, depends_on_values, error_at, where
from ..observe import patches
from ..observe.memory import memory_of
from ..observe.stacks import user_stack
from .known_values import KnownValues
from .lazy_rows import Check, Groups, Origin, RowCount, Rows, Together, form, refused, roots_of, steps_of, telling, told
from .masked_rows import OTHERS, At, Mask, add_along, is_same_value, of_all_rows, of_chosen, places

_ADDS = (torch.Tensor.index_add_, torch.Tensor.index_add, torch.index_add)
_NUMBERS = (bool, int, float, str)
_MOST_KNOWN = 1 << 16  # elements of a tensor of which a step asks where they are


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else version_of(tensor)


class _Taken(NamedTuple):
    """`tensor` at the places of rows along `axes`, with the dims of `new` added."""

    tensor: torch.Tensor
    axes: tuple[int, ...]
    new: tuple[int, ...]
    version: int


class _Choice(NamedTuple):
    """A mask over dims of the sizes `shape`. Of the one_hot of `index` its class `number`, or else any; `axes`: the dim that each
    of the mask's is; `version`: that of the mask, or of the index, when it chose."""

    mask: torch.Tensor
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    version: int
    index: torch.Tensor | None = None
    number: int = 0

    def check_unwritten(self) -> None:
        if _version(self.mask if self.index is None else self.index) != self.version:
            raise refused("an operator", ", chosen by a tensor that was written meanwhile")


class _Added(NamedTuple):
    target: torch.Tensor
    choice: _Choice
    axis: int
    value: Any
    alpha: Any


class _Origin(Origin):
    """Of the rows of one choice."""

    def __init__(self, choice: _Choice, chosen: ChosenRows, loop: _Loop | None):
        self.choice, self.loop, self._chosen = choice, loop, chosen
        self.count = RowCount(loop is not None)
        self._mask: Mask | None = None

    def mask(self) -> Mask | None:
        """Whose rows these are, unless they are those of a number, of which all are done together."""
        if self._mask is None and self.loop is None and self.choice.index is None:
            self.choice.check_unwritten()
            self._mask = self._chosen.find_mask(self.choice.mask)
        return self._mask

    def begin(self, value: Any, trailing: Sequence[int], like: torch.Tensor) -> Rows:
        return Rows.begin(self, value, like, trailing)

    def take(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        return self._add(func, *args, **kwargs) if func in _ADDS else NotImplemented

    def _add(self, func: Callable, target: torch.Tensor, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> torch.Tensor:
        is_ours = isinstance(index, Rows) and isinstance(source, Rows) and not isinstance(target, Rows) \
            and index.origin is self and source.origin in (self, self._mask) and isinstance(index.value, At)
        if not is_ours or dim != 0 or target.shape[0] != self.choice.shape[index.value.axis] \
                or target.shape[1:] != source.sample.shape[1:] or target.dtype != source.sample.dtype:
            raise refused(func, ", not of rows to the places that they are from, in one type")
        result = target if func is torch.Tensor.index_add_ else target.clone()
        if source.origin is self._mask:
            return add_along(result, self.choice.shape, index.value.axis, self._mask.chosen(source, 0), alpha)
        added = _Added(result, self.choice, index.value.axis, source.value, alpha)
        if self.loop is None:
            _add_up([added])
        else:
            self.loop.add(added, None if result is target else target)
        return result

    def iterate(self, rows: Rows) -> Iterator[_Turn]:
        if self.loop is not None or len(self.choice.shape) > 1 or not isinstance(rows.value, At):
            raise refused("iteration")
        return self._chosen.begin_loop(self.choice.mask).turns(self.choice.shape[0], 0)


class _Hits(_Origin):
    """Those numbers of a dim that are to be gone through."""

    def mask(self) -> Mask:
        self.choice.check_unwritten()
        return self._chosen.find_mask(self.choice.mask)

    def take(self, func: Callable, args: tuple, kwargs: dict) -> Any:
        if (func.__name__, *args[1:]) not in _TO_ONE_DIM or kwargs:
            raise refused(func, "")
        return self.begin(args[0].value, (), args[0].sample)

    def iterate(self, rows: Rows) -> Iterator[_Turn]:
        return self.loop.turns(self.choice.shape[0], rows.sample.dim() - 1)


#: What makes one dim of the column that nonzero() gives.
_TO_ONE_DIM = (("flatten",), ("squeeze", -1), ("squeeze", 1), ("view", -1), ("reshape", -1))


class _Turn:
    """The number that a turn of a loop is of: in eager a tensor of no dim, or of one with a single entry."""

    def __init__(self, loop: _Loop, number: int, dims: int):
        self._loop, self._number, self.dims = loop, number, dims

    def __index__(self) -> int:
        self._loop.check_is_turn(self._number)
        return self._number

    __int__ = item = __index__

    def __getitem__(self, index: Any) -> _Turn:
        if self.dims == 0 or index not in (0, -1):
            raise refused("an entry")
        return _Turn(self._loop, self._number, 0)

    def squeeze(self, *dims: int) -> _Turn:
        if dims not in ((), (0,), (-1,)):
            raise refused("squeeze")
        return _Turn(self._loop, self._number, 0)

    def __str__(self) -> str:
        return f"tensor([{int(self)}])" if self.dims else f"tensor({int(self)})"

    def __format__(self, text: str) -> str:
        return str(self) if self.dims and not text else format(int(self), text)

    def _compared(self, compare: Callable, other: Any) -> Any:
        found = compare(int(self), other)
        return found.reshape(1) if self.dims and isinstance(found, torch.Tensor) and found.dim() == 0 else found

    def __eq__(self, other: Any) -> bool:
        return self._compared(operator.eq, other)

    def __lt__(self, other: Any) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compared(operator.ge, other)

    __hash__ = None


class _Led:
    """`x[None, token]`, which a dim of size 1 leads: of use once that is gone."""

    def __init__(self, rows: Rows):
        self._rows = rows

    def reshape(self, *sizes: Any) -> Rows:
        sizes = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        if sizes != (-1, *self._rows.sample.shape[1:]):
            raise refused("reshape")
        return self._rows

    view = reshape

    def squeeze(self, dim: int) -> Rows:
        return self[dim]

    def __getitem__(self, index: Any) -> Rows:
        if type(index) is not int or index != 0:
            raise refused("indexing", ", which another dim leads")
        return self._rows

    def __getattr__(self, name: str) -> Any:
        raise refused(name, ", which another dim leads")

    @classmethod
    def __torch_function__(cls, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        raise refused(func, ", which another dim leads")


class _Loop:
    """One loop over the numbers that a mask chooses."""

    def __init__(self, chosen: ChosenRows, mask: torch.Tensor):
        self._chosen, self._mask, self._version, self._added = chosen, mask, _version(mask), []
        self._continued: list[tuple[torch.Tensor, torch.Tensor]] = []  # what index_add was given and gave
        self.trained: tuple[frozenset[int], ...] = ()  # the ids of parameters that the same turns have gradients of,
        self.is_none: list[torch.Tensor] = []  # and whether none of these turns is one of eager's
        self.own: set = set()  # nodes of turns, whose values are of rows alone
        self.rows: set = set()  # nodes of all rows
        self._turn, self._by_turn = 0, []
        self._stack = user_stack()[0]

    def turns(self, count: int, dims: int) -> Iterator[_Turn]:
        """`dims`: how many the tensor has that is the number of a turn."""
        if self._chosen.loop is not None:
            raise refused("a loop in a loop")
        if _version(self._mask) != self._version:
            raise refused("iteration", ", chosen by a tensor that was written meanwhile")
        graph = get_proxy_mode().tracer.graph
        self._chosen.loop, is_over = self, False
        try:
            # Not from 0 on: the number of a turn, as enumerate has it, is not that which the turn is of.
            for number in (*range(1, count), 0):
                before, numbers = len(graph.nodes), _numbers(sys._getframe(1))
                self._turn = number
                yield _Turn(self, number, dims)
                changed = {name: value for name, value in _numbers(sys._getframe(1)).items()
                           if (numbers.get(name, ...) if type(value) is not tuple else numbers.get(name, value)) != value}
                if any(value != number or type(value) is not int for value in changed.values()):
                    raise self._refused(f"that changes {', '.join(map(repr, changed))}")
                made = list(itertools.islice(reversed(graph.nodes), max(len(graph.nodes) - before, 0)))
                if any(isinstance(node.target, OpOverload) and schema_of(node.target).is_mutable for node in made):
                    raise self._refused("that writes into a tensor otherwise than by index_add_")
                self.own.update(made)
            is_over = True
        finally:
            self._chosen.loop = None
            if not is_over:
                self._chosen.error = self._chosen.error or self._refused("that ends before")
        if not self._added:
            raise self._refused("that adds up none")
        self._find_trained()
        self._put_in_place()
        before = len(graph.nodes)
        self._add_all()
        self.rows.update(list(graph.nodes)[before:])

    def _find_trained(self) -> None:
        """By the turns that a parameter has gradients of: in eager it has none where no row has chosen any of them."""
        turns: dict[int, list[int]] = {}
        for number, added in self._by_turn if torch.is_grad_enabled() else []:
            for leaf in sorted(_leaves(added.value)):
                turns.setdefault(leaf, []).append(number)
        groups: dict[tuple[int, ...], set[int]] = {}
        for leaf, numbers in turns.items():
            groups.setdefault(tuple(sorted(set(numbers))), set()).add(leaf)
        self.trained = tuple(frozenset(groups[numbers]) for numbers in sorted(groups))
        for numbers in sorted(groups):
            chosen = self._mask if len(numbers) == len(self._mask) else torch.stack([self._mask[n] for n in numbers])
            self.is_none.append((chosen != 0).sum() == 0)

    @property
    def place(self) -> str:
        return where(self._stack)

    def _refused(self, what: str) -> CaptureError:
        return error_at(self._stack, f"the loop runs over data-dependent indices, {what}; its body may only add rows",
                        "loop over all of them, range(n), with a mask for the rows of each")

    def check_is_turn(self, number: int) -> None:
        if self._chosen.loop is not self or self._turn != number:
            raise self._refused("of which a number is used when its turn is over")

    def add(self, added: _Added, continues: torch.Tensor | None) -> None:
        """`continues`: the tensor whose values and whose rows the target has besides."""
        if self._chosen.loop is not self:
            raise self._refused("whose rows are added up behind it")
        if continues is not None:
            if any(before is continues for before, _ in self._continued):
                raise self._refused("of which each adds to the same tensor")
            self._continued.append((continues, added.target))
        self._added.append(added)
        self._by_turn.append((self._turn, added))

    def is_target(self, tensor: torch.Tensor) -> bool:
        return any(_memory(added.target) == _memory(tensor) for added in self._added)

    def _put_in_place(self) -> None:
        """Of `out = out.index_add(...)` in each turn the last tensor is the sum of all rows. Since rows are added up behind the
        loop, its turns may read no such tensor otherwise."""
        targets = {_memory(added.target) for added in self._added}
        copies = {_memory(after) for before, after in self._continued}
        begun = {_memory(before) for before, _ in self._continued} - copies
        reads = [_memory(root.tensor) for added in self._added for root in roots_of(added.value) if isinstance(root, _Taken)]
        for node in self.own:
            made = _memory(node.meta.get("val"))
            if made not in targets:
                reads += [_memory(before.meta.get("val")) for before in node.all_input_nodes]
        if begun & targets or targets.intersection(reads):
            raise self._refused("that reads what rows are added to")
        last = dict(self._continued)

        def find_last(tensor: torch.Tensor) -> torch.Tensor:
            while tensor in last:
                tensor = last[tensor]
            return tensor

        self._added = [added._replace(target=find_last(added.target)) for added in self._added]

    def _add_all(self) -> None:
        classes: dict[Any, list[_Added]] = {}
        for number, added in enumerate(self._added):
            alike = number if added.choice.index is None else id(added.choice.index)
            key = alike, id(added.target), added.axis, added.alpha, form(added.value, _form_of_root)
            classes.setdefault(key, []).append(added)
        for parts in classes.values():
            parts.sort(key=lambda part: part.choice.number)
            numbers = [part.choice.number for part in parts]
            if len(set(numbers)) < len(numbers):  # added twice in a turn
                for part in parts:
                    _add_up([part])
            else:
                _add_up(parts)

    def check(self) -> None:
        """When the trace is over: that nothing but rows has come out of a turn."""
        for node in self.own:
            for user in node.users:
                stamp = user.meta.get("custom", {}).get("spmd")
                if user not in self.own and user not in self.rows and (stamp is None or stamp.phase != "backward"):
                    raise self._refused(f"of which {node.target} is used elsewhere")


def _check_of(loops: Sequence[_Loop], unmoved: frozenset[int]) -> Check:
    """That each parameter has some turn of eager's, of loops over the same ones."""
    nones = [torch.stack(found).all() for trained, *found in zip(loops[0].trained, *(loop.is_none for loop in loops))
             if not trained <= unmoved]
    is_any = len(nones) == 1
    what = "any number of a loop whose turns have parameters" if is_any else \
        "some number of a loop whose turns have parameters of their own"
    return Check((nones[0] if is_any else torch.stack(nones).any()).long(),
                 f"no row has chosen {what}: eager leaves these without a gradient, so that an optimizer leaves them alone, and here "
                 f"they had one of zeros\n{loops[0].place}\n  hint: go over all numbers, range(n), with a mask for what each has")


def _memory(value: Any) -> int | None:
    return memory_of(value) if isinstance(value, torch.Tensor) else None


def _numbers(frame: Any) -> dict[str, Any]:
    """The numbers of a function, and how much is in what it collects (a tuple; what begins in a turn has collected nothing)."""
    values = frame.f_locals.items()
    lengths = {name: ("length", len(value)) for name, value in values if type(value) in (list, dict, set)}
    return lengths | {name: value for name, value in values if type(value) in _NUMBERS}


def _leaves(value: Any) -> set[int]:
    """The ids of parameters that a value of rows is computed with."""
    found: set[int] = set()
    todo = [tensor for step in steps_of(value) for tensor in step.tensors() if tensor.requires_grad]
    seen: set[Any] = set()
    nodes = [tensor.grad_fn for tensor in todo if tensor.grad_fn is not None]
    found.update(id(tensor) for tensor in todo if tensor.grad_fn is None)
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            if hasattr(node, "variable"):
                found.add(id(node.variable))
            nodes += (before for before, _ in node.next_functions)
    return found


def _form_of_root(root: Any) -> Any:
    return root if isinstance(root, At) else (id(root.tensor), root.axes, root.new)


def _add_up(parts: Sequence[_Added]) -> None:
    """Adds rows of several parts, after the same steps, to their target."""
    choice, count = parts[0].choice, len(parts)
    for part in parts:
        part.choice.check_unwritten()
    rows, valid = math.prod(choice.shape), None
    if choice.index is None:
        valid = choice.mask.permute(sorted(range(len(choice.axes)), key=choice.axes.__getitem__)).reshape(rows) != 0
        groups = Groups(torch.where(valid, 0, 1), 1)
    else:
        index, numbers = choice.index.reshape(rows), [part.choice.number for part in parts]
        if numbers == list(range(numbers[0], numbers[0] + count)):
            valid = (index >= numbers[0]) & (index < numbers[0] + count)
            groups = Groups(torch.where(valid, index - numbers[0], count), count)
        else:
            groups = torch.full_like(index, count)
            for place, number in enumerate(numbers):
                groups = torch.where(index == number, place, groups)
            groups = Groups(groups, count)
            valid = groups.numbers < count

    def root(roots: Sequence[Any]) -> torch.Tensor:
        full = places(choice.shape, roots[0].axis) if isinstance(roots[0], At) else _taken(choice, roots[0])
        return of_chosen(valid, full, OTHERS) if full.is_floating_point() else full

    full = Together(groups, rows, root).compute([part.value for part in parts])
    add_along(parts[0].target, choice.shape, parts[0].axis, of_chosen(valid, full, 0), parts[0].alpha)


def _telling_errors(function: Callable) -> Callable:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CaptureError as error:
            told(error)
            raise
    return call


def _is_pytorchs(frame: Any) -> bool:
    """It finds out what form an operator's result has."""
    return frame.f_globals.get("__name__", "").startswith(SHAPE_FUNCTION_MODULES)


def _is_mask(index: Any) -> bool:
    return isinstance(index, FakeTensor) and index.dtype is torch.bool and index.dim() > 0


def _is_of_dims(item: Any) -> bool:
    """Whether an index is of dims alone, not of places as a list has them."""
    return item is None or item is Ellipsis or isinstance(item, (numbers.Integral, torch.SymInt, slice)) and not isinstance(item, bool)


def _without_rows(function: Any, args: tuple, kwargs: dict) -> list[Any]:
    """For a function with a backward of its own, which autograd takes for that of tensors alone."""
    if any(isinstance(leaf, Rows) and leaf.origin.length is None for leaf in pytree.tree_leaves((args, kwargs))):
        raise refused(function.__name__)
    return [leaf.as_tensor() if isinstance(leaf, Rows) else leaf for leaf in args]


def _taken(choice: _Choice, taken: _Taken) -> torch.Tensor:
    if version_of(taken.tensor) != taken.version:
        raise refused("an operator", ", of a tensor that was written meanwhile")
    tensor = of_all_rows(taken.tensor, choice.shape, taken.axes)
    for dim in taken.new:
        tensor = tensor.unsqueeze(dim)
    return tensor


class ChosenRows:
    """Follows masks whose rows are chosen, while a step is traced. `known`: what tensors are in every call, if that is known."""

    def __init__(self, known: KnownValues) -> None:
        self._known_values = known
        self.loop: _Loop | None = None
        self.error: CaptureError | None = None
        self._loops: list[_Loop] = []
        self._one_hots: list[tuple[torch.Tensor, int, torch.Tensor, int]] = []
        self._masks: list[tuple[torch.Tensor, Any, Mask]] = []  # with the version of each when it chose

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        nonzero, where, getitem = torch.Tensor.nonzero, torch.where, torch.Tensor.__getitem__
        setitem, masked_select = torch.Tensor.__setitem__, torch.masked_select
        one_hot, l1_loss = torch.nn.functional.one_hot, torch.nn.functional.l1_loss
        apply = torch.autograd.Function.apply.__func__

        script = torch.jit.script

        def plain_script(*args, **kwargs):  # whose compiler knows PyTorch's own functions; forward-mode calls it once a process
            with patches.replaced({patches.TORCH_WHERE: where, patches.TORCH_MASKED_SELECT: masked_select}):
                return script(*args, **kwargs)

        def noted_nonzero(input, *args, as_tuple=False, **kwargs):
            if not isinstance(input, FakeTensor) or args or kwargs or not input.dim() or _is_pytorchs(sys._getframe(2)):
                return nonzero(input, *args, as_tuple=as_tuple, **kwargs)
            places = self._known_places(input)
            if places is not None:
                return places if as_tuple else torch.stack(places, -1)
            if as_tuple:
                return self._chosen(input)
            return self._hits(input) if input.dim() == 1 else nonzero(input)

        def noted_where(condition, *args, **kwargs):
            if args or kwargs or not isinstance(condition, FakeTensor) or not condition.dim():
                return where(condition, *args, **kwargs)
            places = self._known_places(condition)
            return self._chosen(condition) if places is None else places

        def noted_getitem(tensor, index):
            items = index if isinstance(index, tuple) else (index,)
            if any(isinstance(item, _Turn) for item in items):
                return self._of_turn(tensor, items)
            if any(isinstance(item, Rows) for item in items) and not isinstance(tensor, Rows):
                return self._take(tensor, items)
            if any(map(_is_mask, items)) and not isinstance(tensor, Rows):
                return self._masked(tensor, items)
            return getitem(tensor, index)

        def noted_setitem(tensor, index, value):
            items = index if isinstance(index, tuple) else (index,)
            is_ours = isinstance(value, Rows) or _is_mask(items[0]) or any(isinstance(item, Rows) for item in items)
            if is_ours and not isinstance(tensor, Rows):
                self._put(tensor, items, value, setitem)
            else:
                setitem(tensor, index, value)

        def noted_masked_select(input, mask):
            if isinstance(input, Rows) or not _is_mask(mask):
                return masked_select(input, mask)
            shape = torch.broadcast_shapes(input.shape, mask.shape)
            return self._masked(input.expand(shape), (mask if mask.shape == shape else mask.expand(shape),))

        def noted_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
            if not any(isinstance(leaf, Rows) for leaf in (input, target, weight)):
                return l1_loss(input, target, size_average, reduce, reduction, weight)
            if weight is not None:  # which PyTorch does not hand on
                raise refused(l1_loss, ", with weights")
            return Rows.__torch_function__(l1_loss, (), (input, target),
                                           {"size_average": size_average, "reduce": reduce, "reduction": reduction})

        def noted_apply(function, *args, **kwargs):
            return apply(function, *_without_rows(function, args, kwargs), **kwargs)

        def noted_one_hot(tensor, num_classes=-1):
            made = one_hot(tensor, num_classes)
            if isinstance(made, FakeTensor):
                self._one_hots.append((made, version_of(made), tensor.detach(), version_of(tensor)))
            return made

        functions = {patches.TENSOR_NONZERO: noted_nonzero, patches.TORCH_NONZERO: noted_nonzero, patches.TORCH_WHERE: noted_where,
                     patches.TENSOR_GETITEM: noted_getitem, patches.TENSOR_SETITEM: noted_setitem,
                     patches.TORCH_MASKED_SELECT: noted_masked_select, patches.TENSOR_MASKED_SELECT: noted_masked_select,
                     patches.L1_LOSS: noted_l1_loss, patches.FUNCTION_APPLY: classmethod(noted_apply),
                     patches.ONE_HOT: noted_one_hot, patches.JIT_SCRIPT: plain_script}
        with telling(self._note_error), patches.replaced({
                patch: function if isinstance(function, classmethod) else _telling_errors(function)
                for patch, function in functions.items()}):
            yield

    def _note_error(self, error: CaptureError) -> None:
        self.error = self.error or error

    def check(self) -> None:
        if self.error is not None:
            raise self.error
        for loop in self._loops:
            loop.check()

    def checks(self, unmoved: frozenset[int]) -> list[Check]:
        """Of the loops over the same parameters, of microbatches, that some turn is one of eager's. `unmoved`: parameters to which
        a gradient of zeros is as good as none."""
        loops: dict[tuple[frozenset[int], ...], list[_Loop]] = {}
        for loop in self._loops:
            if any(not trained <= unmoved for trained in loop.trained):
                loops.setdefault(loop.trained, []).append(loop)
        return [_check_of(alike, unmoved) for alike in loops.values()]

    def begin_loop(self, mask: torch.Tensor) -> _Loop:
        self._loops.append(_Loop(self, mask))
        return self._loops[-1]

    def _hits(self, mask: torch.Tensor) -> Rows:
        origin = _Hits(_Choice(mask, tuple(mask.shape), (0,), _version(mask)), self, self.begin_loop(mask))
        origin.count = RowCount(False)
        return origin.begin(At(0), (1,), torch.empty(0, dtype=torch.int64, device="meta"))

    def _chosen(self, mask: torch.Tensor) -> tuple[Rows, ...]:
        choice = self._of_one_hot(mask) or _Choice(mask, tuple(mask.shape), tuple(range(mask.dim())), _version(mask))
        origin = _Origin(choice, self, self.loop)
        return tuple(origin.begin(At(axis), (), torch.empty(0, dtype=torch.int64, device="meta")) for axis in choice.axes)

    def _of_one_hot(self, mask: torch.Tensor) -> _Choice | None:
        """The class of a one_hot that a mask is a view of."""
        base = mask if base_of(mask) is None else base_of(mask)
        for made, version, index, version_of_index in self._one_hots:
            if made is not base or version_of(mask) != version or version_of(index) != version_of_index:
                continue
            axes = []
            for size, stride in zip(mask.shape, mask.stride()):
                axes += [axis for axis in range(index.dim()) if made.stride(axis) == stride and index.shape[axis] == size
                         and axis not in axes][:1]
            if len(axes) == mask.dim() == index.dim() and mask.storage_offset() < made.shape[-1]:
                return _Choice(mask, tuple(index.shape), tuple(axes), version_of(index), index, mask.storage_offset())
        return None

    def _take(self, tensor: torch.Tensor, items: tuple) -> Rows | _Led:
        if items[0] is None:
            return _Led(self._take(tensor, items[1:]))
        places = [item for item in items if isinstance(item, Rows)]
        origin, count = places[0].origin, len(places)
        is_plain = all(isinstance(place.value, At) and place.origin is origin and isinstance(origin, _Origin)
                       and place.sample.dim() == 1 for place in places) \
            and all(isinstance(item, Rows) for item in items[:count]) \
            and all(item is None or item == slice(None) or item is Ellipsis for item in items[count:]) and tensor.dim() >= count
        axes = tuple(place.value.axis for place in places) if is_plain else ()
        if not is_plain or len(set(axes)) < count or tuple(tensor.shape[:count]) != tuple(origin.choice.shape[a] for a in axes) \
                or Ellipsis in items[count:] and None in items or self.loop is not None and self.loop.is_target(tensor):
            raise refused("indexing", ", of a tensor that does not have the dims of the mask first")
        new = tuple(dim for dim, item in enumerate(items[count:], 1) if item is None)
        trailing = list(tensor.shape[count:])
        for dim in new:
            trailing.insert(dim - 1, 1)
        mask = origin.mask()
        if mask is not None:
            rows = mask.begin(tensor, axes)
            return rows[(slice(None), *items[count:])] if new else rows
        return origin.begin(_Taken(tensor, axes, new, version_of(tensor)), trailing, tensor)

    def find_mask(self, mask: torch.Tensor) -> Mask:
        """That of rows which are chosen where this tensor is true: one for masks that are known to be equal."""
        for known, version, found in self._masks:
            if version == self._known_values.version(known) and (known is mask or is_same_value(known, mask)):
                return found
        self._masks.append((mask, self._known_values.version(mask), Mask(mask, self._known_values.value(mask))))
        return self._masks[-1][2]

    def _masked(self, tensor: torch.Tensor, items: tuple) -> Rows:
        """`tensor[mask, ...]`."""
        mask, rest = items[0], items[1:]
        if not _is_mask(mask) or not all(map(_is_of_dims, rest)):
            return self._at_known_places(tensor, items)
        self._check_dims(tensor, mask)
        return self.find_mask(mask).begin(tensor[(*[slice(None)] * mask.dim(), *rest)] if rest else tensor)

    def _known_places(self, mask: torch.Tensor) -> tuple[torch.Tensor, ...] | None:
        """Where a tensor is not zero, by dim, if that is the same in every call."""
        known = self._known_values.value(mask)
        if known is None or known.numel() > _MOST_KNOWN:
            return None
        with disable_current_modes():
            places = [place.tolist() for place in known.nonzero(as_tuple=True)]
        return tuple(torch.tensor(place, dtype=torch.int64) for place in places)

    def _at_known_places(self, tensor: torch.Tensor, items: tuple) -> torch.Tensor:
        """`tensor[:, mask]` and the like."""
        found: list[Any] = []
        for item in items:
            places = self._known_places(item) if _is_mask(item) else (item,)
            if places is None:
                raise depends_on_values(user_stack()[0], "indexing by a mask that is not the first index", None)
            found += places
        return tensor[tuple(found)]

    def _put(self, tensor: torch.Tensor, items: tuple, value: Any, setitem: Callable) -> None:
        first, rest = items[0], items[1:]
        if not _is_mask(first) and not any(isinstance(item, Rows) for item in items):
            if value.origin.length is None:
                raise refused("writing", ", into places that are others'")
            setitem(tensor, items, value.as_tensor())
            return
        if _is_mask(first):
            self._check_dims(tensor, first)
            mask, count = self.find_mask(first), first.dim()
        else:
            chosen = [item for item in items if isinstance(item, Rows)]
            count = len(chosen)
            rest = items[count:]
            is_plain = all(isinstance(rows, Rows) and isinstance(rows.origin, _Origin) and rows.value == At(axis)
                           and rows.sample.dim() == 1 and rows.origin is chosen[0].origin for axis, rows in enumerate(items[:count]))
            mask = chosen[0].origin.mask() if is_plain else None
            if mask is None or tuple(tensor.shape[:count]) != mask.shape:
                raise refused("writing")
        if not all(map(_is_of_dims, rest)):
            raise refused("writing", ", at other places than theirs")
        if isinstance(value, Rows) and (value.tensor is not None or value.origin is not mask and value.origin.length is not None):
            value = value.as_tensor()
        mask.put(tensor[(*[slice(None)] * count, *rest)] if rest else tensor, value)

    def _check_dims(self, tensor: torch.Tensor, mask: torch.Tensor) -> None:
        for dim in range(mask.dim()):
            if dim >= tensor.dim() or tensor.shape[dim] != mask.shape[dim]:
                raise IndexError(f"The shape of the mask {list(mask.shape)} at index {dim} does not match the shape of the indexed "
                                 f"tensor {list(tensor.shape)} at index {dim}")

    def _of_turn(self, tensor: torch.Tensor, items: tuple) -> torch.Tensor:
        """Of a number that the tensor does not have no row is, for eager would raise."""
        number = int(items[0])
        if len(items) > 1 or isinstance(tensor, Rows) or not isinstance(items[0], _Turn):
            raise refused("indexing", ", by the number of a turn and more")
        found = tensor.select(0, min(number, tensor.shape[0] - 1))
        return found.unsqueeze(0) if items[0].dims else found
