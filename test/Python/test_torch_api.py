"""Private names of PyTorch stand in spmd/torch_api only, and this release of PyTorch has all of them."""
from __future__ import annotations

import ast
import importlib
from typing import Any, Callable

import pytest
import torch
from torch.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy

from conftest import ROOT
from private_names import find_private_names, is_private
from spmd.torch_api import replaced

PACKAGE = ROOT / "python-bindings/spmd"
FOLDER = PACKAGE / "torch_api"
TOPICS = sorted(file.stem for file in FOLDER.glob("*.py") if file.stem != "__init__")

# The private attributes of PyTorch's objects and modules that spmd/torch_api uses, by their owners.
ATTRIBUTES = {
    "torch": "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _check_with _dynamo _foreach_mul_ _foreach_norm "
             "_foreach_zero_",
    "torch._C": "_DisableTorchDispatch _autograd _current_autograd_node _current_graph_task_id "
                "_dispatch_has_kernel_for_dispatch_key _distributed_c10d _len_torch_dispatch_stack _nn _parse_to "
                "_set_grad_enabled _set_mkldnn_enabled _set_storage_access_error_msg _set_throw_on_mutable_data_ptr "
                "_storage_Use_Count _top_saved_tensors_default_hooks",
    "torch.autograd": "_engine_run_backward _get_sequence_nr _make_grads",
    "a node of autograd": "_forward_cls _sequence_nr",
    "torch.compiler": "_is_compiling_flag _stance",
    "a tensor": "_backward_hooks _base _cdata _grad _grad_fn _is_view _make_subclass _post_accumulate_grad_hooks "
                "_version",
    "a module": "_backward_pre_hooks _buffers _check_input_dim _check_non_zero_input_channels _checkpoint_wrapped_module "
                "_flat_weights _flat_weights_names _forward_hooks _forward_pre_hooks _fsdp_wrapped_module _modules "
                "_non_persistent_buffers_set _orig_mod _parameters _wrap_overrides",
    "torch.nn.modules": "_detect_is_causal_mask _global_backward_hooks _global_backward_pre_hooks "
                        "_global_forward_hooks _global_forward_pre_hooks",
    "torch.nn.utils.clip_grad": "_clip_grads_with_norm_ _get_total_norm",
    "torch.nn.attention.flex_attention": "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG _LARGE_SPARSE_BLOCK_SIZE "
                                         "_create_sparse_block_from_block_mask _identity _validate_device _vmap_for_bhqkv",
    "torch.ops.torch_attn": "_varlen_attn",
    "torch.utils": "_foreach_supported_types",
    "torch.utils.checkpoint": "_CachingTorchDispatchMode _is_compiling",
    "an operator": "_backward_fn _destroy _name _opname _opoverload _overloadname _qualified_op_name _schema "
                   "_setup_context_fn",
    "torch.fx": "_disable_torch_fn_metadata_mode _find_nodes_lookup_table _guards_fn _in_spec _insert _len _out_spec "
                "_root",
    "an optimizer": "_multi_tensor_adafactor _opt_called _optimizer_ _optimizer_step_post_hooks "
                    "_optimizer_step_pre_hooks _single_tensor_adafactor _step_supports_amp_scaling",
    "a GradScaler": "_backoff_factor _check_inf_per_device _enabled _growth_factor _growth_interval _growth_tracker "
                    "_lazy_init_scale_growth_tracker _maybe_opt_step _per_optimizer_states _scale",
    "torch.distributed": "_comm_hooks _HYBRID_SHARD_ZERO2 _lambda_fn _module_classes _module_classes_to_ignore "
                         "_resolve_process_group _run_policy",
    "a distribution": "_validate_args",
    "a DataLoader's iterator": "_num_yielded",
}
NAMES = {name for names in ATTRIBUTES.values() for name in names.split()}

