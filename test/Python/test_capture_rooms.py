"""Rules of capture's rooms: one mode of each kind, few parameters, and a trace that can be read at once."""
from __future__ import annotations

import ast
from pathlib import Path

CAPTURE = Path(__file__).parents[2] / "python-bindings" / "spmd" / "capture"
MOST_PARAMETERS = 6
# Signatures that are not ours: of operators, of methods of PyTorch, and of documented functions.
GIVEN = {"ops/composites.py", "ops/spelled_out.py", "ops/sync_batch_norm.py:forward", "ops/draws.py:_rrelu_backward",
         "ops/flex_attention.py:__call__", "ops/varlen_attention.py:_varlen_attention",
         "optimizer/adafactor.py:_update", "__init__.py:capture", "ops/custom_ops.py:register_kernel"}


def find_modes(source: str) -> list[str]:
    """The classes that derive from a mode of PyTorch."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)
            and any("Mode" in ast.unparse(base) for base in node.bases)]


def find_long_signatures(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")]
            if len(names) > MOST_PARAMETERS:
                found.append(node.name)
    return found


def sources() -> dict[str, str]:
    return {file.relative_to(CAPTURE).as_posix(): file.read_text() for file in sorted(CAPTURE.rglob("*.py"))}


def test_there_is_one_mode_of_each_kind():
    assert {name: modes for name, source in sources().items() if (modes := find_modes(source))} == {
        "observe/dispatch_mode.py": ["DispatchMode"], "observe/function_mode.py": ["FunctionMode"]}
    assert find_modes("class Draws(TorchDispatchMode): pass") == ["Draws"]


def test_functions_have_few_parameters():
    found = [f"{name}:{function}" for name, source in sources().items() if name not in GIVEN
             for function in find_long_signatures(source) if f"{name}:{function}" not in GIVEN]
    assert not found, f"more than {MOST_PARAMETERS} parameters: group them in a dataclass, as CaptureOptions in call.py does"
    assert find_long_signatures("class A:\n def f(self, a, b, c, d, e, f, *, g): pass") == ["f"]


def test_a_trace_can_be_read_at_once():
    assert len(sources()["trace.py"].splitlines()) < 150


def test_each_room_says_what_is_in_it():
    for room in (path for path in CAPTURE.iterdir() if path.is_dir() and path.name != "__pycache__"):
        text = (room / "README.md").read_text()
        missing = [file.name for file in room.glob("*.py") if file.name != "__init__.py" and file.name not in text]
        assert not missing, f"{room.name}/README.md does not name {', '.join(missing)}"
        assert len(text.splitlines()) <= 50
