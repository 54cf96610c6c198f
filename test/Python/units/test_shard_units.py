"""spmd.shard_units beyond the policies: what it returns, annotations, options, tied and frozen parameters, errors."""
from __future__ import annotations

import copy
import json
import math
import time
import warnings
from functools import partial

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import BackwardPrefetch, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy
from torch.distributed.fsdp.wrap import (CustomPolicy, ModuleWrapPolicy, _Policy, always_wrap_policy,
                                         size_based_auto_wrap_policy)

import spmd
from spmd.annotations import annotation_of
from spmd.units.choice import UnitChoice
from tools import Block, Model, comparable, report, report_json, write_step


def names(units) -> list[str]:
    return [u.name for u in units]


def find(units, name):
    return next(u for u in units if u.name == name)


# --- What it returns ------------------------------------------------------------------------------------------------

def test_layout_and_slices() -> None:
    model = nn.Sequential(nn.Linear(20, 30), nn.Linear(30, 3))
    unit, = spmd.shard_units(model, "none", ranks=4)
    assert [(p.name, p.offset, p.numel) for p in unit.parameters] == [
        ("0.weight", 0, 600), ("0.bias", 640, 30), ("1.weight", 768, 90), ("1.bias", 896, 3)]
    assert unit.buffers == ({"dtype": "f32", "updated": True, "padded": 1024, "chunk": 256},)
    assert unit.parameters[0].slices == ((0, 0, 256), (1, 256, 512), (2, 512, 600))
    assert unit.parameters[2].slices == ((3, 0, 90),)
    assert (unit.numel, unit.padding, unit.bytes_gathered, unit.bytes_per_rank) == (723, 301, 4096, 1024)


class LlamaLayer(nn.Module):
    """The parameters of transformers' LlamaDecoderLayer, in its order."""

    def __init__(self, size=4096, heads=1024, inner=14336):
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)  # noqa: E731
        self.self_attn = nn.ModuleDict({"q_proj": linear(size, size), "k_proj": linear(size, heads),
                                        "v_proj": linear(size, heads), "o_proj": linear(size, size)})
        self.mlp = nn.ModuleDict({"gate_proj": linear(size, inner), "up_proj": linear(size, inner),
                                  "down_proj": linear(inner, size), "act_fn": nn.SiLU()})
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(size), nn.RMSNorm(size)


def make_llama(source: str) -> tuple[nn.Module, type]:
    """Llama-3-8B's parameters on the meta device, and the class of its layers."""
    with torch.device("meta"):
        if source == "by hand":
            model = nn.ModuleDict({"embed_tokens": nn.Embedding(128256, 4096),
                                   "layers": nn.ModuleList(LlamaLayer() for _ in range(32)), "norm": nn.RMSNorm(4096)})
            whole = nn.ModuleDict({"model": model, "lm_head": nn.Linear(4096, 128256, bias=False)})
            return whole.to(torch.bfloat16), LlamaLayer
        transformers = pytest.importorskip("transformers")
        from transformers.models.llama.modeling_llama import LlamaDecoderLayer
        config = transformers.LlamaConfig(
            vocab_size=128256, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
            num_key_value_heads=8, max_position_embeddings=8192, rope_theta=500000.0, tie_word_embeddings=False)
        return transformers.LlamaForCausalLM(config).to(torch.bfloat16), LlamaDecoderLayer


