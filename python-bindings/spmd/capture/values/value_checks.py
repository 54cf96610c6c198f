"""Functions of PyTorch that look at values only to refuse, to warn, or to take a shorter way to the same numbers.

A graph has no values to look at, and the look would end the capture. While entered, nothing is looked at:

  torch.nn.functional.gaussian_nll_loss refuses a negative variance. It clamps the variance to eps in any case.
  torch.cov (and torch.corrcoef, which calls it) warns of no degree of freedom, and then divides by zero.
  nn.TransformerEncoder and nn.TransformerDecoder ask whether a mask is the causal one, to leave it out and say so to the
    attention instead. The mask given says the same.
  torch.distributions refuse parameters and values outside of their support, unless they are told not to.
"""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Iterator

import torch

from ..observe import patches


def _cov(input: torch.Tensor, correction: int = 1, fweights: torch.Tensor | None = None,
         aweights: torch.Tensor | None = None) -> torch.Tensor:
    """As at::cov: rows are variables, columns observations, which count as often as fweights and aweights say."""
    if input.dim() > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} "
                           "dimensions")
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    weights = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if weights is None:
        count = rows.shape[1]
        average, freedom = rows.sum(1) / count, max(count - correction, 0)
    else:
        count = weights.sum()
        average = (rows * weights).sum(1) / count
        lost = correction if aweights is None or correction == 0 else correction * (weights * aweights).sum() / count
        freedom = (count - lost).clamp(min=0)
    rows = rows - average.unsqueeze(1)
    return (rows @ (rows if weights is None else rows * weights).t()).true_divide(freedom).squeeze()


def _any_but_in(function: Callable) -> Callable:
    """torch.any, which finds nothing when `function` asks: whoever imported that by name has it, not a stand-in."""
    original, code = torch.any, function.__code__

    def any_(*args: Any, **kwargs: Any) -> Any:
        return False if sys._getframe(1).f_code is code else original(*args, **kwargs)
    return any_


def _hinted_causal(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """As torch.nn.modules.transformer._detect_is_causal_mask of any mask that is not the causal one."""
    return is_causal is True


@contextlib.contextmanager
def no_value_checks() -> Iterator[None]:
    """While entered, these functions trust their arguments. Process-wide, hence scoped."""
    with patches.replaced({
            patches.COV: {"cov": _cov}, patches.TORCH_ANY: _any_but_in(torch.nn.functional.gaussian_nll_loss),
            patches.CAUSAL_MASK: _hinted_causal, patches.VALIDATE_ARGS: False}):
        yield
