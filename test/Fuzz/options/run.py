"""Random options of spmd-compile on a few steps: ranks and meshes, modes of all and of some units, groups to reshard to,
precision, accumulation, divide factors, placements, budgets.

    .venv/bin/python test/Fuzz/options/run.py 0:2000 [--keep=FOLDER]      # half a second of CPU time each

A case is compiled to scheduled collectives, and the interpreter, in float64, agrees with the step on one rank to 1e-12; or it
is refused with exit code 2 and a sentence that says what to do. Anything else is printed as a failure. With
view=local there is nothing to compare with: the interpreter only runs it. Each eighth case is planned, too, and one with a
recorded reference trains on the host as eager did. Exits with 1 when a case failed.
"""
from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "test/Python"), str(ROOT / "python-bindings")]

# Steps of test/Inputs: classes of their modules, and modules and parameters by name.
STEPS = {
    "gpt-tiny": ("Block", "h.0", "h.1.mlp", "h.0.attn.c_attn.weight"),
    "gpt-tiny-sgd": ("Block", "h.1", "h.0.attn", "wte.weight"),
    "gpt-tiny-bf16-sgd": ("Block", "h.0", "h.1", "h.0.mlp.c_fc.bias"),
    "gpt-uneven-sgd": ("Block", "h.1", "h.0.mlp", "h.1.ln_1.weight"),
    "mlp-uneven": ("Linear", "fc1", "fc2", "fc1.bias"),
    "mlp-sgd-foreach": ("Linear", "fc1", "fc2", "fc2.weight"),
}
# Those captured here (product_cases.py): precision, program, whether checkpointed.
CAPTURED = {"transformer": ("f32", "ends", False), "transformer-bf16": ("param=bf16,reduce=f32", "adds", False),
            "transformer-checkpointed": ("param=bf16", "ends", True), "transformer-microbatches": ("casts", "microbatches", False)}
NAMES = ("Block", "blocks.0", "blocks.1", "blocks.1.up.weight")
PLACED = ("*.attn.c_attn.*=shard(0,3)", "*.attn.c_proj.weight=shard(1)", "*.mlp.c_fc.*=shard(0)", "*.mlp.c_proj.weight=shard(1)",
          "*.up.*=shard(0)", "*.down.weight=shard(1)", "fc1.*=shard(0)", "fc2.weight=shard(1)", "*.qkv.weight=shard(0,3)",
          "*.out.weight=shard(1)", "*.weight=shard(0)", "*=replicate", "*norm*=replicate", "embed.*=shard(1)", "*.bias=shard(0)",
          "*.fc*.weight=shard(-1)", "h.0.*=shard(2)", "wte.weight=shard(0)")
MEGATRON = {"gpt": PLACED[:4], "mlp": PLACED[6:8], "transformer": (*PLACED[4:6], *PLACED[8:10])}


@dataclasses.dataclass(frozen=True)
class Case:
    step: str
    words: tuple[str, ...]
    plan: dict[str, Any] | None
    is_local: bool


def make(seed: int) -> Case:
    rng = random.Random(seed)
    step = rng.choice((*STEPS, *CAPTURED))
    kind, *modules, parameter = STEPS.get(step, NAMES)
    if "casts" in CAPTURED.get(step, ()):
        kind, parameter = "CastBlock", "blocks.1.inner.up.weight"
    words: dict[str, str] = {}

    def some(name: str, probability: float, *values: str) -> None:
        if rng.random() < probability:
            words[name] = rng.choice(values)

    rows, shard, tensor = rng.choice((1, 1, 1, 2, 2, 3)), rng.choice((1, 2, 2, 3, 4, 4, 5, 6, 8)), rng.choice((1, 1, 1, 1, 2, 3, 4))
    axes = [f"{name}:{n}" for name, n in (("replicate", rows), ("shard", shard), ("tensor", tensor)) if n > 1]
    if rows > 1 or tensor > 1:
        words["mesh"] = ",".join(axes)
    elif rng.random() < 0.9:
        words[rng.choice(("ranks", "mesh"))] = str(shard)
        words = {name: f"shard:{shard}" if name == "mesh" else value for name, value in words.items()}
    if tensor > 1 and rng.random() < 0.95:
        family = MEGATRON[step.split("-")[0]]
        if tensor != 2 and step in CAPTURED:  # of two heads
            family = family[:2]
        if step in CAPTURED and rng.random() < 0.4:
            family = (*family, "embed.weight=shard(0)", *rng.sample(("head.*=shard(0)",), rng.random() < 0.7))
        chosen = family if rng.random() < 0.85 else rng.sample(PLACED, rng.randint(1, 4))
        words["override-placements"] = ",".join(chosen)
    elif rng.random() < 0.02:
        words["override-placements"] = rng.choice(PLACED)
    some("mode", 0.5, "fully_shard", "shard_grad_op", "shard_optimizer", "replicate", "hybrid" if rows > 1 else "fully_shard", "default")
    groups = [str(n) for n in range(2, shard) if shard % n == 0] * 3
    some("reshard-after-forward", 0.35, "true", "false", "1", *groups, *rng.sample(("0", "-1", "5"), rng.random() < 0.1))
    some("accumulate", 0.3, "sharded", "unsharded", "unsharded", *rng.sample(("scattered",), rows > 1))
    some("precision", 0.25, "reduce=bf16", "reduce=f32", "reduce=f16", *rng.sample(("param=bf16", "output=f32"), rng.random() < 0.1))
    some("prefetch", 0.2, "0", "1")
    some("schedule", 0.2, "auto", "basic")
    some("view", 0.1 if tensor == 1 else 0.01, "local")
    some("gradient-divide-factor", 0.9 if words.get("view") else 0.03, "1", "3", "0.5", "2.5", *rng.sample(("0", "-2", "inf"), rng.random() < 0.1))
    some("memory-budget", 0.95 if words.get("mode") == "default" else 0.03, "1GB", "400kB", "200kB", "100kB", "20kB")
    some("batch-dim", 0.05, "x=1", "x=none", "idx=none", "targets=1", "y=0")
    some("ignored-parameter", 0.1, parameter, *rng.sample(("no.such",), rng.random() < 0.1))
    some("ignored-module", 0.1, *modules)
    plan = None
    if rng.random() < 0.5:
        words["policy"] = rng.choice(("none", "auto", "always", f"class:{kind}", "size:200",
                                      f"name:{re.escape(modules[0])}", f"or(class:{kind};size:100)"))
    elif rng.random() < 0.7:
        plan = {"format": "spmd-shard-units", "version": 1, "options": unit_options(rng, groups[:1], shard),
                "rules": [{"module": module, "options": unit_options(rng, groups[:1], shard)} for module in modules]}
        if rng.random() < 0.3:
            plan["rules"].append({"class": kind})
        if rng.random() < 0.2:
            plan["ignored_parameters"] = [parameter]
    some("recompute", 0.4, "1", "3", "8", "1000")
    return Case(step, tuple(f"--{name}={value}" for name, value in words.items()), plan, "view" in words)