# Private attributes of other libraries, and attributes that this package adds to objects of PyTorch.
OTHERS = {
    "_call_callback_hooks", "_call_lightning_module_hook",  # functions of Lightning, which call hooks as its own loop does
    "_getframe",  # sys
    "_fields", "_replace",  # collections.namedtuple
    "_spmd_slot",  # a tensor of which the ranks hold the value
    "_spmd_is_number",  # a tensor that stands for a Python number while a step is traced
    "_inner_count", "_run_forward",  # mmengine
    "_prepare_inputs", "_get_options", "_rms", "_approx_sq_grad",  # transformers
}


def test_only_torch_api_has_private_names() -> None:
    sources = {str(file.relative_to(PACKAGE)): file.read_text()
               for file in PACKAGE.rglob("*.py") if FOLDER not in file.parents}
    found = [f"{file}:{line}: {name}" for file, line, name in find_private_names(sources, NAMES, OTHERS)]
    assert not found, "\n".join(["move these to spmd/torch_api:", *found])


@pytest.mark.parametrize("code, name", [
    ("from torch._subclasses import fake_tensor", "torch._subclasses.fake_tensor"),
    ("from torch.utils import _pytree as pytree", "torch.utils._pytree"),
    ("import torch._dynamo", "torch._dynamo"),
    ("from torch.fx.experimental.proxy_tensor import make_fx", "torch.fx.experimental.proxy_tensor.make_fx"),
    ("import torch\nx = torch._C", "torch._C"),
    ("import torch\nx = torch.fx.experimental.proxy_tensor", "torch.fx.experimental"),
    ("from torch.nn.utils import clip_grad\nx = clip_grad._get_total_norm", "torch.nn.utils.clip_grad._get_total_norm"),
    ("def f(tensor): return tensor._version", "_version"),
    ("def f(tensor): return getattr(tensor, '_base', None)", "_base"),
    ("def f(new): return new.of_a_release._to_come", "_to_come"),
    ("def f(tables): return g(_buffers=tables)", "_buffers"),
    ("class C(B):\n    def _run_policy(self): pass", "_run_policy"),
    ("class C(B):\n    def f(self): return self._buffers", "_buffers"),
    ("import sys\nx = 'torch._dynamo' in sys.modules", "torch._dynamo"),
])
def test_the_finder_finds(code: str, name: str) -> None:
    assert [found.name for found in find_private_names({"file.py": code}, NAMES, OTHERS)] == [name]


@pytest.mark.parametrize("code", [
    "import torch\nx = torch.ops.aten._conj.default",
    "import torch\naten = torch.ops.aten\nx = aten._conj.default",
    "class C:\n    def f(self): self._version = 1\n    def g(self): return self._version",
    "class C:\n    def f(self): self._own = 1\ndef g(c): return c._own",
    "'''The module torch._dynamo.'''",
    "import sys\nx = sys._getframe(1)",
])
def test_the_finder_accepts(code: str) -> None:
    assert find_private_names({"file.py": code}, NAMES, OTHERS) == []


def test_the_table_has_the_names_of_torch_api() -> None:
    used = set()
    for file in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                used.add(node.value)
            elif isinstance(node, ast.FunctionDef):
                used.add(node.name)
    assert NAMES == {name for name in used if is_private(name) and name.isidentifier()} - {"_C"}


@pytest.mark.parametrize("topic", TOPICS)
def test_this_release_has_the_names(topic: str) -> None:
    """An import looks up all names that a file binds."""
    importlib.import_module(f"spmd.torch_api.{topic}")


REPLACED = [pair for value in vars(replaced).values() if isinstance(value, tuple)
            for pair in (value if isinstance(value[0], tuple) else [value])]


@pytest.mark.parametrize("owner, name", REPLACED)
def test_this_release_has_the_names_to_replace(owner: str, name: str) -> None:
    module, _, path = owner.partition(":")
    found = importlib.import_module(module)
    assert hasattr(getattr(found, path) if path else found, name)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad


def _exported() -> torch.nn.Module:
    return torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).module()


def _stepped() -> torch.optim.Optimizer:
    return torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), 0.1)


def _scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu")


