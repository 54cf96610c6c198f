"""Stands in for spmd-compile and the runtime: the step is copied, and run by an interpreter of its graph."""
from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from step_interpreter import StepInterpreter

import spmd
import spmd.training.make_program
from spmd import native


class InterpretingTrainer:
    """The interface of spmd.run.runtime.Trainer over a step package."""

    def __init__(self, artifact: Path, *, weights: Path, shares: InterpretingTrainer | None = None, **unused: object):
        self.arena_bytes = 0
        self.log: list[str] = []  # "run", "read NAME", "write NAME"
        step = json.loads((artifact / "step.json").read_text())
        known = load_file(weights)
        if shares is None:
            self._run = StepInterpreter(step, known)
        else:  # the very tensors, in which both programs write
            keys = {i.get("name") if i["kind"] in ("param", "buffer") else f"optimizer/{i['state']}/{i['of']}"
                    for i in step["inputs"] if i["kind"] in ("param", "buffer", "state")}
            shared = shares._run.tensors()
            if keys != set(shared):
                raise spmd.RunError(native.Status(code=native.OTHER_STATE, message=b"the programs cannot share a state"))
            self._run = StepInterpreter(step, known | shared)
            self._run.state = {number: shared.get(self._run.names.get(number), value)
                               for number, value in self._run.state.items()}
        self._batch = [i["name"] for i in step["inputs"] if i["kind"] == "batch"]
        self._hyper = {(i["name"], i["group"]): i["id"] for i in step["inputs"] if i["kind"] == "hyper"}
        self.tensors = [types.SimpleNamespace(name=i.get("name", i.get("of")), state=i.get("state", i["kind"]),
                                              dtype=i["dtype"], shape=tuple(i["shape"]))
                        for i in step["inputs"] if i["kind"] in ("param", "buffer", "state", "constant")]

        self.outputs = [types.SimpleNamespace(dtype="f32", state=o["kind"]) for o in step["outputs"]]

    def set_hyper(self, name: str, group: int, value: float) -> None:
        self._run.state[self._hyper[name, group]] = torch.tensor(value, dtype=torch.float64)

    def issue(self, batch) -> None:
        self.log.append("run")
        self._given = self._run(dict(zip(self._batch, batch)))

    def results(self) -> list[np.ndarray]:
        return [o.detach().numpy().copy() if isinstance(o, torch.Tensor) else np.array(o) for o in self._given]

    def steps_kept(self, number: int) -> int:
        return 1

    def device_of(self, batch) -> None:
        return None

    def _tensor(self, state: str, name: str) -> torch.Tensor:
        if state == "constant":
            return self._run.tensors()[f"constant/{name}"]
        return self._run.tensors()[name if state in ("param", "buffer") else f"optimizer/{state}/{name}"]

    def read(self, state: str, name: str, out: np.ndarray | None = None) -> np.ndarray:
        self.log.append(f"read {name}" if state in ("param", "buffer") else f"read {state} {name}")
        value = self._tensor(state, name).detach().numpy()
        if out is None:
            return value.copy()
        out[...] = value
        return out

    def write(self, state: str, name: str, value: torch.Tensor) -> None:
        self.log.append(f"write {name}" if state in ("param", "buffer") else f"write {state} {name}")
        self._tensor(state, name).copy_(value)

    def close(self) -> None:
        pass


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """The path of a log with one line per run of the stand-in compiler."""
    log, script = tmp_path / "log", tmp_path / "spmd-compile"
    script.write_text(f"""#!{sys.executable}
import json, os, shutil, sys
descriptor = int(sys.argv.pop().removeprefix("--diagnostics-fd="))
assert sys.argv.pop() == "--diagnostics=json"
step, _, out, *options = (word for word in sys.argv[1:] if not word.startswith("--json="))
def say(severity, message):
    rendered = f"spmd-compile: {{severity}}: {{message}}\\n"
    os.write(descriptor, (json.dumps(dict(severity=severity, message=message, rendered=rendered)) + "\\n").encode())
    sys.stderr.write(rendered)
if "--policy=class:Missing" in options:
    say("warning", "one")
    say("error", "no module has class 'Missing'\\n  a note")
    sys.exit(2)
open({str(log)!r}, "a").write(" ".join(options) + "\\n")
shutil.copytree(step, out)
""")
    script.chmod(0o755)
    monkeypatch.setenv("SPMD_COMPILE", str(script))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(spmd.training.make_program, "Trainer", InterpretingTrainer)
    log.touch()
    return log