@pytest.mark.parametrize("source", ["transformers", "by hand"])
def test_llama_3_8b(source: str) -> None:
    """Listed in under a second; where sizes are multiples of 128, offsets are those of FSDP's flat parameter."""
    model, layer = make_llama(source)
    spmd.shard_units(nn.Linear(1, 1))  # the library is loaded
    start = time.process_time()
    units = spmd.shard_units(model, ModuleWrapPolicy({layer}), ranks=64)
    assert time.process_time() - start < 1
    assert names(units) == [f"model.layers.{i}" for i in range(32)] + [""]
    assert sum(u.numel for u in units) == sum(p.numel() for p in model.parameters()) == 8_030_261_248
    modules, parameters, taken = dict(model.named_modules()), {}, set()
    for name, parameter in model.named_parameters():
        parameters[parameter] = name
    for unit in units:
        own = [p for p in modules[unit.name].parameters() if p not in taken]
        taken |= set(own)
        assert [p.name for p in unit.parameters] == [parameters[p] for p in own]
        # FSDP: one after the other, each aligned to 16 bytes, the whole padded to a multiple of the ranks.
        offset, fsdp_offsets = 0, []
        for parameter in own:
            fsdp_offsets.append(offset)
            offset += -(-parameter.numel() // 8) * 8
        assert [p.offset for p in unit.parameters] == fsdp_offsets
        assert all(p.numel() % 128 == 0 for p in own)
        fsdp_padding = -offset % 64
        # Ours: padded to a multiple of 128 × ranks. A layer needs none in either; the root needs 4,096 elements here.
        assert unit.padding == -offset % (64 * 128) == (4096 if unit.name == "" else 0) and fsdp_padding == 0
        chunk = (offset + unit.padding) // 64
        assert unit.buffers == ({"dtype": "bf16", "updated": True, "padded": chunk * 64, "chunk": chunk},)
        for parameter in unit.parameters:
            for rank, begin, end in parameter.slices:
                assert chunk * rank <= parameter.offset + begin < parameter.offset + end <= chunk * (rank + 1)
            assert [s[1] for s in parameter.slices] == [0] + [s[2] for s in parameter.slices[:-1]]
            assert parameter.slices[-1][2] == parameter.numel


# --- Tied, frozen, ignored, exempt ----------------------------------------------------------------------------------

def test_a_tied_parameter_is_at_the_common_ancestor() -> None:
    units = spmd.shard_units(Model(tied=True), always_wrap_policy)
    assert [p.name for p in find(units, "").parameters] == ["embed.weight"]
    assert find(units, "embed").parameters == () and find(units, "head").parameters == ()
    assert units.remarks == ["parameter 'embed.weight' is shared by the modules 'embed', 'head': it belongs to the "
                             "unit '(root)' around their nearest common ancestor"]
    assert spmd.shard_units(Model(tied=True), ModuleWrapPolicy({Block}), strict_tied=True).remarks == [
        "parameter 'embed.weight' is shared by the modules 'embed', 'head': it belongs to the unit '(root)' that has "
        "them all"]
    with pytest.raises(ValueError, match="'embed', 'head', which are in different units; .* strict-tied forbids that"):
        spmd.shard_units(Model(tied=True), always_wrap_policy, strict_tied=True)


def test_a_shared_module_belongs_to_what_contains_all_its_owners() -> None:
    shared = nn.Linear(4, 4)
    a, b = nn.Sequential(nn.Linear(4, 4), shared), nn.Sequential(shared, nn.Linear(4, 4))
    units = spmd.shard_units(nn.ModuleDict({"x": nn.ModuleList([a, b])}), CustomPolicy(lambda m: m in (a, b)))
    assert [(u.name, [p.name for p in u.parameters]) for u in units] == [
        ("x.0", ["x.0.0.weight", "x.0.0.bias"]), ("x.1", ["x.1.1.weight", "x.1.1.bias"]),
        ("", ["x.0.1.weight", "x.0.1.bias"])]


def test_a_mixed_unit_is_a_warning() -> None:
    model = Model()
    model.h[0].ffn.requires_grad_(False)
    with pytest.warns(UserWarning,
                      match=r"unit 'h.0' mixes trainable parameters \('h.0.attn.in_proj_weight', .*\) with "
                      r"frozen ones \('h.0.ffn.0.weight', .*\): 280 elements would be gathered for nothing"):
        units = spmd.shard_units(model, ModuleWrapPolicy({Block}), ranks=2)
    assert find(units, "h.0").frozen_numel == 280
    assert [b["updated"] for b in find(units, "h.0").buffers] == [True, False]


def test_ignored() -> None:
    model = Model()
    units = spmd.shard_units(model, ModuleWrapPolicy({Block}), ranks=2, ignored_modules=[model.h[1]],
                             ignored_states=[model.norm.weight])
    assert names(units) == ["h.0", "h.2", ""]
    assert {p.name for p in units.ignored.parameters} == {
        n for n, _ in model.named_parameters() if n.startswith("h.1.")} | {"norm.weight"}
    assert units.ignored.options["mode"] == "replicate"
    assert names(spmd.shard_units(model, ModuleWrapPolicy({Block}), ignored_states=[model.h[1]])) == ["h.0", "h.2", ""]


def test_exempt_classes() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), nn.LayerNorm(4))
    bf16 = MixedPrecision(param_dtype=torch.bfloat16)
    units = spmd.shard_units(model, CustomPolicy(lambda m: m is model[0]), options={"mixed_precision": bf16})
    assert [(u.name, u.options["precision"]) for u in units] == [
        ("0.1", None), ("0", {"param": "bf16", "reduce": "bf16"}), ("", {"param": "bf16", "reduce": "bf16"})]
    bf16 = MixedPrecision(param_dtype=torch.bfloat16, _module_classes_to_ignore=[nn.LayerNorm])
    assert names(spmd.shard_units(model, CustomPolicy(lambda m: m is model[0]), options={"mixed_precision": bf16})) == [
        "0", "1", ""]
    one = spmd.shard_units(model, CustomPolicy(lambda m: {"mixed_precision": bf16} if m is model[0] else False))
    assert names(one) == ["0.1", "0", ""]


