"""What goes to a machine with a GPU (benchmark/gpu), on the stand-ins: models and cases pass, what differs fails, and the
report is there however a run ends."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
from python_processes import PYTHON

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
BIN = pathlib.Path(os.environ["SPMD_BIN"])

pytestmark = pytest.mark.skipif("SPMD_PTXAS" not in os.environ, reason="needs ptxas for cubins")


def call(*command, **environment) -> tuple[int, str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280,
                          env={**os.environ, "SPMD_BUILD": str(BIN.parent), **environment})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def pack(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("gpu") / "pack"
    code, text = call(PYTHON, SOURCE / "benchmark" / "gpu" / "pack", folder, "--models", "contrastive", "weighted",
                      "--cases", "small", "--only", "gpt2-tiny-f32", "--ranks", "1", "--chips", "sm_90", "--stand-ins",
                      "--jobs", "2")
    assert code == 0, text
    return folder


def run(pack: pathlib.Path, report: pathlib.Path, *options: str, **environment: str) -> tuple[int, str, dict]:
    code, text = call(SOURCE / "scripts" / "with-standins", "devices=1", sys.executable, pack / "run", f"--report={report}",
                      "--jobs=2", *(["--nccl=off"] if "--nccl=on" not in options else []), *options, **environment)
    return code, text, json.loads(report.read_text())


def test_models_agree_also_those_that_share_a_gpu(pack, tmp_path) -> None:
    code, text, report = run(pack, tmp_path / "a" / "r.json", "--cases=off", "--sanitize=off")
    assert code == 0, text
    assert "PASS: 4 of 4 runs agree" in text and "PASS: 2 of 2 runs of several ranks that share a GPU agree" in text
    assert {row["name"] for row in report["models"]} == {
        f"{name} ({mode})" for name in ("contrastive", "contrastive-shard2", "weighted-f64")
        for mode in ("one CUDA graph", "command by command")}


def test_a_model_that_differs_fails_and_so_does_a_slow_one(pack, tmp_path) -> None:
    reference = pack / "models" / "weighted-f64.spmd" / "reference.safetensors"
    kept = reference.read_bytes()
    reference.write_bytes(kept[:-64] + b"\x11" * 64)
    try:
        code, text, report = run(pack, tmp_path / "r.json", "--cases=off", "--sanitize=off", "--ranks=fit")
    finally:
        reference.write_bytes(kept)
    assert code == 1 and "FAIL: weighted-f64 (one CUDA graph): exit code" in text and "FAIL: 2 of 4 runs" in text, text
    assert [row["name"].split()[0] for row in report["models"] if row["failure"]] == ["weighted-f64"] * 2
    code, text, report = run(pack, tmp_path / "r.json", "--cases=off", "--sanitize=off", "--limit=0.01", "--only=shard2")
    assert code == 1 and "takes longer than" in text and "1 were not tried" in text, text


def test_a_case_is_measured_and_reported_though_the_next_fails(pack, tmp_path) -> None:
    listed = json.loads((pack / "pack.json").read_text())
    broken = {**listed["cases"][0], "artifact": "gone-f32-1.spmd"}
    (pack / "pack.json").write_text(json.dumps({**listed, "cases": [listed["cases"][0], broken, *listed["cases"][1:]]}))
    try:
        code, text, report = run(pack, tmp_path / "r.json", "--models=off", "--sanitize=off", "--steps=4", "--contenders",
                                 "--profile-rows=3")
    finally:
        (pack / "pack.json").write_text(json.dumps(listed))
    assert code == 1 and text.count("PASS: ") == 2 and text.count("FAIL: ") == 1, text
    good, bad = report["cases"]
    assert good["good"] and len(good["losses"]) == 4 and good["graph_ms"] > 0 and "eager" in text
    assert not bad["good"] and "gone-f32-1" in bad["failure"]
    whole = (tmp_path / "gpt2-tiny-f32-1.profile.txt").read_text()
    assert len(whole.splitlines()) > 10 and whole.splitlines()[2] in text and whole.splitlines()[5] not in text


def test_communicators_pass_and_fail(pack, tmp_path) -> None:
    options = ("--nccl=on", "--models=off", "--cases=off", "--sanitize=off")
    code, text, report = run(pack, tmp_path / "r.json", *options)
    assert code == 0 and report["nccl"]["good"] and text.count("PASS: ") >= 16 and "FAIL" not in text, text
    program, kept = pack / "nccl-tests", (pack / "nccl-tests").read_bytes()
    program.write_text("#!/bin/sh\necho '[  FAILED  ] Ranks/A.B/Of1, where GetParam() = 1 (5 ms)'\nexit 1\n")
    code, text, report = run(pack, tmp_path / "r.json", *options)
    program.write_bytes(kept)
    assert code == 1 and "FAIL: B/Of1 (0.0 s)" in text and not report["nccl"]["good"], text


def test_what_the_sanitizer_finds_fails(pack, tmp_path) -> None:
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "$@" >> "$0.log"\n[ "$1" != --tool=racecheck ] || { echo a race; exit 9; }\n'
                       'shift 2; exec "$@"\n')
    program.chmod(0o755)
    code, text, report = run(pack, tmp_path / "r.json", "--models=off", "--cases=off",
                             PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert code == 1 and "memcheck: nothing found" in text and "a race" in text, text
    assert list(report["sanitizer"]) == [f"gpt2-nano-{dtype}-1, {tool}" for dtype in ("f32", "bf16")
                                         for tool in ("memcheck", "initcheck", "synccheck", "racecheck")]
    assert all("--steps=1 " in line for line in (tmp_path / "compute-sanitizer.log").read_text().splitlines())
