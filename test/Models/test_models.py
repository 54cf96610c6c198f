"""Models of `transformers`, captured from unmodified steps: on any number of ranks the same losses, parameters and
optimizer state as the captured step in float64, few collectives, and 20 steps that follow eager PyTorch."""
from __future__ import annotations

from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers", minversion="5.23.0")

import pipeline  # noqa: E402
import zoo  # noqa: E402

#: Rank counts: fewer than, as many as, and more than the rows of a batch of 6, which 4 and 8 do not divide.
RANKS = (1, 2, 3, 4, 8)
#: Units (blocks and the rest): each is gathered once forward and once backward, and its gradients are reduced once.
MODELS = {"GPT2LMHeadModel": 3, "LlamaForCausalLM (padded)": 3, "MistralForCausalLM": 3, "BertForMaskedLM": 3,
          "T5ForConditionalGeneration": 5, "ViTForImageClassification": 3}


@pytest.fixture(scope="module", params=MODELS)
def case(request) -> zoo.Case:
    return zoo.find(request.param)


@pytest.fixture(scope="module")
def packages(case, tmp_path_factory) -> dict[str, Path]:
    """Plain SGD without clipping shows every wrong factor; AdamW and clipping are what people run."""
    folder = tmp_path_factory.mktemp("steps")
    return {"sgd": pipeline.capture(case, folder, "sgd"), "adamw": pipeline.capture(case, folder, "adamw", steps=20)}


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.sample(3)
def test_equal_on_any_number_of_ranks(case, packages, ranks) -> None:
    found = pipeline.count(pipeline.compare(packages["sgd"], case, ranks))
    if ranks == 2:
        units = MODELS[zoo.label(case)]
        assert (found.all_gather, found.reduce_scatter) == (2 * units, units)


def test_optimizer_is_equal(case, packages) -> None:
    pipeline.compare(packages["adamw"], case, 3)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.sample(3)
def test_trains_like_eager(case, packages, ranks) -> None:
    pipeline.train(packages["adamw"], case, ranks)
