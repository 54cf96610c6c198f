"""Reads the operands of a frame that is stopped before one of its instructions.

CPython tells an observer the frame and the offset of the instruction, but not the operands. They lie in the frame's memory,
whose layout follows the version of CPython (Include/internal/pycore_frame.h). How many there are, the frame says in 3.11; later versions
keep it in a register, and it follows from the code. `is_layout_known()` is the first check, observer.py's probe() the second: another
layout is an error of the capture and never a wrong operand.
"""
from __future__ import annotations

import ctypes
import dis
import sys
import types
from typing import Any, NamedTuple

_POINTER, _INT, _OBJECT = ctypes.c_ssize_t, ctypes.c_int, ctypes.py_object
_SIZE = ctypes.sizeof(_POINTER)
VERSION = sys.version_info[:2]


class _Layout(NamedTuple):
    """Offsets in bytes: of the interpreter's frame in a frame object; in the former, of the function, of the first slot, and of the number
    of used slots (None: it is not there)."""

    frame: int
    function: int
    slots: int
    used: int | None


_LAYOUTS = {(3, 11): _Layout(24, 0, 72, 64), (3, 12): _Layout(24, 16, 72, None), (3, 13): _Layout(24, 16, 72, None)}
_LAYOUT = _LAYOUTS.get(VERSION, _Layout(0, 0, 0, None))
_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT",
         "INTERPRETER_EXIT"}
_used: dict[int, tuple[types.CodeType, dict[int, int]]] = {}  # slots in use before each instruction, by the id of the code


def is_layout_known() -> bool:
    """Whether this module knows the frames of this Python."""
    return VERSION in _LAYOUTS and sys.implementation.name == "cpython"


def operands(frame: types.FrameType, count: int) -> list[Any]:
    """The last `count` operands, the top of the stack last; None for an empty slot, which calls have."""
    end = _end(frame)
    found = []
    for slot in range(end - _SIZE * count, end, _SIZE):
        found.append(_OBJECT.from_address(slot).value if _POINTER.from_address(slot).value else None)
    return found


def top(frame: types.FrameType) -> Any:
    """The operand on top of the stack."""
    return _OBJECT.from_address(_end(frame) - _SIZE).value


def function_of(frame: types.FrameType) -> types.FunctionType:
    """The function that the frame runs."""
    return _OBJECT.from_address(_POINTER.from_address(id(frame) + _LAYOUT.frame).value + _LAYOUT.function).value


def function_id(frame: types.FrameType) -> int:
    """The id of that function."""
    return _POINTER.from_address(_POINTER.from_address(id(frame) + _LAYOUT.frame).value + _LAYOUT.function).value


def _end(frame: types.FrameType) -> int:
    """The address behind the top of the stack."""
    inner = _POINTER.from_address(id(frame) + _LAYOUT.frame).value
    if _LAYOUT.used is not None:
        return inner + _LAYOUT.slots + _SIZE * _INT.from_address(inner + _LAYOUT.used).value
    code = frame.f_code
    known = _used.get(id(code))
    if known is None:
        known = _used[id(code)] = (code, used_slots(code))
    return inner + _LAYOUT.slots + _SIZE * known[1][frame.f_lasti]


def used_slots(code: types.CodeType) -> dict[int, int]:
    """How many slots are in use before each instruction of some code that can be reached: variables, then operands."""
    instructions = list(dis.get_instructions(code))
    numbers = {instruction.offset: number for number, instruction in enumerate(instructions)}
    variables = len(code.co_varnames) + len(set(code.co_cellvars) - set(code.co_varnames)) + len(code.co_freevars)
    found: dict[int, int] = {}
    todo = [(0, variables)]
    todo += [(entry.target, variables + entry.depth + 1 + entry.lasti) for entry in dis.Bytecode(code).exception_entries]
    while todo:
        offset, used = todo.pop()
        number = numbers[offset]
        while number < len(instructions) and instructions[number].offset not in found:
            instruction = instructions[number]
            found[instruction.offset] = used
            argument = instruction.arg if instruction.opcode >= dis.HAVE_ARGUMENT else None
            if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
                todo.append((instruction.argval, used + dis.stack_effect(instruction.opcode, argument, jump=True)))
            if instruction.opname in _ENDS:
                break
            # A generator that goes on has a value on its stack, of which stack_effect() of 3.12 does not know.
            used += 1 if instruction.opname == "RETURN_GENERATOR" else dis.stack_effect(instruction.opcode, argument, jump=False)
            number += 1
    return found
