"""Which instructions read or write, and what is noted before each of them."""
from __future__ import annotations

import dis
import types
from typing import Any, Callable, Protocol

from . import calls, entries
from .attributes import label_of, read_attribute, read_global
from .operand_stack import VERSION, function_of, operands, top
from .places import READERS, Kind, Read
from .records import Records
from .scope import is_called_to_trace, is_of_python
from .values import CONTAINERS, LEAVES, TRACED
from .writes import place_of


class Observes(Protocol):
    """What handlers need of an observer. `seen`: attributes that were read, by the ids of objects."""

    records: Records
    seen: set[tuple[int, str]]

    def call(self, frame: types.FrameType, function: Any, args: list[Any]) -> None:
        """The code of a frame calls a function."""


Handler = Callable[[Observes, types.FrameType, Any], None]
_SKIPPED = (*TRACED, *LEAVES, types.FunctionType, types.MethodType)


# What each instruction reads and writes. `argument` is the instruction's.

def _load_attribute(observer: Observes, frame: types.FrameType, name: str) -> None:
    value = top(frame)
    if (id(value), name) not in observer.seen and not isinstance(value, TRACED):
        observer.seen.add((id(value), name))
        read_attribute(observer.records, value, name)


def _load_global(observer: Observes, frame: types.FrameType, name: str) -> None:
    read_global(observer.records, frame.f_globals, name)


def _cell_of(frame: types.FrameType, name: str) -> types.CellType:
    """The cell of a free variable of the code that a frame runs."""
    return function_of(frame).__closure__[frame.f_code.co_freevars.index(name)]


def _load_free(observer: Observes, frame: types.FrameType, name: str) -> None:
    cell = _cell_of(frame, name)
    observer.records.read(cell, Read(Kind.CELL, name), READERS[Kind.CELL](cell, None), lambda: name)


def _load_item(observer: Observes, frame: types.FrameType, _: Any) -> None:
    container, key = operands(frame, 2)
    entries.read_item(observer.records, container, key)


def _contains(observer: Observes, frame: types.FrameType, _: Any) -> None:
    key, container = operands(frame, 2)
    entries.read_contained(observer.records, container, key)


def _use(observer: Observes, frame: types.FrameType, count: int) -> None:
    """Everything in the last `count` operands is read."""
    for value in (top(frame),) if count == 1 else operands(frame, count):
        if not isinstance(value, _SKIPPED):
            entries.read_all(observer.records, value)
            if count == 1:
                observer.records.note_taken(value)


def _test(observer: Observes, frame: types.FrameType, _: Any) -> None:
    value = top(frame)
    if isinstance(value, CONTAINERS) and observer.records.is_known(value):
        entries.read_size(observer.records, value)


def _store_attribute(observer: Observes, frame: types.FrameType, name: str) -> None:
    owner = top(frame)
    if not isinstance(owner, TRACED):
        entries.write_attribute(observer.records, owner, name)


def _store_item(observer: Observes, frame: types.FrameType, _: Any) -> None:
    container, key = operands(frame, 2)
    entries.write_item(observer.records, container, key)


def _store_global(observer: Observes, frame: types.FrameType, name: str) -> None:
    observer.records.write_place(frame.f_globals, Read(Kind.GLOBAL, name), lambda: "")


def _store_free(observer: Observes, frame: types.FrameType, name: str) -> None:
    if name in frame.f_code.co_freevars:
        observer.records.write_place(_cell_of(frame, name), Read(Kind.CELL, name), lambda: name)


def _add_attribute(observer: Observes, frame: types.FrameType, what: tuple[str, Any]) -> None:
    owner, (name, addend) = top(frame), what
    place = None if isinstance(owner, TRACED) else place_of(owner, name)
    if place is not None and type(READERS[place[1]](place[0], name)) in (int, float):
        observer.records.write_place(place[0], Read(place[1], name), lambda: label_of(owner), addend)
    else:
        _load_attribute(observer, frame, name)
        _store_attribute(observer, frame, name)