# --- Options --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("given, expected", [
    ({"mode": "replicate"}, {"mode": "replicate"}), ({"reshard_after_forward": 2}, {"reshard_after_forward": 2}),
    ({"reshard_after_forward": 4}, {"reshard_after_forward": True}),
    ({"reshard_after_forward": 1}, {"reshard_after_forward": False}), ({"prefetch": 0}, {"prefetch": 0}),
    ({"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}, {"reshard_after_forward": False}),
    ({"sharding_strategy": ShardingStrategy.NO_SHARD}, {"mode": "replicate"}),
    ({"backward_prefetch": BackwardPrefetch.BACKWARD_PRE}, {"prefetch": 1}),
    ({"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)},
     {"precision": {"param": "bf16", "reduce": "f32"}})])
def test_options(given, expected) -> None:
    units = spmd.shard_units(Model(), CustomPolicy(lambda m: given if isinstance(m, Block) else False), ranks=4)
    defaults = {"mode": "fully_shard", "reshard_after_forward": True, "precision": None}
    assert find(units, "h.1").options == {**defaults, **expected} and find(units, "").options == defaults


def test_options_survive_a_plan_file(tmp_path) -> None:
    model = Model()
    units = spmd.shard_units(model, CustomPolicy(lambda m: {"mode": "replicate", "prefetch": 0} if isinstance(m, Block)
                                                 else isinstance(m, nn.Linear)), ranks=4, options={"prefetch": 1})
    units.save(tmp_path / "plan.json")
    reported = report_json(write_step(model, tmp_path / "m.step"), f"--policy-file={tmp_path}/plan.json", "--ranks=4")
    assert comparable(reported) == comparable(units)


# --- Annotations ----------------------------------------------------------------------------------------------------

def test_fully_shard() -> None:
    model = Model()
    before = copy.deepcopy(model.state_dict()), [type(m) for m in model.modules()], repr(model)
    for block in model.h:
        assert spmd.fully_shard(block) is block
    pair = [model.norm, model.head]
    assert spmd.fully_shard(pair, reshard_after_forward=False) is pair
    spmd.fully_shard(model)
    assert [type(m) for m in model.modules()] == before[1] and repr(model) == before[2]
    torch.testing.assert_close(model.state_dict(), before[0], rtol=0, atol=0)
    units = spmd.shard_units(model)
    assert [(u.name, u.modules, u.options["reshard_after_forward"]) for u in units] == [
        ("h.0", ("h.0",), True), ("h.1", ("h.1",), True), ("h.2", ("h.2",), True), ("norm", ("norm", "head"), False),
        ("", ("",), False)]
    assert [p.name for p in find(units, "norm").parameters] == ["norm.weight", "norm.bias", "head.weight"]


def test_a_parameter_tied_within_one_unit_stays_there() -> None:
    model = Model(tied=True)
    spmd.fully_shard([model.embed, model.head])
    assert [p.name for p in find(spmd.shard_units(model), "embed").parameters] == ["embed.weight"]


@pytest.mark.parametrize("container", [nn.ModuleList([nn.Linear(2, 2)]), nn.ModuleDict({"a": nn.Linear(2, 2)})])
def test_fully_shard_refuses_what_pytorch_refuses(container) -> None:
    from torch.distributed.fsdp._fully_shard._fsdp_init import _validate_module
    with pytest.raises(ValueError) as theirs:
        _validate_module(container, "fully_shard")
    with pytest.raises(ValueError) as ours:
        spmd.fully_shard(container)
    assert str(ours.value) == str(theirs.value)

    class Called(nn.ModuleList):
        def forward(self, x):
            return x
    assert spmd.fully_shard(Called([nn.Linear(2, 2)]))


class Mesh:
    def __init__(self, *sizes):
        self.sizes, self.ndim = sizes, len(sizes)

    def size(self):
        return math.prod(self.sizes)

    @property
    def mesh(self):
        return torch.arange(self.size()).reshape(self.sizes)


def test_fully_shard_mesh() -> None:
    model = Model()
    spmd.fully_shard(model, mesh=Mesh(4))
    assert names(spmd.shard_units(model, ranks=4)) == [""]
    with pytest.raises(ValueError, match=r"unit '\(root\)': is annotated for a mesh of 4 ranks, there are 2"):
        spmd.shard_units(model, ranks=2)
    with pytest.raises(ValueError, match="a mesh with one axis, or with two"):
        spmd.fully_shard(Model(), mesh=Mesh(2, 2, 2))
    with pytest.raises(ValueError, match='nothing is cut over an axis of 1 rank .*mode="replicate"'):
        spmd.fully_shard(Model(), mesh=Mesh(2, 1))
    with pytest.raises(ValueError, match="should be a factor of 4, not 3"):
        spmd.fully_shard(Model(), mesh=Mesh(4), reshard_after_forward=3)


def test_meshes_of_two_axes() -> None:
    model = Model()
    spmd.fully_shard(model, mesh=Mesh(2, 4))
    units = spmd.shard_units(model, ranks=8)
    assert units.mesh == (2, 4) and units.ranks == 8  # the annotation arranges them
    assert units[0].buffers[0]["chunk"] * 4 == units[0].buffers[0]["padded"]
    assert {s[0] for p in units[0].parameters for s in p.slices} <= {0, 1, 2, 3}
    for mesh in ((2, 4), Mesh(2, 4), "replicate:2,shard:4"):
        assert spmd.shard_units(model, mesh=mesh).mesh == (2, 4)
    with pytest.raises(ValueError, match="for a mesh of replicate:2,shard:4, there are 8 ranks"):
        spmd.shard_units(model, mesh="shard:8")
    with pytest.raises(ValueError, match="for a mesh of replicate:2,shard:4, there are 4 ranks"):
        spmd.shard_units(model, ranks=4)
    for strategy, reshard in (("HYBRID_SHARD", True), ("_HYBRID_SHARD_ZERO2", False)):
        options = {"sharding_strategy": ShardingStrategy[strategy]}
        (unit,) = spmd.shard_units(Model(), mesh=(2, 2), options=options)
        assert (unit.options["mode"], unit.options["reshard_after_forward"]) == ("hybrid", reshard)
    for wrong, message in (("replicate:2", "expected replicate:N,shard:M or shard:M"),
                           ("data:2", "'data:2': expected replicate:N,shard:M"),
                           ("replicate:2,shard:0", "'shard:0': expected a number of ranks"),
                           ("replicate:2,shard:1", "ranks=2 with the mode replicate")):
        with pytest.raises(ValueError, match=message):
            spmd.shard_units(Model(), mesh=wrong)
    with pytest.raises(ValueError, match="has 4 ranks, and ranks is 3"):
        spmd.shard_units(Model(), mesh=(2, 2), ranks=3)
    with pytest.raises(ValueError, match="has 4 ranks, and ranks is 1"):
        spmd.shard_units(Model(), mesh=(2, 2), ranks=1)


def test_fully_shard_ignores_parameters() -> None:
    model = Model()
    spmd.fully_shard(model.h[0], ignored_params={model.h[0].ffn[0].weight})
    units = spmd.shard_units(model, ranks=2)
    assert [p.name for p in units.ignored.parameters] == ["h.0.ffn.0.weight"]
    spmd.fully_shard(model.h[1], ignored_params={nn.Parameter(torch.ones(3))})
    with pytest.raises(ValueError, match=r"ignored parameter of shape \[3\] is not in the model"):
        spmd.shard_units(model)


def test_annotations_are_made_once_and_bottom_up() -> None:
    model = Model()
    spmd.fully_shard(model.h[1])
    with pytest.raises(ValueError, match=r"fully_shard: module 'h.1' \(WideBlock\) is a unit already"):
        spmd.fully_shard(model.h[1])
    with spmd.enable_wrap(), pytest.raises(ValueError, match=r"wrap: module 'h.1' \(WideBlock\) is a unit already"):
        spmd.wrap(model.h[1])
    with pytest.raises(ValueError, match="module 'h.1' is annotated as a unit already"):
        spmd.shard_units(model, always_wrap_policy)
    spmd.fully_shard(model.h[1].attn)
    with pytest.raises(ValueError, match="module 'h.1.attn' was made a unit after 'h.1', which contains it"):
        spmd.shard_units(model)


def test_wrap() -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = spmd.wrap(nn.Linear(4, 4))
            self.b = spmd.wrap(nn.Linear(4, 4), mode="replicate")
            self.c = nn.Linear(4, 4)

    assert names(spmd.shard_units(Net())) == [""]
    with spmd.enable_wrap(wrapper_cls=object, reshard_after_forward=False, mode="fully_shard"):
        model = Net()
        with pytest.raises(NotImplementedError, match="does not nest"), spmd.enable_wrap():
            pass
        with pytest.raises(ValueError, match="wrap: unknown option 'shard' of a shard unit; allowed: mode, "):
            spmd.wrap(nn.Linear(1, 1), shard=True)
    units = spmd.shard_units(model)
    assert [(u.name, u.options["mode"], u.options["reshard_after_forward"]) for u in units] == [
        ("a", "fully_shard", False), ("b", "replicate", False), ("", "fully_shard", False)]
    spmd.wrap(model.a)  # outside of the context, this is nothing


# --- Errors ---------------------------------------------------------------------------------------------------------

def custom(result):
    return CustomPolicy(lambda m: result if isinstance(m, Block) else False)


@pytest.mark.parametrize("policy, words, error", [
    (custom(3), {}, "CustomPolicy's function returned 3 for module 'h.0'; expected True, False or a dict"),
    (custom({"shard": 1}), {}, "CustomPolicy at module 'h.0': unknown option 'shard' of a shard unit; allowed: mode, "
     "reshard_after_forward, precision, prefetch, and PyTorch's sharding_strategy"),
    (custom({"reshard_after_forward": 3}), {"ranks": 4},
     "unit 'h.0': reshard_after_forward is 3, expected a factor of the 4"),
    (custom({"mode": "zero"}), {}, "mode is 'zero'; allowed: 'fully_shard', 'shard_grad_op', 'shard_optimizer', 'hybrid', 'replicate', 'default'"),
    (custom({"prefetch": 2}), {}, "prefetch is 2; allowed: 0, 1"),
    (custom({"sharding_strategy": ShardingStrategy.HYBRID_SHARD}), {"ranks": 4},
     "unit 'h.0': mode hybrid is for a mesh of two axes, there are 4 ranks; arrange them as mesh=replicate:N,shard:M"),
    (custom({"sharding_strategy": "ZERO"}), {}, "sharding_strategy is ZERO; supported: "),
    ("class:Blok", {}, "no module has class 'Blok' (closest: Block, "),
    ("size:1e9", {}, "policy 'size:1e9': position 7: expected ',' or the end, found 'e'"),
    ("size:1000000", {}, "policy 'size:1000000' chooses no module: the whole model is one unit; the largest module, "),
    ("none", {"ignored_states": [nn.Parameter(torch.ones(2, 3))]},
     "ignored parameter of shape [2, 3] is not in the model"),
    ("none", {"ignored_states": [nn.Parameter(torch.ones(1)), nn.ReLU()]}, "all nn.Parameter or all nn.Module"),
    ("none", {"ignored_modules": [nn.ReLU()]}, "ignored module ReLU is not in the model"),
    ("none", {"ranks": 0}, "ranks is 0, expected at least 1")])
def test_errors(policy, words, error) -> None:
    with pytest.raises(ValueError) as raised:
        spmd.shard_units(Model(), policy, **words)
    assert error in str(raised.value)


def test_what_a_callable_raises_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        spmd.shard_units(Model(), lambda module, recurse, nonwrapped_numel: 1 / 0)
    with pytest.raises(TypeError, match="policy is 3"):
        spmd.shard_units(Model(), 3)


def test_classes_that_match_nothing_are_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"no module has class 'torch.nn.modules.conv.Conv2d' \(closest: "):
        assert names(spmd.shard_units(Model(), ModuleWrapPolicy({Block, nn.Conv2d})))[-1] == ""
    with pytest.warns(UserWarning, match="chooses no module: the whole model is one unit"):
        spmd.shard_units(Model(), partial(size_based_auto_wrap_policy, min_num_params=10**6))


