"""The part of JSON Schema that docs/step-format.schema.json uses."""
from __future__ import annotations

import functools
import re
from typing import Any, Iterator

_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int,
          "number": (int, float)}
_KNOWN = {"$schema", "$defs", "title", "type", "required", "additionalProperties", "properties", "items", "prefixItems",
          "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "const", "enum", "oneOf", "pattern",
          "$ref"}


def violations(value: Any, schema: dict, root: dict, pointer: str = "") -> Iterator[str]:
    """Every way in which `value` differs from `schema`, each with its JSON pointer."""
    assert set(schema) <= _KNOWN, set(schema) - _KNOWN
    if "$ref" in schema:
        path = schema["$ref"].removeprefix("#/").split("/")
        schema = functools.reduce(lambda part, key: part[key], path, root)
    if "oneOf" in schema:
        fits = [s for s in schema["oneOf"] if not list(violations(value, s, root, pointer))]
        if len(fits) != 1:
            yield f"{pointer}: {value!r} fits {len(fits)} of {len(schema['oneOf'])} alternatives"
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield f"{pointer}: {value!r} is no {kind}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{pointer}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{pointer}: {value!r} is none of {schema['enum']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{pointer}: {value!r} is below {schema['minimum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{pointer}: {value!r} does not match {schema['pattern']}"
    for size, bound in (("Items", list), ("Properties", dict)):
        if isinstance(value, bound):
            if not schema.get(f"min{size}", 0) <= len(value) <= schema.get(f"max{size}", len(value)):
                yield f"{pointer}: {len(value)} entries"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{pointer}: no {key!r}"
        for key, item in value.items():
            if key in schema.get("properties", {}):
                yield from violations(item, schema["properties"][key], root, f"{pointer}/{key}")
            elif schema.get("additionalProperties") is False:
                yield f"{pointer}: unknown key {key!r}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            prefix = schema.get("prefixItems", [])
            part = prefix[i] if i < len(prefix) else schema.get("items")
            if part is not None:
                yield from violations(item, part, root, f"{pointer}/{i}")
