"""Llama-3-8B is planned on a machine that could not hold it: sizes and collectives are those of FSDP2's arithmetic,
written down here a second time."""
from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")
import llama3_8b  # noqa: E402

import spmd  # noqa: E402

sys.path.append(str(Path(__file__).parent.parent.parent / "benchmark"))
import plan_time  # noqa: E402

LAYERS, HIDDEN, FEED_FORWARD, VOCABULARY, KEY_VALUE, LENGTH = 32, 4096, 14336, 128256, 1024, 8192
BF16, F32 = 2, 4
# the parameters of a decoder layer and of the root, in registration order
LAYER = [(HIDDEN, HIDDEN), (KEY_VALUE, HIDDEN), (KEY_VALUE, HIDDEN), (HIDDEN, HIDDEN), (FEED_FORWARD, HIDDEN),
         (FEED_FORWARD, HIDDEN), (HIDDEN, FEED_FORWARD), (HIDDEN,), (HIDDEN,)]
ROOT = [(VOCABULARY, HIDDEN), (HIDDEN,), (VOCABULARY, HIDDEN)]


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def fsdp2_shard(shapes, ranks):
    """Elements of a rank: FSDP2 cuts every parameter along dim 0 in equal chunks of rows, the last ones padded."""
    return sum(-(-shape[0] // ranks) * elements(shape) // shape[0] for shape in shapes)


@pytest.fixture(scope="module")
def package():
    example = llama3_8b.setup()
    return spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"])


@pytest.fixture(scope="module", params=[64, 8])
def plan(package, request):
    return package.plan(ranks=request.param, policy="class:LlamaDecoderLayer", options=["--no-budget-trades"])


def test_capture_has_no_weights(package) -> None:
    assert sum(elements(p["shape"]) for p in package.step["parameters"]) == 8_030_261_248
    assert all(tensor.is_meta for tensor in package.weights.values())


def test_planning_is_cheap(plan) -> None:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert children.ru_maxrss < 4 << 20, "KiB of the largest process"
    assert children.ru_utime < 2 * 180, "of both plans"


def test_units_are_those_of_fsdp2(plan) -> None:
    assert len(plan.units) == LAYERS + 1
    for unit, shapes in zip(plan.units, [ROOT] + [LAYER] * LAYERS):
        assert unit.parameters == len(shapes) and unit.dtype == "bf16"
        assert unit.elements == sum(map(elements, shapes))
        # Every shape here is a multiple of 128 elements, so parameters lie back to back; the unit's end is padded to a
        # multiple of ranks x 128, so that chunks are equal and aligned.
        padding = unit.padded - unit.elements
        assert 0 <= padding < plan.ranks * 128 and unit.padded == unit.chunk * plan.ranks
        # FSDP2 pads nothing here: all rows divide by 64. So a rank has less than 128 elements more.
        assert fsdp2_shard(shapes, plan.ranks) * plan.ranks == unit.elements
        assert 0 <= unit.chunk - fsdp2_shard(shapes, plan.ranks) < 128
    assert plan.units[0].modules == [""]
    assert [unit.modules for unit in plan.units[1:]] == [[f"model.layers.{i}"] for i in range(LAYERS)]


def test_state_is_that_of_fsdp2(plan) -> None:
    shard = fsdp2_shard(ROOT, plan.ranks) + LAYERS * fsdp2_shard(LAYER, plan.ranks)
    padding = 128 * (LAYERS + 1)
    # bf16 parameters, and buffers: 64 inverse frequencies of the rotary embedding, twice
    parameters = plan.classes["parameters"].persistent
    assert shard * BF16 <= parameters <= (shard + padding) * BF16 + 1024
    # AdamW keeps two moments of the parameter's dtype, and a step counter in f32 per parameter
    moments = plan.classes["optimizer state"].persistent - F32 * (len(ROOT) + LAYERS * len(LAYER))
    assert 2 * shard * BF16 <= moments <= 2 * (shard + padding) * BF16
    # Everything else is transient; state is aligned to 512 bytes
    assert plan.state_bytes - parameters - plan.classes["optimizer state"].persistent < 512 * 5 * (LAYERS + 1)


def test_collectives_are_those_of_fsdp2(plan) -> None:
    for unit in plan.units:
        gather, scatter = unit.collectives
        # gathered once in forward and once in backward, resharded between; gradients reduced once, in bf16
        assert (gather.op, gather.count, gather.bytes) == ("all_gather", 2, 2 * unit.padded * BF16)
        assert gather.sent_bytes == 2 * unit.chunk * BF16
        assert (scatter.op, scatter.count, scatter.bytes) == ("reduce_scatter", 1, unit.padded * BF16)
    counts = {c.op: (c.count, c.values) for c in plan.collectives}
    # the sum of losses and the number of tokens in one message, the norm of the gradients in another
    assert counts == {"all_gather": (66, 66), "reduce_scatter": (33, 33), "all_reduce": (2, 3)}


def test_activations_are_what_backward_reads(plan) -> None:
    """The tensors alive at the peak, which is at the loss, where every layer's are."""
    tokens = 64 // plan.ranks * LENGTH
    rows = {name: tokens * width * BF16 for name, width in
            [("hidden", HIDDEN), ("key_value", KEY_VALUE), ("feed_forward", FEED_FORWARD), ("logits", VOCABULARY)]}
    saved = {}
    for tensor in plan.tensors:
        if tensor.memory_class == "activations":
            saved.setdefault(tensor.bytes, []).append(tensor.name)
    # logits once: their gradient is written over them, and there is no f32 copy of them
    assert len(saved[rows["logits"]]) == 1 and max(saved) == rows["logits"]
    # gate, up and silu(gate) * up, per layer
    assert len(saved[rows["feed_forward"]]) == 3 * LAYERS
    # k and v with 8 heads, as they are projected: nothing expands them to the 32 of the queries
    assert len(saved[rows["key_value"]]) == 2 * LAYERS
    # both normalized inputs, q, the attention's output, and the residual stream before and after it
    assert 4 * LAYERS <= len(saved[rows["hidden"]]) <= 6 * LAYERS + 2
    # no f32 copy of anything of the model's width
    assert not saved.keys() & {2 * rows["hidden"], 2 * rows["feed_forward"], 2 * rows["logits"]}
    assert plan.peak_bytes <= plan.transient_bytes <= 1.05 * plan.peak_bytes
    assert all(tensor.loc for tensor in plan.tensors if tensor.memory_class == "activations")


def test_replicated_values_are_tables_of_positions(plan) -> None:
    assert plan.replicated
    assert all("rotary_emb" in value["loc"] or "modeling_llama" in value["loc"] for value in plan.replicated)
    assert sum(value["bytes"] for value in plan.replicated) < 200e6


def test_nothing_is_quadratic_in_the_length(package, tmp_path) -> None:
    """Though transformers hands a dense causal mask to the attention."""
    assert "aten.le.Tensor" in package.text()
    package.save(tmp_path / "a.step", weights=False)
    done = subprocess.run(["spmd-compile", str(tmp_path / "a.step"), "--ranks=64", "--compile-to=kernels", "-o", "-",
                           "--policy=class:LlamaDecoderLayer"], check=True, capture_output=True, text=True)
    assert "kernel.attention" in done.stdout
    assert not re.search(r"[<x]8192x8192x", done.stdout)


def test_gradients_in_flight_are_alive() -> None:
    """While one layer's backward pass runs, the gradients of the one before are being reduced: they are part of the
    peak, not a gap."""
    example = llama3_8b.setup("tiny", batch=8, length=16, layers=6, checkpoint=True)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"])
    plan = package.plan(ranks=8, policy="class:LlamaDecoderLayer")
    unsharded = [tensor.name for tensor in plan.tensors if re.fullmatch(r"unit[1-6] gradients", tensor.name)]
    assert len(unsharded) == 2
    assert plan.peak_bytes <= plan.transient_bytes <= 1.02 * plan.peak_bytes


def test_printed_as_a_table(plan) -> None:
    text = repr(plan)
    assert f"arena: {plan.arena_bytes:,} bytes per rank" in text
    assert re.search(r"unit1 to unit32 +model.layers.0 to model.layers.31 +9 +218,112,000", text)
    assert re.search(r"model.layers.\*.mlp.gate_proj mm +activations .* 32 .*modeling_llama.py:\d+", text)


# A step of FSDP2 with f32 masters, by the same prices, in milliseconds: its copies in and out, one communicator, one unit
# gathered ahead, the optimizer last.
@pytest.mark.sample(3)
@pytest.mark.parametrize("ranks, theirs", [(8, 748), (64, 743), (512, 758)])
def test_f32_masters_send_half_and_take_no_longer_than_fsdp2(tmp_path, ranks: int, theirs: int) -> None:
    example = llama3_8b.setup(batch=ranks, dtype=torch.float32)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           precision="param=bf16,reduce=f32")
    plan = package.plan(ranks=ranks, policy="class:LlamaDecoderLayer")
    for unit in plan.units:
        gather, scatter = unit.collectives
        assert unit.dtype == "f32" and gather.bytes == 2 * unit.padded * BF16 and scatter.bytes == unit.padded * F32
    package.save(tmp_path / "a.step", weights=False)
    program = tmp_path / "plan.mlir"
    subprocess.run(["spmd-compile", tmp_path / "a.step", f"--ranks={ranks}", "--policy=class:LlamaDecoderLayer",
                    "--compile-to=plan", "--quiet", "-o", program], check=True)
    time = plan_time.model(program)
    assert time["ranks"] == ranks and time["machine"] == "reference-h100"
    assert 0.95 * theirs < time["step_ms"] <= theirs and time["idle_ms"] < 0.05 * time["step_ms"]