def test_two_classes_of_one_name_are_two() -> None:
    def make():
        class Local(nn.Linear):
            pass
        return Local
    first, second = make(), make()
    model = nn.Sequential(first(2, 2), second(2, 2))
    assert names(spmd.shard_units(model, ModuleWrapPolicy({second}))) == ["1", ""]


@pytest.mark.parametrize("arguments, error", [
    (["--policy=class:Blok"], "no module has class 'Blok' (closest: Block, "),
    (["--policy=class:tools.Blok"], "no module has class 'tools.Blok' (closest: tools.Block, "),
    (["--policy=name:h.9"], "no module path matches 'h.9' (closest: h.0, "),
    (["--policy=size:10,exclude=Nothing"], "no module has class 'Nothing' (closest: "),
    (["--policy=class:Block;Head"], "policy 'class:Block;Head': position 12: expected a class name, found ';'"),
    (["--policy=class:"], "policy 'class:': position 7: expected a class name"),
    (["--policy=size:"], "policy 'size:': position 6: expected a number of elements"),
    (["--policy=size:5,leaf=A"], "policy 'size:5,leaf=A': position 8: expected force-leaf=A+B or exclude=A+B"),
    (["--policy=name:("], "policy 'name:(': position 6: '(' is no regular expression"),
    (["--policy=or(always;blocks)"], "policy 'or(always;blocks)': position 11: expected annotations, auto, none, always"),
    (["--policy=or(always"], "policy 'or(always': position 10: expected ')'"),
    (["--ignored-parameter=head.bias"], "ignored parameter 'head.bias' is not in the model (closest: norm.bias, "),
    (["--ignored-module=heads"], "ignored module 'heads' is not in the model (closest: head, "),
    (["--policy=always", "--strict-tied"], "which are in different units"),
    (["--ranks=0"], "ranks is 0, expected at least 1"),
    (["--mode=zero3"], "--mode=zero3: expected fully_shard, shard_grad_op, shard_optimizer, hybrid, replicate, default")])
