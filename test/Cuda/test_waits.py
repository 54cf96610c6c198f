"""Two proofs that share no code agree: a wait of a plan that is left out is a race on the stand-in of CUDA, and the certificate
refuses the plan without it."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])
PLANS = {"mlp": (SOURCE / "test" / "Inputs" / "mlp-sgd.step", 2, "none"),
         "tiny": (SOURCE / "test" / "Inputs" / "gpt-tiny.step", 2, "class:Block"),
         "nano": (SOURCE / "examples" / "gpt2-nano.step", 2, "auto")}

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


def run(*command, **environment) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent), **environment})
    return done.returncode, done.stdout + done.stderr


def leave_out(artifact: pathlib.Path, plan: dict, wait: int, copy: pathlib.Path) -> None:
    """A copy whose plan has no command `wait`; those behind it move up."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(artifact, copy)
    commands = []
    for i, command in enumerate(plan["commands"]):
        if i != wait:
            commands.append({**command, "for": command["for"] - (command["for"] > wait)} if "for" in command else command)
    (copy / "train_step.plan.json").write_text(json.dumps({**plan, "commands": commands}))
    manifest = json.loads((copy / "manifest.json").read_text())
    for program in manifest["programs"]:
        program.pop("hash", None)
    (copy / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", PLANS)
def test_left_out(name, tmp_path) -> None:
    step, ranks, policy = PLANS[name]
    artifact = tmp_path / "whole.spmd"
    code, text = run(BIN / "spmd-compile", step, "-o", artifact, f"--ranks={ranks}", f"--policy={policy}",
                     "--target=cuda:sm_90", "--emulation", "--quiet")
    assert code == 0, text
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    waits = [i for i, command in enumerate(plan["commands"]) if command["op"] == "wait"]
    assert waits
    for wait in waits:
        leave_out(artifact, plan, wait, tmp_path / "without.spmd")
        refused, why = run(BIN / "spmd-run", tmp_path / "without.spmd", "--steps=1",
                           SPMD_CUDA_LIBRARIES=str(tmp_path))
        is_refused = "cannot load the CUDA driver" not in why
        assert refused == 2 and (not is_refused or "certificate" in why or "rule" in why), why
        # Two steps: what the first one leaves to the second is ordered, too. A refused plan is not run: a rank skips the wait.
        how = (artifact, f"--inject-fault=skip:0:{wait}") if is_refused else (tmp_path / "without.spmd",)
        code, text = run(SOURCE / "scripts" / "with-standins", BIN / "spmd-run", *how, "--steps=2")
        races = re.findall("stand-in: race: .*", text)
        assert (code == 97) == bool(races), text
        assert bool(races) == is_refused, f"wait {wait} of {name}: certificate: {why}\nstand-in: {text}"
        assert is_refused, f"wait {wait} of {name} orders nothing"
    print(f"counts: {name}: {len(waits)} waits left out one by one, all of them needed, by certificate and stand-in alike")


#: What orders the runtime's own accesses.
ORDERING = ("cuEventRecord", "cuStreamWaitEvent", "cuEventSynchronize", "cuStreamSynchronize")
STEPS, RANKS = 3, 2


def test_the_runtimes_own_order(tmp_path) -> None:
    """Each record and wait of a run, left out in turn, is reported. Not so the record that says that a step has ended, which
    only the search for hangs needs (what is read is waited for again), and the last waits before memory is given back."""
    artifact = tmp_path / "mlp.spmd"
    code, text = run(BIN / "spmd-compile", PLANS["mlp"][0], "-o", artifact, f"--ranks={RANKS}", "--target=cuda:sm_90",
                     "--emulation", "--quiet")
    assert code == 0, text
    standins, train = SOURCE / "scripts" / "with-standins", (BIN / "spmd-run", artifact, f"--steps={STEPS}", "--timeout=3")
    run(standins, f"--log={tmp_path / 'log'}", *train)
    calls = [line for line in (tmp_path / "log").read_text().split() if line in ORDERING]
    silent = [f"{name}:{i + 1}" for name in ORDERING for i in range(calls.count(name))
              if run(standins, f"skip={name}:{i + 1}", *train)[0] == 0]
    print(f"counts: {len(calls)} records and waits of the runtime left out one by one, {len(calls) - len(silent)} reported")
    assert len(calls) > 60
    assert sum(call.startswith("cuEventRecord") for call in silent) <= STEPS * RANKS, silent
    assert sum(not call.startswith("cuEventRecord") for call in silent) <= RANKS, silent
