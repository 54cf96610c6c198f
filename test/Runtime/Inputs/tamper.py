#!/usr/bin/env python3
"""Copies an artifact and damages the copy, for tests of bad input.

    tamper.py FROM TO json FILE /pointer VALUE     sets a value (JSON) in a file
    tamper.py FROM TO truncate FILE BYTES          cuts a file, or makes it longer
    tamper.py FROM TO remove FILE
    tamper.py FROM TO tensor FILE NAME INDEX NUMBER    changes an element, with +NUMBER by that much
    tamper.py FROM TO drop FILE NAME               drops a tensor
    tamper.py FROM TO cast FILE NAME DTYPE         changes the dtype in the header
"""
import json
import os
import shutil
import struct
import sys

FORMATS = {"F32": "<f", "F64": "<d", "I64": "<q"}


def edit_json(path, pointer, value):
    with open(path) as file:
        root = json.load(file)
    *parents, last = pointer.lstrip("/").split("/")
    node = root
    for key in parents:
        node = node[int(key)] if isinstance(node, list) else node[key]
    node[int(last) if isinstance(node, list) else last] = json.loads(value)
    with open(path, "w") as file:
        json.dump(root, file)


def edit_tensors(path, edit):
    """Calls edit(header, data), which may change both."""
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), bytearray(raw[8 + size:])
    edit(header, data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def set_element(header, data, name, index, number):
    entry = header[name]
    form = FORMATS[entry["dtype"]]
    kind = int if form == "<q" else float
    at = entry["data_offsets"][0] + struct.calcsize(form) * int(index)
    before = struct.unpack_from(form, data, at)[0] if number.startswith("+") else 0
    struct.pack_into(form, data, at, before + kind(number))


def drop_tensor(header, data, name):
    """With its bytes: what comes after moves up."""
    begin, end = header.pop(name)["data_offsets"]
    del data[begin:end]
    for entry in header.values():
        if "data_offsets" in entry and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset - (end - begin) for offset in entry["data_offsets"]]


def main():
    source, target, action, name, *rest = sys.argv[1:]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    path = os.path.join(target, name)
    if action == "json":
        edit_json(path, *rest)
    elif action == "truncate":
        os.truncate(path, int(rest[0]))
    elif action == "remove":
        os.remove(path)
    elif action == "tensor":
        edit_tensors(path, lambda header, data: set_element(header, data, *rest))
    elif action == "drop":
        edit_tensors(path, lambda header, data: drop_tensor(header, data, *rest))
    elif action == "cast":
        edit_tensors(path, lambda header, data: header[rest[0]].update(dtype=rest[1]))
    else:
        sys.exit(f"unknown action {action}")


if __name__ == "__main__":
    main()
