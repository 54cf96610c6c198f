"""Mixtures of experts by transformers' own code, as their configs come: tokens are sorted by expert and multiplied
group by group (`grouped_mm`). Compiled for ranks, nothing is sorted, and each rank keeps its own tokens."""
from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers", minversion="5.23.0")

import elsewhere  # noqa: E402
import pipeline  # noqa: E402
import spmd  # noqa: E402
import zoo  # noqa: E402

MODELS = ["MixtralForCausalLM", "OlmoeForCausalLM", "Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM",
          "DeepseekV3ForCausalLM", "GptOssForCausalLM"]
STEPS = 3
#: Models with experts in their code that are no case, and why.
NOT_TRIED = {"bamba": "one expert, always", "diffusion_gemma": "its forward gives no loss: what is compared is noised outside of it",
             "vitpose_backbone": "the experts are of datasets, and no head has a loss"}


def capture(name: str, folder: Path, dtype: torch.dtype = torch.float32) -> tuple[zoo.Case, Path]:
    """The package; its reference has the losses of PyTorch's own grouped products."""
    case = zoo.find(name)
    model = zoo.build(case).to(dtype)
    batches = zoo.batches(case, STEPS)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    package = spmd.capture(zoo.plain_step, model, optimizer, batches[0], reference=[(b,) for b in batches])
    package.save(folder / "s.step")  # which is of the model as it is
    losses = [zoo.plain_step(model, optimizer, batch).item() for batch in batches]
    tolerance = 1e-5 if dtype is torch.float32 else 1e-2
    assert package.reference["loss"].tolist() == pytest.approx(losses, rel=tolerance)
    return case, folder / "s.step"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.sample(2)
def test_trains_like_eager(name: str, tmp_path: Path) -> None:
    case, step = capture(name, tmp_path)
    pipeline.train(step, case, 2, rtol=1e-4)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["AfmoeForCausalLM (ties)", "DeepseekV32ForCausalLM (ties)"])
def test_first_of_ties(name: str, tmp_path: Path) -> None:
    """Scores that are equal: eager, which is asked to take the first of them, is followed; as it comes, it takes others."""
    case = zoo.find(name)
    step = pipeline.capture(case, tmp_path, "sgd")
    pipeline.train(step, case, 2, rtol=1e-5)
    step = pipeline.capture(dataclasses.replace(case, ties=False), tmp_path, "sgd")
    with pytest.raises(pipeline.StageError, match="differs from its reference"):
        pipeline.train(step, case, 2, rtol=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["MixtralForCausalLM", "GptOssForCausalLM"])
def test_trains_in_bf16(name: str, tmp_path: Path) -> None:
    case, step = capture(name, tmp_path, torch.bfloat16)
    pipeline.train(step, case, 2, rtol=2.0**-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype, target", [(torch.float32, "host"), (torch.bfloat16, "host"), (torch.float32, "emulate:sm_90"),
                                           (torch.bfloat16, "emulate:sm_90")])
@pytest.mark.parametrize("name", ["SwitchTransformersForConditionalGeneration", "GraniteMoeHybridForCausalLM", "Qwen2MoeForCausalLM"])
def test_trains_elsewhere(name: str, dtype: torch.dtype, target: str) -> None:
    """A sample of what `scripts/coverage-models --dtype --target` tries with all mixtures."""
    elsewhere.check(zoo.find(name), target, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gradient_that_is_off_is_told(dtype: torch.dtype, monkeypatch) -> None:
    """By a ninth of its norm, which moves no loss and no parameter by a rounding of bf16."""
    def wrong(model, optimizer, batch):
        loss = model(**batch).loss
        (loss * (8 / 9)).backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    monkeypatch.setattr(zoo, "plain_step", wrong)
    with pytest.raises(pipeline.StageError, match="weight is .* off, eager's") as caught:
        elsewhere.check(zoo.find("OlmoeForCausalLM"), "host", dtype)
    assert caught.value.stage == "gradients"


def test_every_mixture_is_tried() -> None:
    """Each model of transformers with experts is in the zoo, by one class at least, but for those that say why not."""
    heard = r"use_experts_implementation|num_(local_)?experts\b|n_routed_experts|moe_num_experts"
    models = {path: path.read_text() for path in (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py")}
    mixtures = {path.parent.name: text for path, text in models.items() if re.search(heard, text)}
    untried = {name for name, text in mixtures.items() if not any(f"class {case.name}(" in text for case in zoo.MIXTURES)}
    assert untried == set(NOT_TRIED)


@pytest.mark.parametrize("name, kept", [("Qwen2MoeForCausalLM", False), ("SwitchTransformersForConditionalGeneration", True)])
def test_parameters_are_of_the_type_asked_for(name: str, kept: bool, tmp_path: Path) -> None:
    """But for the router that the model's own code computes in f32 (`in_f32`)."""
    step = pipeline.capture(zoo.find(name), tmp_path, "sgd", 1, torch.bfloat16)
    inputs = json.loads((step / "step.json").read_text())["inputs"]
    assert {i["dtype"] for i in inputs if i["kind"] == "param"} == ({"bf16", "f32"} if kept else {"bf16"})


@pytest.mark.parametrize("name", ["Qwen2MoeForCausalLM", "DeepseekV3ForCausalLM"])
def test_tokens_stay_where_they_are(name: str, tmp_path: Path) -> None:
    """In float64 the same on ranks that divide the batch and that do not; gathers are those of parameters alone, once
    in each direction, and what is sorted are the scores of a token."""
    case, step = capture(name, tmp_path)
    for ranks in (2, 4):
        local = pipeline.compare(step, case, ranks)
    found = pipeline.count(local)
    assert (found.all_gather, found.reduce_scatter) == (6, 3)
    assert not re.search(r"aten\.sort\.stable .* : \(tensor<\d+xi64", local.read_text())
    assert "aten.grouped_mm" in local.read_text() and "aten.grouped_outer" in local.read_text()


def test_trains_emulated(tmp_path: Path) -> None:
    case, step = capture("GptOssForCausalLM", tmp_path)
    artifact = tmp_path / "s.spmd"
    pipeline.run("compile", pipeline.find_tool("spmd-compile"), step, "-o", artifact, "--ranks=2",
                 "--target=emulate:sm_90", f"--policy=class:{case.block}")
    pipeline.run("train", pipeline.find_tool("spmd-run"), artifact, "--check", "--quiet", "--rtol=1e-4", "--steps=1")
