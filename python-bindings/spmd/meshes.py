"""How ranks are arranged: PyTorch's DeviceMesh, sizes, and the command line's words for them."""
from __future__ import annotations

import math
from typing import Any


def mesh_sizes(mesh: Any, place: str) -> tuple[int, ...]:
    """(shard,) or (replicate, shard) of a mesh: a DeviceMesh with one or two axes, or the sizes themselves.

    Raises:
      ValueError: for another number of axes, for an axis shard of one rank beside one that replicates, and where the
        ranks do not stand in the mesh in their order.
    """
    if isinstance(mesh, (tuple, list)):
        sizes = tuple(mesh)
    elif mesh.ndim == 1:
        sizes = (mesh.size(),)
    else:
        ranks = mesh.mesh
        sizes = tuple(ranks.shape)
        if ranks.flatten().tolist() != list(range(ranks.numel())):
            raise ValueError(f"{place}: the mesh has the ranks {ranks.tolist()}; expected all ranks, in their order")
    if len(sizes) not in (1, 2) or not all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sizes):
        raise ValueError(f"{place} expects a mesh with one axis, or with two, that ranks have the same along and that "
                         f"units are cut along, but got {mesh}")
    if len(sizes) == 2 and sizes[0] > 1 and sizes[1] == 1:
        raise ValueError(f"{place}: nothing is cut over an axis of 1 rank in {mesh}; omit the mesh, and pass "
                         "mode=\"replicate\"")
    return sizes


def mesh_text(mesh: Any, place: str) -> str:
    """The mesh as for spmd-compile --mesh: text, or what mesh_sizes takes."""
    if isinstance(mesh, str):
        return mesh
    *replicate, shard = mesh_sizes(mesh, place)
    return f"replicate:{replicate[0]},shard:{shard}" if replicate else f"shard:{shard}"


def mesh_text_with_tensor(mesh: Any, place: str) -> str:
    """The same of a mesh whose last axis is the tensor axis: (tensor,), (shard, tensor), (replicate, shard, tensor)."""
    if isinstance(mesh, str):
        return mesh
    sizes = tuple(mesh) if isinstance(mesh, (tuple, list)) else tuple(mesh.mesh.shape)
    if not isinstance(mesh, (tuple, list)) and mesh.mesh.flatten().tolist() != list(range(mesh.mesh.numel())):
        raise ValueError(f"{place}: the mesh has the ranks {mesh.mesh.tolist()}; expected all ranks, in their order")
    if len(sizes) not in (1, 2, 3) or not all(isinstance(s, int) and not isinstance(s, bool) and s > 0 for s in sizes):
        raise ValueError(f"{place} expects, beside override_placements, a mesh of one to three axes, the last of them "
                         f"the tensor axis, but got {mesh}")
    *data, tensor = sizes
    return f"{mesh_text(tuple(data), place)},tensor:{tensor}" if data else f"tensor:{tensor}"


def without_tensor(text: str) -> str:
    """A mesh in words without its tensor axis; shard:1 where there is no other."""
    return ",".join(axis for axis in text.split(",") if not axis.startswith("tensor:")) or "shard:1"


def count_ranks(text: str) -> int:
    """The ranks of a mesh in words.

    Raises:
      ValueError: where they are no mesh.
    """
    try:
        return math.prod(int(axis.split(":")[1]) for axis in text.split(","))
    except (IndexError, ValueError):
        raise ValueError(f"mesh is {text!r}; expected replicate:N,shard:M or shard:M, and tensor:T behind it") from None
