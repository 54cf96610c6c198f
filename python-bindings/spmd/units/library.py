"""libspmd_units: include/spmd/ShardUnits/units.h in ctypes."""
from __future__ import annotations

import ctypes
import functools
import json
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_void_p
from typing import Any, Callable

from ..tools import find_library

_DECIDE = ctypes.CFUNCTYPE(c_int32, c_void_p, c_int32, c_int64, c_int32, c_int64, POINTER(c_char_p))


@functools.cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(find_library("libspmd_units.so", "SPMD_UNITS")))
    library.spmd_units_assign.argtypes = [c_char_p, _DECIDE, c_void_p, POINTER(c_void_p)]
    library.spmd_units_assign.restype = c_int32
    library.spmd_units_free.argtypes = [c_void_p]
    library.spmd_units_free.restype = None
    return library


def assign(request: dict, decide: Callable[[int, int, bool, int], tuple[bool, dict | None]]) -> dict[str, Any]:
    """The units of a request. `decide(policy, module, recurse, nonwrapped_numel)` answers for policies that call back.

    Raises:
      ValueError: what the library finds wrong; whatever `decide` raises.
    """
    raised: list[BaseException] = []
    answered: list[bytes] = []  # lives until the next call, as the library wants it

    @_DECIDE
    def callback(_context, policy, module, recurse, numel, options):
        try:
            wanted, given = decide(policy, module, bool(recurse), numel)
            if given is not None:
                answered[:] = [json.dumps(given).encode()]
                options[0] = answered[0]
            return int(wanted)
        except BaseException as error:  # it may not pass through C++
            raised.append(error)
            return -1

    library, result = _library(), c_void_p()
    code = library.spmd_units_assign(json.dumps(request).encode(), callback, None, ctypes.byref(result))
    text = ctypes.cast(result, c_char_p).value.decode()
    library.spmd_units_free(result)
    if raised:
        raise raised[0]
    if code != 0:
        raise ValueError(text)
    return json.loads(text)
