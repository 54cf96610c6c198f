"""Runs spmd-compile, once for each content."""
from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, Protocol, Sequence

from .diagnostics import Compilation, Diagnostic, read_diagnostics, write_diagnostics
from .passes import Pass, run_passes
from .remarks import CompilerWarning, remark
from .tools import ToolError, find_runtime, find_tool


class Package(Protocol):
    """A step package, as far as compiling needs it; capture/write/package.py has StepPackage.

    Attributes:
      step: the content of step.json.
      first_step: the package of a first call that differs from all later calls, or None.
    """

    step: dict[str, Any]
    first_step: Any

    def digest(self) -> str:
        """Equal for packages of equal graphs."""

    def save(self, path: Path, weights: bool = True, reads: bool = True) -> Path:
        """Writes the package as a folder; not `weights`: without values; not `reads`: without what Python has read."""


class CompileError(RuntimeError):
    """spmd-compile refused the step: the message begins with its errors, and ends with the command.

    Attributes: `command`, its words; `exit_code` (negative: the number of the signal that ended it); `diagnostics`,
    what it said, as objects; `said`, all that it printed on standard error.
    """

    def __init__(self, message: str, command: Sequence[str] = (), exit_code: int = 0, said: str = "",
                 diagnostics: Sequence[Diagnostic] = ()):
        super().__init__(message)
        self.command, self.exit_code, self.said = list(command), exit_code, said
        self.diagnostics = list(diagnostics)


_OTHER_LAYOUT = "the first step lays out the state otherwise"  # of lib/Pipelines/Packaging.cpp
_REFUSED, _FAILED = 2, 3  # exit codes: for what was given, and for what is none of the user's doing


