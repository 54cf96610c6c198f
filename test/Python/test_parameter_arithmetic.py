"""Arithmetic on parameters and gradients: partitioned, every case of parameter_cases.py is the captured step in
float64; on the host it trains like eager PyTorch.

The suite draws a number of ranks, a mode, a policy, an optimizer and tying for every case; with --all every case runs on
every number of ranks, in both modes, tied and not, with a policy and an optimizer drawn for each. What the command line
names runs as the whole product (`python test/Python/test_parameter_arithmetic.py "weight_norm"`).
"""
from __future__ import annotations

import argparse
import copy
import itertools
import os
import sys
import tempfile
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent.parent / "python-bindings")]
import pytest  # noqa: E402
import torch  # noqa: E402
from parameter_cases import CASES, OPTIMIZERS, setup  # noqa: E402
from step_check import StepCheck  # noqa: E402

import spmd  # noqa: E402

WHOLE = bool(os.environ.get("SPMD_TEST_ALL"))
RANKS, MODES, POLICIES = (1, 2, 3, 5), ("fully_shard", "replicate"), ("none", "class:Linear")

pytestmark = pytest.mark.filterwarnings("ignore")

#: On the host the suite trains one of each kind: a mask, two gradients, one gradient of two, whole gradients, positions
#: in lists, other parameters, a part cut from a whole weight, states that take each other's values.
TRAINED = ["weight_norm", "masked gradients", "projected gradients", "sum of two", "clipped regularizer", "unit whole",
           "total variation", "pulled together", "mirrored", "look ahead", "moved along",
           "exchanged buffers"]


def draw(name: str, whole: bool, tied: bool, optimizers: list[str]) -> tuple[str, list[tuple[int, str, str]]]:
    """An optimizer, and ranks, modes and policies for this case: one of each, or, whole, all ranks and modes. Each is
    drawn by itself, and the same every time."""
    random = Random(f"{name}, {tied}")
    optimizer = random.choice(optimizers)
    if whole:
        return optimizer, [(ranks, mode, random.choice(POLICIES)) for ranks in RANKS for mode in MODES]
    return optimizer, [(random.choice(RANKS), random.choice(MODES), random.choice(POLICIES))]


def tyings(names) -> list[tuple[str, bool]]:
    """Every case untied and tied; the suite takes one of both."""
    return [(name, tied) for name in names for tied in (False, True)
            if WHOLE or tied == Random(f"tied: {name}").choice((False, True))]


def capture(name: str, tied: bool, optimizer: str, reference: bool = False) -> spmd.StepPackage:
    step, model, optimizer, batches = setup(name, tied, optimizer)
    return spmd.capture(step, model, optimizer, *batches[0], reference=batches if reference else None)


@pytest.mark.parametrize("name, tied", tyings(CASES))
@pytest.mark.sample(3)
def test_partitioned_step_equals_captured(name: str, tied: bool, whole: bool, tmp_path) -> None:
    """In float64, loss, outputs, parameters, buffers and optimizer state, to 1e-12."""
    optimizer, draws = draw(name, whole, tied, list(OPTIMIZERS))
    check = StepCheck(capture(name, tied, optimizer), tmp_path)
    for ranks, mode, policy in draws:
        check.interpret(ranks, policy, f"--mode={mode}")


def test_frozen_parameters_that_an_optimizer_has_need_no_state(tmp_path) -> None:
    """They have a place in the momentum of their unit, which is nobody's input or result."""
    check = StepCheck(capture("teacher", False, "momentum"), tmp_path)
    check.interpret(3, "none", "--mode=fully_shard")


@pytest.mark.parametrize("name, tied", tyings(CASES if WHOLE else TRAINED))
@pytest.mark.sample(3)
def test_host_trains_like_eager(name: str, tied: bool, whole: bool, tmp_path) -> None:
    """Three steps; losses, parameters and optimizer state are those of eager PyTorch."""
    optimizer, draws = draw(name, whole, tied, ["momentum"])
    check = StepCheck(capture(name, tied, optimizer, reference=True), tmp_path)
    for ranks, mode, policy in draws:
        check.train(ranks, policy, f"--mode={mode}", rtol=1e-4)


@pytest.mark.parametrize("dtype, other", [(torch.float32, torch.float64), (torch.bfloat16, torch.float32)])
def test_a_repeated_number_of_another_type_promotes_as_in_eager(dtype: torch.dtype, other: torch.dtype) -> None:
    """0.1 in the narrow type is more than 0.1 in the wide one; a number without dimensions would be compared in the narrow."""
    def train_step(model, optimizer, x):
        model(x).square().mean().backward()
        optimizer.zero_grad()
        with torch.no_grad():
            for p in model.parameters():
                number = torch.full((), 0.1, dtype=other).expand(p.shape)
                p.copy_(torch.where(p > number, p * 0.5, p * 2))
                p.copy_(number * p)

    model = torch.nn.Linear(4, 3).to(dtype)
    torch.nn.init.constant_(model.weight, 0.1)
    twin = copy.deepcopy(model)
    train_step(twin, torch.optim.SGD(twin.parameters(), lr=0.1), torch.ones(6, 4, dtype=dtype))
    spmd.compile(train_step, ranks=2)(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.ones(6, 4, dtype=dtype))
    torch.testing.assert_close(model.state_dict(), twin.state_dict(), rtol=0, atol=0)


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
