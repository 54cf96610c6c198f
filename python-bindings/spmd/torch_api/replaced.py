"""Private functions and flags of PyTorch that capture/observe/patches.py replaces, which has the reasons.

Each is a pair (owner, name). An owner is "module" or "module:Class", as patches.Patch takes it; its module is imported.
"""
from __future__ import annotations

FAKE_TENSOR = "torch._subclasses.fake_tensor:FakeTensor"  # an owner of public names
FAKE_TENSOR_LOGGER = "torch._subclasses.fake_tensor"  # reports operators that reject fake tensors

FOREACH_TYPES = ("torch.utils._foreach_utils", "_foreach_supported_types")  # of clip_grad_norm_() and zero_grad()
ENGINE_RUN_BACKWARD = ("torch.autograd", "_engine_run_backward")  # all of backward() and grad() calls it
MAKE_GRADS = ("torch.autograd", "_make_grads")  # makes the gradients that backward() starts from
GET_TOTAL_NORM = ("torch.nn.utils.clip_grad", "_get_total_norm")  # the first half of clip_grad_norm_()
CLIP_GRADS_WITH_NORM = ("torch.nn.utils.clip_grad", "_clip_grads_with_norm_")  # the second half
CHECKPOINT_IS_COMPILING = ("torch.utils.checkpoint", "_is_compiling")  # whether a tracer records the region
IS_COMPILING_FLAG = ("torch.compiler", "_is_compiling_flag")  # what torch.compiler.is_compiling() returns
ADAFACTOR_UPDATES = (("torch.optim._adafactor", "_single_tensor_adafactor"),
                     ("torch.optim._adafactor", "_multi_tensor_adafactor"))
AMP_CHECK_AND_UNSCALE = ("torch", "_amp_foreach_non_finite_check_and_unscale_")  # the kernel of GradScaler.unscale_()
AMP_UPDATE_SCALE = ("torch", "_amp_update_scale_")  # the kernel of GradScaler.update()
MAYBE_OPT_STEP = ("torch.amp:GradScaler", "_maybe_opt_step")  # optimizers.maybe_opt_step()
DETECT_IS_CAUSAL_MASK = ("torch.nn.modules.transformer", "_detect_is_causal_mask")  # compares the values of a mask
CHECK_WITH = ("torch", "_check_with")  # what torch._check() and its siblings call
VALIDATE_ARGS = ("torch.distributions:Distribution", "_validate_args")  # whether distributions check values by default
