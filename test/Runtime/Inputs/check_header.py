"""check_header.py HEADER: what python-bindings/spmd declares is what the C header says: codes by number, members of
structs and parameters of functions by type and order (ctypes does not look), and the element types, which dtypes.def
beside the header has, by number, name, size and kind in Python's table."""
from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from spmd import dtypes, native
from spmd.arrays import NUMPY

SCALARS = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double}
STRUCTS = {"spmd_status": native.Status, "spmd_launch": native.Launch, "spmd_options": native.Options,
           "spmd_tensor": native.Tensor, "spmd_place": native.Place, "spmd_tensor_info": native.TensorInfo,
           "spmd_collective_info": native.CollectiveInfo, "spmd_command_info": native.CommandInfo,
           "spmd_shard_info": native.ShardInfo, "spmd_file": native.File, "spmd_save_options": native.SaveOptions}


def type_of(text: str) -> Any:
    """The type of ctypes for one of C; void *: an address of which Python knows no more, as of opaque structs."""
    words = text.replace("const", " ").replace("*", " * ").split()
    stars = words.count("*")
    name = words[0]
    if name == "char" and stars:
        kind: Any = ctypes.c_char_p
        stars -= 1
    elif name in SCALARS or name in STRUCTS:
        kind = SCALARS.get(name) or STRUCTS[name]
    elif stars:  # void *, spmd_trainer *
        kind = ctypes.c_void_p
        stars -= 1
    else:
        assert name == "void", text
        return None
    for _ in range(stars):
        kind = ctypes.POINTER(kind)
    return kind


def split(declaration: str) -> tuple[Any, str]:
    """`const char *name`, `char name[1024]`, or a parameter without a name."""
    if match := re.fullmatch(r"char (\w+)\[(\d+)\]", declaration):
        return ctypes.c_char * int(match[2]), match[1]
    match = re.fullmatch(r"(.*?[\s*])(\w+)", declaration)
    return type_of(match[1]), match[2]


def main(path: Path) -> int:
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    problems = []

    def compare(what: str, header: Any, python: Any) -> None:
        if header != python:
            problems.append(f"{what}: the header has {header}, Python {python}")

    numbers = {name: int(value) for name, value in re.findall(r"\b(SPMD_\w+) = (\d+)", text)}
    for name in ("OK", "BAD_INPUT", "FAILED", "OTHER_STATE"):
        compare(name, numbers.pop(f"SPMD_{name}"), getattr(native, name))
    compare("batches", [numbers.pop("SPMD_BATCH_OF_PROCESS"), numbers.pop("SPMD_BATCH_OF_JOB")], [0, 1])
    compare("numbers besides", numbers, {})
    rows = re.findall(r'^SPMD_DTYPE\(\w+, \w+, (\d+), (\d+), ([01]), "(\w+)", "\w+"\)',
                      path.with_name("dtypes.def").read_text(), re.M)
    compare("element types", {name: int(number) for number, _, _, name in rows},
            {name: number for number, name in enumerate(dtypes.NAMES)})
    sizes = {name: int(size) for _, size, _, name in rows}
    compare("their sizes", sizes, {name: np.dtype(kind).itemsize for name, kind in NUMPY.items()})
    compare("floating types", [name for _, _, floating, name in rows if floating == "1"], list(dtypes.FLOATING))
    if importlib.util.find_spec("torch"):
        from spmd import models

        compare("their sizes in PyTorch", sizes, {name: kind.itemsize for kind, name in models.DTYPES.items()})

    structs = dict(re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, re.S))
    for name, python in STRUCTS.items():
        members = []
        for line in filter(None, (" ".join(part.split()) for part in structs[name].split(";"))):
            first, *more = line.split(", ")
            kind, member = split(first)
            members += [(member, kind), *((other, kind) for other in more)]
        # Bytes may be said to be an address: ctypes then keeps the object that has them.
        fields = [(field, ctypes.c_void_p if (field, ctypes.c_void_p) in members and kind is ctypes.c_char_p else kind)
                  for field, kind in python._fields_]
        compare(name, members, fields)

    functions = {name: (result, parameters) for result, name, parameters in
                 re.findall(r"SPMD_API\s+([\w\s]+?[\s*]+)(spmd_\w+)\(([^)]*)\);", text)}
    for name, (result, arguments) in native._FUNCTIONS.items():
        if name not in functions:
            problems.append(f"{name}: the header does not have it")
            continue
        parameters = [" ".join(part.split()) for part in functions[name][1].split(",")]
        compare(f"what {name} returns", type_of(functions[name][0]), result)
        compare(f"parameters of {name}", [split(part)[0] for part in parameters if part != "void"], arguments)
    print(*problems, f"{len(STRUCTS)} structs, {len(native._FUNCTIONS)} functions", sep="\n")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