def _add_global(observer: Observes, frame: types.FrameType, what: tuple[str, Any]) -> None:
    name, addend = what
    if type(frame.f_globals.get(name)) in (int, float):
        observer.records.write_place(frame.f_globals, Read(Kind.GLOBAL, name), lambda: "", addend)
    else:
        _load_global(observer, frame, name)
        _store_global(observer, frame, name)


def _add_free(observer: Observes, frame: types.FrameType, what: tuple[str, Any]) -> None:
    name, addend = what
    if name not in frame.f_code.co_freevars:
        return
    cell = _cell_of(frame, name)
    if type(READERS[Kind.CELL](cell, None)) in (int, float):
        observer.records.write_place(cell, Read(Kind.CELL, name), lambda: name, addend)
    else:
        _load_free(observer, frame, name)
        _store_free(observer, frame, name)


def _call(observer: Observes, frame: types.FrameType, count: int) -> None:
    """Of 3.11 and 3.12: nothing and the function, or a method and its object; of later versions in the other order."""
    first, second, *rest = operands(frame, count + 2)
    if VERSION >= (3, 13):
        observer.call(frame, first, rest if second is None else [second, *rest])
    else:
        observer.call(frame, *((second, rest) if first is None else (first, [second, *rest])))


def _call_with_keywords(observer: Observes, frame: types.FrameType, count: int) -> None:
    first, second, *rest, _ = operands(frame, count + 3)
    observer.call(frame, first, rest if second is None else [second, *rest])


def _make_function(observer: Observes, frame: types.FrameType, flags: int) -> None:
    """The variables of the frame's own code that a function closes over are made by the step."""
    if flags & 8:
        closure, code = operands(frame, 2)
        own = frame.f_code.co_cellvars
        observer.records.fresh.update(id(cell) for cell, name in zip(closure, code.co_freevars) if name in own)


def _set_function_attribute(observer: Observes, frame: types.FrameType, flags: int) -> None:
    if flags & 8:
        closure, function = operands(frame, 2)
        own = frame.f_code.co_cellvars
        observer.records.fresh.update(id(cell) for cell, name in zip(closure, function.__code__.co_freevars) if name in own)


def _load_super_attribute(observer: Observes, frame: types.FrameType, name: str) -> None:
    kind, cls, owner = operands(frame, 3)
    if kind is super:
        read_attribute(observer.records, super(cls, owner), name)


def _match_class(observer: Observes, frame: types.FrameType, count: int) -> None:
    value, cls, names = operands(frame, 3)
    if isinstance(cls, type) and not isinstance(value, TRACED):
        calls.match_class(observer.records, value, cls, names, count)


def _load_slice(observer: Observes, frame: types.FrameType, _: Any) -> None:
    entries.read_all(observer.records, operands(frame, 3)[0])


def _store_slice(observer: Observes, frame: types.FrameType, _: Any) -> None:
    container, begin, end = operands(frame, 3)
    entries.write_item(observer.records, container, slice(begin, end))


def _call_unpacked(observer: Observes, frame: types.FrameType, flags: int) -> None:
    if VERSION >= (3, 13):
        function, _, args, *rest = operands(frame, 3 + (flags & 1))
    else:
        function, args, *rest = operands(frame, 2 + (flags & 1))
    for value in (args, *rest):
        if isinstance(value, CONTAINERS) and observer.records.is_known(value):
            observer.records.read_contents(value)
    if isinstance(args, tuple):
        observer.call(frame, function, [*args, *(rest[0].values() if rest and isinstance(rest[0], dict) else ())])


