"""Shard units: which parameters are gathered together. PyTorch's words, docs/shard-units.md.

    spmd.shard_units(model, ModuleWrapPolicy({Block}), ranks=8)   # the units of a wrap policy
    spmd.fully_shard(block)                                       # annotations instead of a policy
"""
from ..annotations import enable_wrap, wrap
from .assign import Parameter, ShardUnits, Unit, shard_units
from .by_policy import fully_shard

__all__ = ["Parameter", "ShardUnits", "Unit", "enable_wrap", "fully_shard", "shard_units", "wrap"]
