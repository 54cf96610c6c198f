"""FlexAttention and variable-length attention: functions of positions, tables of blocks, and the operators behind them."""
from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, ContextManager

import torch

MODULE = "torch.nn.attention.flex_attention"
VARLEN_NAMESPACE, VARLEN_OPERATOR = "torch_attn", "_varlen_attn"  # what varlen_attn() calls; it has a kernel on GPUs only

# (owner, name), as patches.Patch takes them. flex_attention() checks its arguments, then calls the operator below.
VALIDATE_DEVICE = (MODULE, "_validate_device")
CALLS_OPERATOR_DIRECTLY = (MODULE, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG")
OPERATOR = (MODULE, "flex_attention_hop")
MAKE_TABLES = (MODULE, "_create_sparse_block_from_block_mask")  # the last call of create_block_mask()


def is_flex_attention_loaded() -> bool:
    """Whether some module of the program has imported torch.nn.attention.flex_attention."""
    return MODULE in sys.modules


def is_varlen_attention_loaded() -> bool:
    """Whether some module of the program has imported torch.nn.attention.varlen, which defines the operator."""
    return "torch.nn.attention.varlen" in sys.modules


def over_positions(function: Callable, has_score: bool) -> Callable:
    """`function` of (score,) batch, head, query and key, which are scalars, as a function of vectors (and of the matrix of scores)."""
    return sys.modules[MODULE]._vmap_for_bhqkv(function, prefix=(0,) if has_score else ())


def indexing_by_positions() -> ContextManager[Any]:
    """A region in which `tensor[position]` is an operator, as FlexAttention has it; otherwise an index of one element is a number."""
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
    return TransformGetItemToIndex()


def is_identity(score_mod: Callable) -> bool:
    """Whether flex_attention() put `score_mod` in the place of None."""
    return score_mod is sys.modules[MODULE]._identity


def is_everything(mask_mod: Callable) -> bool:
    """Whether a BlockMask has `mask_mod` in the place of None."""
    return mask_mod is sys.modules[MODULE].noop_mask


def has_no_blocks(block_size: int) -> bool:
    """Whether flex_attention() put a table with blocks of this size in the place of None."""
    return block_size == sys.modules[MODULE]._LARGE_SPARSE_BLOCK_SIZE


def preload() -> ContextManager[None]:
    """Imports what flex_attention() imports at its first call, if the program may call it: a trace replaces functions that
    torch._dynamo keeps when it is imported."""
    if is_flex_attention_loaded():
        import torch._dynamo
        import torch._dynamo._trace_wrapped_higher_order_op  # noqa: F401
    return contextlib.nullcontext()