_ADD = torch.ops.aten.add.Tensor
# An object for each function `..._of` of torch_api.
EXAMPLES: dict[str, Callable[[], Any]] = {
    "tensors.version_of": lambda: torch.ones(1), "tensors.base_of": lambda: torch.ones(1),
    "tensors.cdata_of": lambda: torch.ones(1).untyped_storage(),
    "operators.schema_of": lambda: _ADD, "operators.opname_of": lambda: _ADD, "operators.overloadname_of": lambda: _ADD,
    "operators.overload_of": lambda: torch.library.custom_op("names::one", lambda x: x.clone(), mutates_args=(),
                                                             schema="(Tensor x) -> Tensor"),
    "operators.qualified_name_of": lambda: torch.ops.aten.add,
    "operators.autograd_functions_of": lambda: "names::one",
    "autograd.sequence_nr_of": lambda: torch.ones(1, requires_grad=True).exp().grad_fn,
    "autograd.forward_class_of": lambda: _Function.apply(torch.ones(1, requires_grad=True)).grad_fn,
    "autograd.accumulation_hooks_of": lambda: torch.ones(1, requires_grad=True),
    "tracing.last_node_of": torch.fx.Graph, "tracing.in_spec_of": _exported, "tracing.out_spec_of": _exported,
    "modules.parameters_of": torch.nn.Module, "modules.buffers_of": torch.nn.Module,
    "modules.children_of": torch.nn.Module,
    "modules.initialized_children_of": torch.nn.Module, "modules.non_persistent_buffers_of": torch.nn.Module,
    "modules.module_hooks_of": torch.nn.Module,
    "modules.all_tensor_hooks_of": lambda: torch.ones(1), "modules.tensor_hooks_of": lambda: torch.ones(1),
    "modules.original_of": lambda: torch.compile(torch.nn.Linear(2, 2)),
    "optimizers.post_step_hooks_of": _stepped, "optimizers.step_hooks_of": _stepped,
    "optimizers.scale_of": _scaler, "optimizers.optimizer_states_of": _scaler,
    "settings.num_yielded_of": lambda: iter(torch.utils.data.DataLoader([1])),
    "fsdp.module_classes_of": lambda: ModuleWrapPolicy([torch.nn.Linear]),
    "fsdp.lambda_of": lambda: CustomPolicy(lambda m: True),
    "fsdp_options.wrap_overrides_of": torch.nn.Module, "fsdp_options.ignored_classes_of": lambda: None,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_objects_have_their_attributes(name: str) -> None:
    topic, _, function = name.partition(".")
    getattr(importlib.import_module(f"spmd.torch_api.{topic}"), function)(EXAMPLES[name]())


def test_each_attribute_has_an_example() -> None:
    modules = {topic: importlib.import_module(f"spmd.torch_api.{topic}") for topic in TOPICS}
    functions = {f"{topic}.{name}" for topic, module in modules.items() for name in vars(module) if name.endswith("_of")}
    assert functions == set(EXAMPLES)


def test_hooks_and_states_are_found() -> None:
    """Where a missing attribute would be taken for an empty table."""
    optimizers, settings, tracing = (importlib.import_module(f"spmd.torch_api.{topic}")
                                     for topic in ("optimizers", "settings", "tracing"))
    optimizer, calls = _stepped(), []
    optimizer.register_step_pre_hook(calls.append)
    optimizer.register_step_post_hook(calls.append)
    assert [list(table.values()) for table in optimizers.step_hooks_of(optimizer)] == [[calls.append], [calls.append]]
    assert optimizers.is_initialized(optimizer)
    assert all(hasattr(_scaler(), name)
               for name in (*optimizers.SCALER_TENSORS.values(), *optimizers.SCALER_NUMBERS))
    assert settings.is_loader_iterator(iter(torch.utils.data.DataLoader([1])))
    assert tracing.CAN_APPEND_NODES and tracing.has_specs(_exported())
    assert any(name == tracing.GUARDS_MODULE for name, _ in _exported().named_children())