def run_compiler(command: Sequence[str], step: Path) -> Compilation:
    """Runs spmd-compile on the package `step`.

    Raises:
      CompileError: when the compiler died; what a report of it needs is kept.
    """
    # A file, not a pipe: nobody has to read while it is written, and what a compiler says before it dies is there.
    with tempfile.TemporaryFile() as said:
        words = [*command, "--diagnostics=json", f"--diagnostics-fd={said.fileno()}"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", pass_fds=[said.fileno()])
        said.seek(0)
        lines = said.read().decode(errors="replace")
    compilation = Compilation(list(command), done.returncode, done.stdout, done.stderr, read_diagnostics(lines))
    if compilation.exit_code not in (0, _REFUSED):
        if _OTHER_LAYOUT in compilation.said:
            raise _error("the optimizer's first step and its later ones keep the state in different layouts\n  hint: take one step in "
                         "eager PyTorch before the first compiled one, or compile for one rank", compilation)
        raise _died(compilation, step)
    return compilation


def refusal(compilation: Compilation) -> CompileError:
    """The errors among a compiler's diagnostics, then the command."""
    return _error(f"{_errors(compilation) or compilation.said.strip() or 'spmd-compile says nothing'}\n"
                  f"  exit code {compilation.exit_code} of: {shlex.join(compilation.command)}", compilation)


def _errors(compilation: Compilation) -> str:
    return "\n".join(d.rendered for d in compilation.diagnostics if d.severity == "error")


def _error(message: str, compilation: Compilation) -> CompileError:
    return CompileError(message, compilation.command, compilation.exit_code, compilation.said.strip(),
                        compilation.diagnostics)


def _died(compilation: Compilation, step: Path) -> CompileError:
    """Keeps the package without weights, the command and the output where the user finds them."""
    code, said, command = compilation.exit_code, compilation.said, compilation.command
    why = "a failure that is none of the step's" if code == _FAILED else "a mistake of the compiler, not of the step"
    by_signal = -code in set(signal.Signals)
    how = f"was ended by {signal.Signals(-code).name}" if by_signal else f"ended with exit code {code}"
    if code == -signal.SIGKILL:
        how += ", which is how a machine ends a process when memory is short"
    content = "\0".join([*command[1:2], (step / "step.json").read_text(), said])
    report = cache_folder() / "reports" / f"{step.stem}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
    report.mkdir(parents=True, exist_ok=True)
    shutil.copytree(step, report / step.name, dirs_exist_ok=True)
    if (step.parent / "plan.json").is_file():
        shutil.copy(step.parent / "plan.json", report)
    (report / "command.txt").write_text(f"{shlex.join(command)}\n{how}\n")
    (report / "output.txt").write_text(compilation.tables + said)
    errors = _errors(compilation)
    return _error(f"spmd-compile {how}: {why}" + (f"\n{errors}" if errors else "")
                  + f"\n  to report it, send the folder {report}: it has the captured step without weights, the "
                  f"command and the output\n  command: {shlex.join(command)}", compilation)


def cache_folder() -> Path:
    """Where compiled steps are kept: $XDG_CACHE_HOME/spmd, by default ~/.cache/spmd."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spmd"


def compile_package(package: Package, options: Sequence[str], plan: dict[str, Any] | None = None,
                    tells: bool = True, passes: Sequence[Pass] = ()) -> Path:
    """The artifact of a package, compiled with `options` of spmd-compile, without weights.

    `plan` is the content of a plan file, which then decides the shard units. `passes` run on the partitioned program.

    Equal graph, equal options and the very same compiler and runtime, by their content, give the artifact that is in
    the cache. The compiler's warnings are given as CompilerWarning, also when it did not run again; not unless it `tells`.
    """
    compiler = find_tool("spmd-compile")
    program = _partition(package, [str(compiler)], list(options), plan, passes) if passes else None
    identity = json.dumps([package.digest(), list(options), os.environ.get("SPMD_CPU", ""), plan, *_identity(compiler), program,
                           [_content_of(Path(file)) for file in _plugins(options).values() if Path(file).is_file()]])
    key = hashlib.sha256(identity.encode()).hexdigest()[:32]
    artifact = cache_folder() / key / f"{package.step['name']}.spmd"
    if not artifact.is_dir():
        _compile(package, [str(compiler)], list(options), plan, artifact, program)
    for said in read_diagnostics(_said(artifact, "diagnostics.json")) if tells else ():
        if said.severity == "warning":
            remark(said.rendered.replace("warning: ", "", 1), CompilerWarning)
    return artifact


def _plugins(options: Sequence[str]) -> dict[str, str]:
    """The shared libraries that options load, by option."""
    return {word: word.split("=", 1)[1] for word in options if word.startswith(("--load-pass-plugin=", "--load-dialect-plugin="))}


def _behind_partition(word: str) -> bool | None:
    """Whether passes of --pipeline-after run when the partitioned program goes on; None of any other option."""
    if not word.startswith("--pipeline-after="):
        return None
    return word.split("=", 1)[1].split(":", 1)[0] not in ("import", "units", "partition")


def _identity(compiler: Path) -> list[str]:
    """What made an artifact, and what is to load it: the version that the compiler tells, with LLVM's, and the content
    of compiler and runtime, wherever they lie and whenever they were built."""
    try:
        runtime = _content_of(find_runtime())
    except ToolError:
        runtime = ""
    return [_version_of(compiler), _content_of(compiler), runtime]


_known: dict[tuple[Any, ...], str] = {}


def _once(what: str, file: Path, find: Callable[[], str]) -> str:
    """Remembered as long as the file is untouched."""
    stat = file.stat()
    key = (what, str(file), stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    if key not in _known:
        _known[key] = find()
    return _known[key]


def _content_of(file: Path) -> str:
    def find() -> str:
        content = hashlib.sha256()
        with open(file, "rb") as stream:
            while block := stream.read(1 << 20):
                content.update(block)
        return content.hexdigest()
    return _once("content", file, find)


def _version_of(compiler: Path) -> str:
    return _once("version", compiler,
                 lambda: subprocess.run([str(compiler), "--version"], capture_output=True, text=True).stdout)


def report_of(artifact: Path) -> str:
    """What spmd-compile printed about an artifact of the cache: units, collectives, arena."""
    return _said(artifact, "report.txt")


def plan_of(artifact: Path) -> dict[str, Any]:
    """The plan of an artifact of the cache, as spmd-compile --json writes it."""
    return json.loads(_said(artifact, "plan.json"))


def _partition(package: Package, compiler: list[str], options: list[str], plan: dict[str, Any] | None,
               passes: Sequence[Pass]) -> str:
    """The partitioned program as the passes leave it."""
    if package.first_step is not None:
        raise CompileError("the first call of this optimizer is another program than the later ones, which passes would "
                           "have to change alike\n  hint: run one eager step before the first compiled one")
    with tempfile.TemporaryDirectory(prefix="spmd.") as work:
        step, program = Path(work) / f"{package.step['name']}.step", Path(work) / "program.mlir"
        package.save(step, weights=False, reads=False)
        before = [word for word in options if not _behind_partition(word)]
        _run([*compiler, str(step), "-o", str(program), *_with_plan(before, plan, Path(work)), "--compile-to=partition"],
             step)
        return run_passes(passes, program, list(_plugins(options)))


def _compile(package: Package, compiler: list[str], options: list[str], plan: dict[str, Any] | None,
             artifact: Path, program: str | None) -> None:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".compiling.", dir=cache_folder()) as work:
        step, folder = Path(work) / f"{package.step['name']}.step", Path(work) / "result"
        package.save(step, weights=False, reads=False)
        folder.mkdir()
        source = [str(step)]
        if program is not None:
            (Path(work) / "program.mlir").write_text(program)
            source = [str(Path(work) / "program.mlir"), "--compile-from=partition", f"--libraries={step / 'libraries'}"]
            options = [word for word in options if _behind_partition(word) is not False]
        done = _run([*compiler, *source, "-o", str(folder / artifact.name), *_with_plan(options, plan, Path(work)),
                     f"--json={folder / 'plan.json'}"], step)
        (folder / "report.txt").write_text(done.tables)
        (folder / "diagnostics.json").write_text(write_diagnostics(done.diagnostics))
        try:
            folder.rename(artifact.parent)
        except OSError:
            if not artifact.is_dir():  # else another process was first, with the same content
                raise


def _with_plan(options: list[str], plan: dict[str, Any] | None, folder: Path) -> list[str]:
    if plan is None:
        return options
    (folder / "plan.json").write_text(json.dumps(plan, indent=2))
    return [*options, f"--policy-file={folder / 'plan.json'}"]


def _run(command: list[str], step: Path) -> Compilation:
    done = run_compiler(command, step)
    if done.exit_code != 0:
        raise refusal(done)
    return done


def _said(artifact: Path, name: str) -> str:
    file = artifact.parent / name
    return file.read_text() if file.is_file() else ""