_HANDLERS: dict[str, Handler] = {
    "LOAD_ATTR": _load_attribute, "LOAD_METHOD": _load_attribute, "IMPORT_FROM": _load_attribute,
    "LOAD_GLOBAL": _load_global,
    "BINARY_SUBSCR": _load_item, "CONTAINS_OP": _contains,
    "STORE_ATTR": _store_attribute, "DELETE_ATTR": _store_attribute,
    "STORE_SUBSCR": _store_item, "DELETE_SUBSCR": _store_item,
    "STORE_GLOBAL": _store_global, "DELETE_GLOBAL": _store_global, "STORE_DEREF": _store_free, "DELETE_DEREF": _store_free,
    "PRECALL" if VERSION <= (3, 11) else "CALL": _call, "CALL_KW": _call_with_keywords, "CALL_FUNCTION_EX": _call_unpacked,
    "MAKE_FUNCTION": _make_function, "SET_FUNCTION_ATTRIBUTE": _set_function_attribute,
    "LOAD_SUPER_ATTR": _load_super_attribute, "BINARY_SLICE": _load_slice, "STORE_SLICE": _store_slice,
    "UNARY_NOT": _test, "MATCH_CLASS": _match_class,
    **dict.fromkeys(("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
                     "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "TO_BOOL"), _test),
}
_USES = {"GET_ITER": 1, "GET_LEN": 1, "UNPACK_SEQUENCE": 1, "UNPACK_EX": 1, "LIST_EXTEND": 1, "SET_UPDATE": 1, "DICT_UPDATE": 1, "FORMAT_SIMPLE": 1, "FORMAT_WITH_SPEC": 2, "CONVERT_VALUE": 1,
         "DICT_MERGE": 1, "COMPARE_OP": 2, "BINARY_OP": 2, "FORMAT_VALUE": 1, "FOR_ITER": 1, "SEND": 1, "GET_YIELD_FROM_ITER": 1,
         "MATCH_MAPPING": 1, "MATCH_SEQUENCE": 1, "MATCH_KEYS": 2, "BEFORE_WITH": 1}


_SUMS = {("LOAD_ATTR", "STORE_ATTR"): _add_attribute, ("LOAD_GLOBAL", "STORE_GLOBAL"): _add_global, ("LOAD_DEREF", "STORE_DEREF"): _add_free}


def _sums(code: types.CodeType) -> dict[int, tuple[Handler, Any] | None]:
    """The first and the last instruction of `owner.name += constant`, by offset, which adds to a number and does nothing else with it."""
    found: dict[int, tuple[Handler, Any] | None] = {}
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG", "NOP", "SWAP")]
    for load, constant, add, store in zip(instructions, instructions[1:], instructions[2:], instructions[3:]):
        handler = _SUMS.get((load.opname, store.opname))
        if handler and load.argval == store.argval and constant.opname == "LOAD_CONST" and type(constant.argval) in (int, float) \
                and add.argrepr in ("+=", "-="):
            found[load.offset] = (handler, (load.argval, constant.argval if add.argrepr == "+=" else -constant.argval))
            found[store.offset] = None
    return found


_OF_NUMBERS = ("MATCH_CLASS", "MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX")


def _unless_called_by_us(found: tuple[Handler, Any]) -> tuple[Handler, Any]:
    """The handler of an instruction of Python's library, which the compiler uses as well."""
    def handle(observer: Observes, frame: types.FrameType, argument: Any) -> None:
        if not is_called_to_trace(frame):
            found[0](observer, frame, argument)
    return handle, found[1]


def table_of(code: types.CodeType) -> dict[int, tuple[Handler, Any]]:
    """The handlers of the instructions of some code, by offset. An instruction with a long argument has its event at the first part."""
    table: dict[int, tuple[Handler, Any]] = {}
    begin, sums = None, _sums(code)
    checked = _unless_called_by_us if is_of_python(code.co_filename) else lambda found: found
    for instruction in dis.get_instructions(code):
        name = instruction.opname
        if name == "EXTENDED_ARG":
            begin = instruction.offset if begin is None else begin
            continue
        found: tuple[Handler, Any] | None = None
        if instruction.offset in sums:
            found = sums[instruction.offset]
        elif name in _USES:
            found = (_use, _USES[name])
        elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            found = (_load_free, instruction.argval) if instruction.argval in code.co_freevars else None
        elif name in _HANDLERS:
            found = (_HANDLERS[name], (instruction.arg or 0) if name in _OF_NUMBERS else instruction.argval)
        if found is not None:
            found = table[instruction.offset] = checked(found)
            if begin is not None:
                table[begin] = found
        begin = None
    return table