def unit_options(rng: random.Random, groups: list[str], shard: int) -> dict[str, Any]:
    table = {"mode": ("fully_shard", "fully_shard", "shard_grad_op", "shard_optimizer", "replicate"),
             "reshard_after_forward": (True, False, *map(int, groups)), "prefetch": (0, 1), "ranks": (shard, 2),
             "precision": ({"reduce": "bf16"}, {"reduce": "f32"}, {"reduce": "f16"})}
    chances = {"mode": 0.4, "reshard_after_forward": 0.3, "prefetch": 0.2, "ranks": 0.02, "precision": 0.2}
    return {name: rng.choice(values) for name, values in table.items() if rng.random() < chances[name]}


class Runner:
    def __init__(self, folder: Path):
        self.folder = folder
        self.bin = Path(os.environ.get("SPMD_BIN", ROOT / "build/bin"))

    def _tool(self, name: str, *arguments: Any) -> subprocess.CompletedProcess:
        return subprocess.run([str(self.bin / name), *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def _step(self, name: str) -> tuple[Path, Path]:
        """The package, and its program as it is imported."""
        base = self.folder / f"{name}.mlir"
        step = ROOT / "test/Inputs" / f"{name}.step"
        if name in CAPTURED:
            step = self.folder / f"{name}.step"
        if not base.exists():
            if name in CAPTURED:
                from product_cases import capture
                capture(*CAPTURED[name]).save(step, weights=False)
            done = self._tool("spmd-translate", "--import-step", step, "-o", base)
            assert done.returncode == 0, done.stderr
        return step, base

    def verdict(self, case: Case, to_the_end: bool) -> tuple[str, str]:
        """("ok" or "refused", what was said), or ("failure", why)."""
        step, base = self._step(case.step)
        words, program = list(case.words), self.folder / "ranks.mlir"
        if case.plan:
            (self.folder / "plan.json").write_text(json.dumps(case.plan))
            words.append(f"--policy-file={self.folder / 'plan.json'}")
        done = self._tool("spmd-compile", step, *words, "--compile-to=collectives", "--quiet", "-o", program)
        if done.returncode == 2 and re.search(r"error: [^\n]{15,}", done.stderr):
            return "refused", next(line for line in done.stderr.splitlines() if "error: " in line)
        if done.returncode != 0:
            return "failure", f"spmd-compile: exit code {done.returncode}\n{done.stderr[-3000:]}"
        compared = [] if case.is_local else [f"--compare={base}"]
        done = self._tool("spmd-interpret", program, "--steps=2", *compared)
        if done.returncode != 0:
            return "failure", f"spmd-interpret: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return self._trained(case, step, words) if to_the_end else ("ok", "")

    def _trained(self, case: Case, step: Path, words: list[str]) -> tuple[str, str]:
        has_reference = case.step in STEPS and not case.is_local and not any("reduce" in word for word in (*words, str(case.plan)))
        artifact, how = (self.folder / "a.spmd", "--cpu=x86-64-v3") if has_reference else (self.folder / "a.mlir", "--compile-to=plan")
        done = self._tool("spmd-compile", step, *words, "--quiet", "-o", artifact, how)
        if done.returncode == 2 and "--memory-budget=" in str(words):
            return "refused", done.stderr.strip().splitlines()[-1]
        if done.returncode == 0 and has_reference:
            done = self._tool("spmd-run", artifact, "--check", "--quiet", "--threads=1")
        if done.returncode != 0:
            return "failure", f"to the end: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return "ok", ""


def shown(seed: int, case: Case) -> str:
    plan = f"\n  plan {json.dumps(case.plan)}" if case.plan else ""
    return f"{seed}: {case.step} {' '.join(case.words)}{plan}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", help="FIRST:END, or one")
    parser.add_argument("--verbose", action="store_true", help="also what is refused, and how")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.partition(":")
    counts = {"ok": 0, "refused": 0, "failure": 0}
    with tempfile.TemporaryDirectory(prefix="spmd-options.") as folder:
        runner = Runner(Path(folder))
        for seed in range(int(first), int(end or int(first) + 1)):
            case = make(seed)
            verdict, text = runner.verdict(case, seed % 8 == 0)
            counts[verdict] += 1
            if verdict == "failure" or arguments.verbose:
                print(f"{verdict} {shown(seed, case)}\n  {text}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts["failure"] else 0


if __name__ == "__main__":
    sys.exit(main())
