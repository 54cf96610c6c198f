"""Mode x precision x accumulation x checkpointing of a small transformer, on ranks and meshes: what the ranks compute together
is what one does."""
from __future__ import annotations

import functools

import pytest
import torch
from product_cases import ACCUMULATIONS, capture, cases, coarsest, policy_of
from step_check import StepCheck

from spmd.meshes import count_ranks


@pytest.fixture(scope="module")
def interpret(tmp_path_factory):
    """Runs all programs of a case; those of neighbours are captured once."""
    @functools.lru_cache(maxsize=3)
    def check(precision: str, program: str, checkpointed: bool) -> StepCheck:
        return StepCheck(capture(precision, program, checkpointed), tmp_path_factory.mktemp(program), weights=False)

    def interpret(precision: str, accumulation: str, checkpointed: bool, mesh: str, mode: tuple[str, ...], **how) -> None:
        options = [f"--mesh={mesh}", *mode, *(["--accumulate=unsharded"] if accumulation == "unsharded" else [])]
        for program in ACCUMULATIONS[accumulation]:
            check(precision, program, checkpointed).interpret(count_ranks(mesh), policy_of(precision), *options, **how)
    return interpret


@pytest.mark.sample(167)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_agrees_with_one_rank(interpret, case) -> None:
    """In doubles, to 1e-12."""
    interpret(*case)


@pytest.mark.sample(557)
@pytest.mark.parametrize("case", cases(), ids=str)
def test_rounds_as_one_rank(interpret, case) -> None:
    """In the program's own roundings: those of parts of a sum, and of another order, are all that is between them."""
    interpret(*case, steps=1, rounded=8 * torch.finfo(coarsest(case[0])).eps)
