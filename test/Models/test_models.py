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
MODELS = {"GPT2LMHeadModel": 3, "LlamaForCausalLM (padded)": 3, "MistralForCausalLM": 3, "BertForMaskedLM (dropout)": 3,
          "ViTForImageClassification": 3, "T5ForConditionalGeneration": 5}


@pytest.fixture(scope="module", params=MODELS)
def case(request) -> zoo.Case:
    return zoo.find(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("steps")


def test_equal_on_any_number_of_ranks(case, folder) -> None:
    """Plain SGD without clipping shows every wrong factor; AdamW and clipping are what people run."""
    for optimizer, tolerance in (("sgd", None), ("adamw", 1e-9)):
        step = pipeline.capture(case, folder, optimizer)
        for ranks in RANKS if optimizer == "sgd" else (2, 3):
            local = pipeline.compare(step, case, ranks, tolerance)
            units = MODELS[zoo.label(case)]
            if ranks == 2:
                found = pipeline.count(local)
                assert (found.all_gather, found.reduce_scatter) == (2 * units, units)


@pytest.mark.parametrize("ranks", [2, 4])
def test_trains_like_eager(case, folder, ranks) -> None:
    step = pipeline.capture(case, folder, "adamw", steps=20)
    pipeline.train(step, case, ranks)
