"""check_layers.py [--print] ROOT DOCUMENT: the includes and imports below ROOT against the tables of "Layers" in DOCUMENT.

A row of the first table is a folder and the folders whose headers it may include, beside its own; a folder of
include/spmd and its namesake in lib are one. The first row is the base, and says which files belong to it, wherever
they lie. A row of the second table is a module of Python, a package, a room inside a package (capture.ops), or some of
them together, and what it may import. A module belongs to the row with the longest matching prefix. A row may name rows
above it only, so that nothing goes round in a circle, and each arrow in it must be there, so that rows do not outlive
what they allow. Modules of one row must be free of circles, too. Imports below TYPE_CHECKING count.

--print: prints the second table as the imports require it, with the rows of DOCUMENT in topological order.
"""
from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

SOURCES = ("*.h", "*.cpp", "*.c")


def folder_of(path: str, base: set[str]) -> str:
    """The row of a file: "Import", "Runtime/Core", "dialects/Aten", "tools". Files of the base are named without what
    they end with, as "Runtime/Core/DType" is."""
    parts = path.split("/")
    if parts[:2] == ["include", "spmd"]:
        parts = ["lib", *parts[2:]]
    if "/".join(parts[1:]).rsplit(".")[0] in base:
        return "base"
    if parts[0] == "tools":
        return "tools"
    if parts[0] == "dialects":
        return "/".join(parts[:2])
    depth = 3 if parts[1] in ("Transforms", "Conversion", "Runtime") and len(parts) > 3 else 2
    return "/".join(parts[1:depth]).removesuffix(".h")


def resolve(root: Path, file: Path, name: str) -> str | None:
    """The path of what `file` includes as `name`; nothing for what is not ours. A generated file is its folder's."""
    places = [file.parent, root, root / "include", *(p for p in file.parents if root / "lib" in p.parents)]
    for place in places:
        if (place / name).is_file():
            return (place / name).resolve().relative_to(root).as_posix()
    if name.endswith(".inc"):
        return f"include/{name}" if name.startswith("spmd/") else name
    return None


def included(root: Path, base: set[str]) -> dict[tuple[str, str], str]:
    """Each arrow from folder to folder, and the first line that makes it."""
    arrows: dict[tuple[str, str], str] = {}
    for top in ("dialects", "include/spmd", "lib", "tools"):
        for file in sorted(f for pattern in SOURCES for f in (root / top).rglob(pattern)):
            here = folder_of(file.relative_to(root).as_posix(), base)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if match := re.match(r'#include "([^"]+)"', line):
                    path = resolve(root, file, match[1])
                    if path and (there := folder_of(path, base)) != here:
                        arrows.setdefault((here, there), f"{file.relative_to(root)}:{number}: includes {match[1]}")
    return arrows


def modules_below(root: Path) -> dict[str, Path]:
    """The files of the package spmd by the names of their modules: "capture.trace", "units.__init__"."""
    package = root / "python-bindings/spmd"
    return {".".join(f.relative_to(package).with_suffix("").parts): f for f in sorted(package.rglob("*.py"))}


def imported(root: Path) -> dict[tuple[str, str], str]:
    """Each arrow from module to module of the package spmd, and the line that makes it."""
    modules = modules_below(root)
    arrows: dict[tuple[str, str], str] = {}

    def module_of(name: str) -> str | None:
        return name if name in modules else f"{name}.__init__" if f"{name}.__init__" in modules else None

    def visit(node: ast.AST, here: str, inside: list[str]) -> None:
        for child in ast.iter_child_nodes(node):
            targets: list[str] = []
            if isinstance(child, ast.ImportFrom) and child.level:
                base = inside[:len(inside) - (child.level - 1)]
                name = ".".join([*base, *([child.module] if child.module else [])])
                # `from . import native` names a module, `from .native import f` one of its members.
                targets = [".".join(filter(None, [name, alias.name])) for alias in child.names]
                targets = [t if module_of(t) else name or "__init__" for t in targets]
            elif isinstance(child, ast.ImportFrom) and (child.module or "").split(".")[0] == "spmd":
                name = child.module.partition(".")[2]
                targets = [t if module_of(t) else name or "__init__"
                           for t in (".".join(filter(None, [name, alias.name])) for alias in child.names)]
            elif isinstance(child, ast.Import):
                targets = [alias.name.partition(".")[2] or "__init__" for alias in child.names
                           if alias.name.split(".")[0] == "spmd"]
            for target in targets:
                there = module_of(target)
                if there and there != here:
                    place = f"{modules[here].relative_to(root)}:{child.lineno}"
                    arrows.setdefault((here, there), f"{place}: imports {there}")
            visit(child, here, inside)

    for name, file in modules.items():
        visit(ast.parse(file.read_text()), name, name.split(".")[:-1])
    return arrows