def test_command_line_errors(arguments, error, tmp_path) -> None:
    done = report(write_step(Model(tied=True), tmp_path / "m.step"), *arguments)
    assert done.returncode == 2 and error in done.stderr and done.stdout == ""


PLAN = {"format": "spmd-shard-units", "version": 1}


@pytest.mark.parametrize("plan, error", [
    ({**PLAN, "rules": [{"class": "Block"}, {"class": "Block", "module": "h.0"}]},
     "/rules/1/module: a rule has one of"),
    ({**PLAN, "rules": [{"unit": True}]}, "/rules/0: a rule needs one of module, class, name and policy"),
    ({**PLAN, "rules": [{"class": "Block", "options": {"shard": 1}}]},
     "/rules/0/options/shard: unknown option of a shard unit; allowed: mode, "),
    ({**PLAN, "rules": [{"class": "Block", "options": {"mode": "zero"}}]},
     '/rules/0/options/mode: expected fully_shard, shard_grad_op, shard_optimizer, hybrid, replicate, default; found "zero"'),
    ({**PLAN, "rules": [{"class": "Block", "options": {"precision": {"param": "i32"}}}]},
     "/rules/0/options/precision/param: expected a floating dtype"),
    ({**PLAN, "rules": [{"class": "Block", "unit": False, "options": {}}]}, "/rules/0/options: a rule with"),
    ({**PLAN, "rules": [{"policy": "size:x"}]}, "/rules/0/policy: policy 'size:x': position 6: expected a number"),
    ({**PLAN, "rules": [{"class": "Blok"}]}, "/rules/0: no module has class 'Blok' (closest: Block, "),
    ({**PLAN, "rules": [{"module": "h.7"}]}, "/rules/0: no module is called 'h.7' (closest: h.0, "),
    ({**PLAN, "rules": [{"module": ["h.0", "h.0.attn"]}]},
     "modules of one unit lie in each other: 'h.0.attn' in 'h.0'"),
    ({**PLAN, "rules": [], "wrap": 1}, "/wrap: unknown member of a plan; allowed: format, "),
    (PLAN, "/rules: is missing"), ({**PLAN, "version": 2, "rules": []}, "/version: expected version 1, found 2"),
    ({"format": "plan", "version": 1, "rules": []}, '/format: expected "spmd-shard-units", found "plan"'),
    ({**PLAN, "rules": [], "ignored_parameters": ["w"]}, "ignored parameter 'w' is not in the model")])
