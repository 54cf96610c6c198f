"""Tensors: versions, views, storages, subclasses, and functions of lists of tensors."""
from __future__ import annotations

from operator import attrgetter

import torch
# A region that leaves the versions of tensors as they are, for code that restores values.
from torch.autograd.grad_mode import _unsafe_preserve_version_counter as unsafe_preserve_version_counter

version_of = attrgetter("_version")  # the number of writes in place, as autograd counts them; there is no public query
base_of = attrgetter("_base")  # the tensor that a view was made from, else None; there is no public query
is_view = torch.Tensor._is_view
cdata_of = attrgetter("_cdata")  # the address of a storage object; data_ptr() of a fake storage raises an error
storage_use_count = torch._C._storage_Use_Count  # the number of owners of the storage with this cdata_of()

# A tensor of a subclass that shares memory with a given tensor; the public constructors copy, or run dispatch modes.
make_subclass = torch.Tensor._make_subclass
# Makes data_ptr() raise an error, as FakeTensor's constructor does.
set_throw_on_mutable_data_ptr = torch._C._set_throw_on_mutable_data_ptr

# Takes a tensor's storage away: functions that use it raise a RuntimeError with the given text. `tensor.data = other` ends that.
set_storage_access_error = torch._C._set_storage_access_error_msg

# The private attributes of tensors whose value does not depend on the data.
METADATA = ("_version", "_grad", "_grad_fn", "_backward_hooks", "_post_accumulate_grad_hooks")

# The operators of lists of tensors that torch.optim uses; torch has no public spelling of them.
foreach_mul_ = torch._foreach_mul_
foreach_norm = torch._foreach_norm
foreach_zero_ = torch._foreach_zero_
