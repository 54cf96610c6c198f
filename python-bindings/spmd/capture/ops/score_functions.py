"""Which functions of scores are a mask: those that give the score itself plus numbers that do not depend on it, or -inf.

A function is traced on scores of zero. The operators between these scores and its result say what it does to a score: additions,
subtractions from it, and a choice between it and -inf leave it what it is. The result is then what the attention adds to its scores.
"""
from __future__ import annotations

from typing import Callable

import torch

from ...torch_api.tracing import traced_node
from ..errors import error_at, users_frames
from ..observe.memory import memory_of

aten = torch.ops.aten

_SAME = {aten.view.default, aten.expand.default, aten.alias.default, aten.detach.default, aten.clone.default, aten._to_copy.default}
_TERMS = {aten.add.Tensor: (0, 1), aten.add.Scalar: (0,), aten.sub.Tensor: (0,), aten.sub.Scalar: (0,)}
_HINT = ("return the score plus values that do not depend on it, or torch.where(mask, score, -inf); write a soft-cap or another "
         "function of the score as products, a softmax and the function between them")


def added_to_scores(function: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...],
                    like: torch.Tensor) -> torch.Tensor | None:
    """What `function` adds to the scores of a shape of a query `like`; None if it gives the scores themselves.

    Raises:
      CaptureError: it does something else, or reads a tensor that requires a gradient.
    """
    scores = torch.zeros(shape, dtype=torch.promote_types(like.dtype, torch.float32), device=like.device)
    begin = traced_node(scores)
    with torch.enable_grad():  # shows whether a captured tensor has a gradient
        result = function(scores)
    if traced_node(scores) is not begin:
        raise error_at(users_frames(), "a score_mod writes into the score", "return a new value: score + bias in place of score += bias")
    if result.shape == scores.shape and memory_of(result) == memory_of(scores):
        return None
    if result.requires_grad:
        raise error_at(users_frames(), "a score_mod reads a tensor that requires a gradient, which it would not get",
                       "detach() the tensor, or add a bias with a gradient by F.scaled_dot_product_attention(attn_mask=bias)")
    _check(begin, traced_node(result))
    return result.to(scores.dtype)


def _check(scores: torch.fx.Node, result: torch.fx.Node) -> None:
    """That each operator from `scores` to `result` keeps a score, or adds to it."""
    made: set[torch.fx.Node] = {scores}
    for node in _nodes_between(scores, result):
        if (given := [n for n in node.all_input_nodes if n in made]):
            _check_operator(node, given)
            made.add(node)
    if result not in made:
        raise error_at(users_frames(), "a score_mod gives values that do not depend on the score, which is not supported", _HINT)


def _nodes_between(scores: torch.fx.Node, result: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes that `result` is made of, from `scores` on, in order."""
    needed, found = {result}, []
    for node in reversed(list(scores.graph.nodes)):
        if node is scores:
            break
        if node in needed:
            needed.update(node.all_input_nodes)
            found.append(node)
    return found[::-1]


def _check_operator(node: torch.fx.Node, given: list[torch.fx.Node]) -> None:
    if node.target in _SAME:
        return
    scale = node.kwargs.get("alpha", 1)
    places = [i for i, value in enumerate(node.args) if isinstance(value, torch.fx.Node) and value in given]
    if node.target in _TERMS and len(places) == 1 and places[0] in _TERMS[node.target] and (places[0] == 0 or scale == 1):
        return
    if node.target is aten.where.self and places != [0] and 0 not in places \
            and all(i in places or _is_never(node.args[i]) for i in (1, 2)):
        return
    raise error_at(users_frames(), f"a score_mod computes {node.target} of the score, which is not supported", _HINT)


def _is_never(value: torch.fx.Node) -> bool:
    """Whether a node is -inf everywhere."""
    if value.target in _SAME:
        return _is_never(value.args[0])
    return value.target in (aten.full.default, aten.scalar_tensor.default, aten.full_like.default) and float("-inf") in value.args