def test_plan_file_errors(plan, error, tmp_path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    done = report(write_step(Model(), tmp_path / "m.step"), f"--policy-file={file}")
    assert done.returncode == 2 and error in done.stderr and done.stdout == ""


# --- What units cost ------------------------------------------------------------------------------------------------

def test_report_of_costs(tmp_path) -> None:
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.big = nn.Linear(1000, 1000, bias=False, device="meta")
            self.small = nn.Linear(100, 100, bias=False, device="meta").requires_grad_(False)

    lines = report(write_step(Net(), tmp_path / "m.step"), "--policy=name:small", "--ranks=4").stdout.splitlines()
    table = [line.split() for line in lines]
    assert table[1] == ("unit mode reshard precision prefetch parameters elements padding frozen bytes gathered bytes "
                        "per rank").split()
    assert table[2] == ["small", "fully_shard", "yes", "-", "-", "1", "10,000", "240", "100%", "40,960", "10,240"]
    assert table[3] == ["(root)", "fully_shard", "yes", "-", "-", "1", "1,000,000", "448", "0%",
                        "4,001,792", "1,000,448"]
    assert lines[5:] == ["warning: 1 unit gathers less than 1 MB, which takes as long as latency does: small",
                         "warning: the root unit holds 99% of the parameters, which are all gathered at once"]
    balanced = report(write_step(Net(), tmp_path / "m.step"), "--policy=name:big", "--ranks=4").stdout
    assert "half" not in balanced and "the root" not in balanced


def test_a_users_policy_gets_the_root_kwargs() -> None:
    """Those of all units, which it may copy, as PyTorch's own policies do, and change."""
    seen = []

    class Own(_Policy):
        def _run_policy(self, root_module, ignored_modules, root_kwargs):
            seen.append(root_kwargs)
            return {root_module.h[0]: root_kwargs, root_module.h[1]: root_kwargs | {"backward_prefetch": None}}

    options = {"reshard_after_forward": False, "mixed_precision": MixedPrecision(param_dtype=torch.bfloat16)}
    units = {u.name: u for u in spmd.shard_units(Model(), Own(), options=options)}
    assert seen == [options] and options is not seen[0]
    assert units["h.0"].given_options == {"reshard_after_forward": False, "precision": {"param": "bf16", "reduce": "bf16"}}
    assert units["h.1"].given_options == units["h.0"].given_options | {"prefetch": 0}
    seen.clear()
    UnitChoice(Own(), mode="replicate").plan(Model(), 2)
    assert seen == [{"mode": "replicate"}]


def test_modules_that_override_their_options() -> None:
    """_wrap_overrides beat the policy, whatever kind it is of, and enable_wrap."""
    def model() -> Model:
        made = Model()
        made.h[1]._wrap_overrides = {"reshard_after_forward": False}
        made.norm._wrap_overrides = {"reshard_after_forward": False}  # nobody chooses it
        return made

    for policy in (ModuleWrapPolicy({Block}), "class:Block",
                   CustomPolicy(lambda m: {"reshard_after_forward": True} if isinstance(m, Block) else False)):
        units = {u.name: u for u in spmd.shard_units(model(), policy)}
        assert {name: u.options["reshard_after_forward"] for name, u in units.items()} == \
            {"h.0": True, "h.1": False, "h.2": True, "": True}, policy
    choice = UnitChoice("class:Block")
    assert choice.words(Model()) == ["--policy=class:Block"] and choice.plan(Model(), 2) is None
    assert choice.words(model()) == [] and choice.plan(model(), 2)["rules"][1] == \
        {"module": "h.1", "options": {"reshard_after_forward": False}}
    wrapped = model()
    with spmd.enable_wrap(reshard_after_forward=True):
        for block in wrapped.h:
            spmd.wrap(block, reshard_after_forward=True)
    assert [u.options["reshard_after_forward"] for u in spmd.shard_units(wrapped)] == [True, False, True, False]
    wrong = Model()
    wrong.h[1]._wrap_overrides = {"reshard": False}
    with pytest.raises(ValueError, match="_wrap_overrides of module 'h.1': unknown option 'reshard'"):
        spmd.shard_units(wrong, ModuleWrapPolicy({Block}))


def test_fully_shard_of_what_a_policy_chooses() -> None:
    model = Model()
    policy = CustomPolicy(lambda m: m is model.norm or m in set(model.h) and {
        "reshard_after_forward": m is model.h[0], "mixed_precision": MixedPrecision(param_dtype=torch.bfloat16)})
    assert spmd.fully_shard(model, policy=policy, ignored_modules=[model.embed], reshard_after_forward=True) is model
    units = spmd.shard_units(model)
    bf16 = {"param": "bf16", "reduce": "bf16"}
    assert [(u.name, u.options["reshard_after_forward"], u.options["precision"]) for u in units] == [
        ("h.0", True, bf16), ("h.1", False, bf16), ("h.2", False, bf16),
        ("norm", True, None), ("", True, None)]
    assert [p.name for p in units.ignored.parameters] == ["embed.weight"]
    assert annotation_of(model.h[0]).precision.param is torch.bfloat16 and annotation_of(model.norm).precision is None
    with pytest.raises(ValueError, match="module '' is a unit already, and a policy chooses for a model without"):
        spmd.fully_shard(model, policy=policy)
    with pytest.raises(ValueError, match="a policy chooses below one module, not a list"):
        spmd.fully_shard([Model()], policy=policy)
