"""Arithmetic on parameters and gradients: partitioned, every case of parameter_cases.py is the captured step in
float64; on the host it trains like eager PyTorch.

Here ranks, modes, policies, optimizers and tying take turns; `python test/Python/test_parameter_arithmetic.py` tries
all of them with each other (hours), or what its arguments name.
"""
from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent / "python-bindings")]
import pytest  # noqa: E402
from parameter_cases import CASES, OPTIMIZERS, setup  # noqa: E402
from step_check import StepCheck  # noqa: E402

import spmd  # noqa: E402

RANKS, MODES, POLICIES = (2, 3, 5, 1), ("fully_shard", "replicate"), ("none", "class:Linear")

pytestmark = pytest.mark.filterwarnings("ignore")


def capture(name: str, tied: bool, optimizer: str, reference: bool = False) -> spmd.StepPackage:
    step, model, optimizer, batches = setup(name, tied, optimizer)
    return spmd.capture(step, model, optimizer, *batches[0], reference=batches if reference else None)


@pytest.mark.parametrize("number, name", list(enumerate(CASES)), ids=lambda value: str(value))
def test_partitioned_step_equals_captured(number: int, name: str, tmp_path) -> None:
    """In float64, loss, outputs, parameters, buffers and optimizer state, to 1e-12."""
    optimizers = list(OPTIMIZERS)
    check = StepCheck(capture(name, number % 3 == 1, optimizers[number % len(optimizers)]), tmp_path)
    check.interpret(RANKS[number % 3], POLICIES[number // 2 % 2], f"--mode={MODES[number // 3 % 2]}")


def test_frozen_parameters_that_an_optimizer_has_need_no_state(tmp_path) -> None:
    """They have a place in the momentum of their unit, which is nobody's input or result."""
    check = StepCheck(capture("teacher", False, "momentum"), tmp_path)
    check.interpret(3, "none", "--mode=fully_shard")


#: One of each kind: a mask, two gradients, one gradient of two, whole gradients, positions in lists, other parameters,
#: a part cut from a whole weight.
TRAINED = ["weight_norm", "masked gradients", "projected gradients", "sum of two", "clipped regularizer", "unit whole",
           "total variation", "pulled together", "mirrored"]


@pytest.mark.parametrize("number, name", list(enumerate(TRAINED)), ids=lambda value: str(value))
def test_host_trains_like_eager(number: int, name: str, tmp_path) -> None:
    """Three steps; losses, parameters and optimizer state are those of eager PyTorch."""
    check = StepCheck(capture(name, number % 2 == 1, "momentum", reference=True), tmp_path)
    check.train(RANKS[number % 3], POLICIES[number % 2], f"--mode={MODES[number // 2 % 2]}", rtol=1e-4)


def main() -> int:
    parser = argparse.ArgumentParser(description="every case with every number of ranks, mode, policy and optimizer")
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], help="default: all")
    parser.add_argument("--ranks", nargs="+", type=int, default=RANKS)
    parser.add_argument("--modes", nargs="+", default=MODES)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--optimizers", nargs="+", default=list(OPTIMIZERS))
    parser.add_argument("--train", action="store_true", help="on the host against eager, not in float64")
    options = parser.parse_args()
    failures = tried = 0
    for name, tied, optimizer in itertools.product(options.cases or CASES, (False, True), options.optimizers):
        with tempfile.TemporaryDirectory() as folder:
            check = StepCheck(capture(name, tied, optimizer, options.train), Path(folder))
            for ranks, mode, policy in itertools.product(options.ranks, options.modes, options.policies):
                tried += 1
                try:
                    if options.train:
                        check.train(ranks, policy, f"--mode={mode}", rtol=2e-4)
                    else:
                        check.interpret(ranks, policy, f"--mode={mode}")
                except AssertionError as error:
                    failures += 1
                    print(f"{name}, {'' if tied else 'un'}tied, {optimizer}, {ranks} ranks, {mode}, {policy}: {error}",
                          flush=True)
    print(f"{failures} of {tried} failed")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
