"""Gradients of embeddings that the compiler has no operator for."""
from __future__ import annotations

from typing import Any

import torch

from ..observe.dispatch_mode import Handler, OpCall, Phase


class FrequencyScaling(Handler):
    """nn.Embedding(scale_grad_by_freq=True): each row of the gradient is divided by how often the batch has its number."""

    phase = Phase.REPLACE
    operators = {torch.ops.aten.embedding_dense_backward.default}

    def answer(self, call: OpCall) -> Any:
        gradient, numbers, rows, padding, scales = call.args
        if not scales:
            return NotImplemented
        with call.traced():
            precise = torch.promote_types(gradient.dtype, torch.float32)
            ones = torch.ones(numbers.numel(), dtype=precise)
            counts = torch.zeros(rows, dtype=precise).index_add(0, numbers.reshape(-1), ones)
            share = counts.index_select(0, numbers.reshape(-1)).reciprocal().view(*numbers.shape, 1)
            scaled = (gradient * share).to(gradient.dtype)
            return torch.ops.aten.embedding_dense_backward.default(scaled, numbers, rows, padding, False)