def find_circle(arrows: dict[tuple[str, str], str]) -> list[str]:
    """The modules of one circle, in order; empty when there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> list[str]:
        if name in path:
            return [*path[path.index(name):], name]
        if name in done:
            return []
        path.append(name)
        for here, there in arrows:
            if here == name and (circle := visit(there)):
                return circle
        path.pop()
        done.add(name)
        return []

    for name in sorted({here for here, _ in arrows}):
        if circle := visit(name):
            return circle
    return []


def tables(text: str) -> list[dict[str, list[str]]]:
    """The tables of the section "Layers": what a row is called (the names in its first cell), and the rows that the
    names in its second belong to."""
    section = re.search(r"^## Layers\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert section, 'no section "Layers"'
    found: list[dict[str, list[str]]] = []
    inside = False
    for line in section[1].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            inside = False
        elif not inside:
            inside = True
            found.append({})
        elif not set(line.strip()) <= set("|-: "):
            found[-1][", ".join(re.findall(r"`([^`]+)`", cells[0]))] = re.findall(r"`([^`]+)`", cells[1])
    for table in found:
        row_of = {name: row for row in table for name in row.split(", ")}
        for row in table:
            table[row] = [row_of.get(name, name) for name in table[row]]
    return found


def compare(arrows: dict[tuple[str, str], str], table: dict[str, list[str]]) -> list[str]:
    problems = []
    rows = list(table)
    for (here, there), line in arrows.items():
        if here not in table:
            problems.append(f"{line}: the table has no row for {here}")
        elif there not in table[here]:
            problems.append(f"{line}: the row of {here} does not have {there}")
    for here, allowed in table.items():
        for there in allowed:
            if there not in rows or rows.index(there) >= rows.index(here):
                problems.append(f"docs: the row of {here} names {there}, which is no row above it")
            elif (here, there) not in arrows:
                problems.append(f"docs: the row of {here} has {there}, which nothing in it needs")
    return problems


def row_of_module(name: str, rows: dict[str, str]) -> str:
    """The row of a module: that of its longest prefix; its package where no row has one. `rows`: by the names in them."""
    parts = name.split(".")
    prefixes = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((rows[prefix] for prefix in prefixes if prefix in rows), parts[0])


def among_rows(imports: dict[tuple[str, str], str], table: dict[str, list[str]]) -> dict[tuple[str, str], str]:
    """Each arrow from row to row, and the first line that makes it."""
    rows = {name: row for row in table for name in row.split(", ")}
    arrows: dict[tuple[str, str], str] = {}
    for (here, there), line in imports.items():
        pair = row_of_module(here, rows), row_of_module(there, rows)
        if pair[0] != pair[1]:
            arrows.setdefault(pair, line)
    return arrows


def in_order(arrows: dict[tuple[str, str], str], rows: list[str]) -> list[str]:
    """The rows, each below those that it needs unless they need each other; otherwise they keep their order."""
    order: list[str] = []
    seen: set[str] = set()

    def visit(row: str) -> None:
        if row not in seen:
            seen.add(row)
            for other in rows:
                if (row, other) in arrows:
                    visit(other)
            order.append(row)

    for row in rows:
        visit(row)
    return order


def print_table(root: Path, imports: dict[tuple[str, str], str], table: dict[str, list[str]]) -> None:
    """Prints the rows as the document has them, with a row for each module that is in none."""
    rows = {name: row for row in table for name in row.split(", ")}
    present = {row_of_module(name, rows) for name in modules_below(root)}
    arrows = among_rows(imports, table)
    order = in_order(arrows, [row for row in dict.fromkeys([*table, *sorted(present)]) if row in present])
    quoted = lambda names: ", ".join(f"`{name}`" for row in names for name in row.split(", "))  # noqa: E731
    for row in order:
        needed = sorted({there for here, there in arrows if here == row}, key=order.index)
        print(f"| {quoted([row])} | {quoted(row.split(', ')[0] for row in needed) or '–'} |")


def main(root: Path, document: Path, prints: bool) -> int:
    folders, modules = tables(document.read_text())
    imports = imported(root)
    if prints:
        print_table(root, imports, modules)
        return 0
    packages = among_rows(imports, modules)
    base = set(folders.get("base", []))
    folders["base"] = []
    includes = included(root, base)
    problems = compare(includes, folders) + compare(packages, modules)
    for what, arrows in (("modules", imports), ("rows", packages)):
        if circle := find_circle(arrows):
            problems.append(f"{what} import each other: " + " -> ".join(circle))
    print(*problems, f"{len(includes)} arrows among folders, {len(imports)} among modules", sep="\n")
    return bool(problems)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--print"]
    sys.exit(main(Path(words[0]).resolve(), Path(words[1]), "--print" in sys.argv))
