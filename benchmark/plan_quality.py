"""Memory, modelled time and planning time of plans of large models, beside the goals for them.

    python benchmark/plan_quality.py [--quick] [--check] [--cache=FOLDER]

Plans are for `cuda:sm_90` with the units of `benchmark/policies/own-units.json`. Times of steps are modelled on the
machine `reference-h100` (docs/cost.md), not measured; arenas, processor time and memory of planning are measured. A
percentage is how much longer a step is than the step of the same package without budget and with --no-budget-trades.

Steps are captured without weights into the cache folder, once. --quick leaves out all but Llama-3-8B in bf16. --check
exits with 1 if a goal is missed, and names the rows.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import plan_time

ROOT = Path(__file__).parent.parent
UNITS = ROOT / "benchmark" / "policies" / "own-units.json"
GIB = 1 << 30

# How each step is captured: the arguments of examples/llama3_8b.py or benchmark/mixtral.py.
LLAMA, MIXTRAL = ROOT / "examples" / "llama3_8b.py", ROOT / "benchmark" / "mixtral.py"
MASTERS = ("--precision=param=bf16,reduce=f32",)
CAPTURES: dict[str, tuple[Path, tuple[str, ...]]] = {
    "8b": (LLAMA, ("--batch=8",)),
    "8b-checkpointed": (LLAMA, ("--batch=8", "--checkpoint")),
    "8b-masters": (LLAMA, ("--batch=8", *MASTERS)),
    "8b-masters-checkpointed": (LLAMA, ("--batch=8", "--checkpoint", *MASTERS)),
    "8b-126-layers": (LLAMA, ("--batch=8", "--layers=126")),
    "70b": (LLAMA, ("--model=70b", "--batch=512")),
    "405b": (LLAMA, ("--model=405b", "--batch=512")),
    "405b-checkpointed": (LLAMA, ("--model=405b", "--batch=512", "--checkpoint")),
    "mixtral-64": (MIXTRAL, ("--batch=64",)),
    "mixtral-512": (MIXTRAL, ("--batch=512",)),
}


@dataclass(frozen=True)
class Goal:
    """The most that a plan may take; None: no goal."""
    gib: float | None = None
    percent: float | None = None
    cpu_s: float | None = None
    cpu_times: float | None = None  # of the row `beside`
    rss_mb: float | None = None


@dataclass(frozen=True)
class Row:
    name: str
    step: str
    ranks: int
    options: tuple[str, ...] = ()
    goal: Goal = field(default_factory=Goal)
    beside: str | None = None  # the row of the plan that percentages and times refer to
    is_quick: bool = False


@dataclass
class Result:
    bytes: int
    step_ms: float
    cpu_s: float
    rss_mb: float


def _budgets(name: str, step: str, ranks: int, goals: dict[int, float], is_quick: bool = False) -> list[Row]:
    """The plan that everything is compared with, and a row for each budget in GB."""
    base = f"{name}, no trades"
    return [Row(base, step, ranks, ("--no-budget-trades",), is_quick=is_quick),
            *(Row(f"{name} at {budget} GB", step, ranks, (f"--memory-budget={budget}GB",), Goal(percent=percent), base, is_quick)
              for budget, percent in goals.items())]


ROWS = [
    *_budgets("8B bf16", "8b", 8, {40: 0.4, 32: 3.7, 24: 10.3, 16: 17.4, 13: 22.4}, is_quick=True),
    Row("8B bf16, nothing asked", "8b", 8, (), Goal(gib=33.2, percent=0.6), "8B bf16, no trades", is_quick=True),
    Row("planning 8B at 24 GB", "8b", 8, ("--memory-budget=24GB",), Goal(cpu_times=3), "8B bf16, no trades", is_quick=True),
    Row("8B bf16, checkpointed", "8b-checkpointed", 8, (), beside="8B bf16, no trades", is_quick=True),
    *_budgets("8B f32 masters", "8b-masters", 8, {48: 0.4, 40: 3.6, 32: 10, 24: 17}),
    Row("8B f32 masters, checkpointed", "8b-masters-checkpointed", 8, (), Goal(gib=19.7), "8B f32 masters, no trades"),
    *_budgets("70B on 512", "70b", 512, {80: 10.6}),
    *_budgets("405B on 512", "405b", 512, {80: 23.2, 141: 19.1}),
    Row("405B on 512, checkpointed", "405b-checkpointed", 512, (), Goal(gib=58), "405B on 512, no trades"),
    Row("planning 405B", "405b", 512, ("--no-budget-trades",), Goal(cpu_s=5, rss_mb=600)),
    Row("planning 126 layers of 8B", "8b-126-layers", 8, ("--no-budget-trades",), Goal(cpu_times=4.5), "8B bf16, no trades"),
    Row("planning Mixtral on 64", "mixtral-64", 64, ("--policy=auto", "--no-budget-trades")),
    Row("planning Mixtral on 512", "mixtral-512", 512, ("--policy=auto", "--no-budget-trades"), Goal(cpu_times=1.2, rss_mb=400),
        "planning Mixtral on 64"),
]


def capture(step: str, cache: Path) -> Path:
    """The step package, captured if the cache lacks it. Raises CalledProcessError if it cannot be captured."""
    package = cache / f"{step}.step"
    if not (package / "step.json").is_file():
        cache.mkdir(parents=True, exist_ok=True)
        script, arguments = CAPTURES[step]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python-bindings'}:{os.environ.get('PYTHONPATH', '')}"}
        subprocess.run([sys.executable, script, *arguments, f"--save={package}"], check=True, env=environment)
    return package


def plan(row: Row, cache: Path) -> Result | None:
    """Plans a row; None if there is no plan, whose reason is on stderr."""
    program = cache / "plan.mlir"
    package = capture(row.step, cache)
    policy = [] if any(option.startswith("--policy") for option in row.options) else [f"--policy-file={UNITS}"]
    process = subprocess.Popen([plan_time.program("spmd-compile"), package, f"--ranks={row.ranks}", *policy,
                                "--target=cuda:sm_90", "--compile-to=plan", "--quiet", f"--json={cache / 'report.json'}",
                                *row.options, "-o", program])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        return None
    report = json.loads((cache / "report.json").read_text())
    return Result(report["arena"]["bytes"], plan_time.model(program)["step_ms"], usage.ru_utime + usage.ru_stime,
                  usage.ru_maxrss / 1000)


def compare(row: Row, result: Result, base: Result | None) -> tuple[str, list[str]]:
    """The line of a row, and the goals that it misses."""
    percent = (result.step_ms / base.step_ms - 1) * 100 if base else None
    times = result.cpu_s / base.cpu_s if base else None
    goal = row.goal
    measured = [("GiB", result.bytes / GIB, goal.gib), ("%", percent, goal.percent), ("CPU s", result.cpu_s, goal.cpu_s),
                ("x CPU", times, goal.cpu_times), ("MB", result.rss_mb, goal.rss_mb)]
    missed = [f"{value:.1f} {unit}, goal {most:g}" for unit, value, most in measured
              if most is not None and (value is None or round(value, 1) > most)]
    goals = ", ".join(f"{most:g} {unit}" for unit, _, most in measured if most is not None)
    line = (f"{row.name:32} {result.bytes / GIB:8.2f} {result.step_ms:10.1f} {'' if percent is None else f'{percent:+.1f}':>7} "
            f"{result.cpu_s:7.1f} {result.rss_mb:7.0f}  {goals:18} {'missed' if missed else 'met' if goals else ''}")
    return line.rstrip(), missed


def sweep(cache: Path) -> list[str]:
    """Llama-3-8B at 13 to 60 GB: what is wrong with the plans."""
    wrong, before = [], float("inf")
    for budget in range(13, 61):
        result = plan(Row("sweep", "8b", 8, (f"--memory-budget={budget}GB",)), cache)
        if result is None or result.bytes > budget * 10**9:
            wrong.append(f"{budget} GB: the plan exceeds the budget")
        elif result.step_ms > before:
            wrong.append(f"{budget} GB: {result.step_ms:.3f} ms, {before:.3f} ms with 1 GB less")
        before = result.step_ms if result else before
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only Llama-3-8B in bf16, without the sweep of budgets")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "spmd-plan-quality", help="folder of captured steps")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose name contains TEXT, and those that they are compared with")
    options = parser.parse_args()
    wanted = [row for row in ROWS if (row.is_quick or not options.quick) and (options.only or "") in row.name]
    needed = {row.beside for row in wanted}
    results: dict[str, Result | None] = {}
    missed: list[str] = []
    print(f"{'plan':32} {'GiB':>8} {'ms':>10} {'%':>7} {'CPU s':>7} {'MB':>7}  {'goal':18}")
    for row in [row for row in ROWS if row in wanted or row.name in needed]:
        result = results[row.name] = plan(row, options.cache)
        if result is None:
            missed.append(f"{row.name}: no plan")
            print(f"{row.name:32} no plan")
            continue
        line, problems = compare(row, result, results.get(row.beside) if row.beside else None)
        print(line, flush=True)
        missed += [f"{row.name}: {problem}" for problem in problems]
    if not options.quick and not options.only:
        problems = sweep(options.cache)
        print(f"{'8B bf16 at 13 to 60 GB':32} {'monotone, within the budget' if not problems else f'{len(problems)} wrong'}")
        missed += problems
    if missed:
        print("\nmissed:", *missed, sep="\n  ")
    if options.check and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
