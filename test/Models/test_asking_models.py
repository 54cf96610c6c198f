"""Models of `transformers` that ask for values of the batch, or draw numpy's random numbers, to choose their way."""
from __future__ import annotations

import copy

import pytest
import torch

transformers = pytest.importorskip("transformers", minversion="5.23.0")

import spmd  # noqa: E402

VOCABULARY, BATCH = 37, 4
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
         "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "max_position_embeddings": 64, "pad_token_id": 0}
XLM = {"vocab_size": VOCABULARY, "emb_dim": 16, "n_layers": 1, "n_heads": 2, "max_position_embeddings": 40, "dropout": 0,
       "attention_dropout": 0}
# By class: its config, its options, and how long sequences are.
MODELS = {
    "LongformerForMaskedLM": ("LongformerConfig", {**SIZES, "attention_window": [4], "sep_token_id": 2}, 8),
    "XLMWithLMHeadModel": ("XLMConfig", XLM, 16),
    "FlaubertWithLMHeadModel": ("FlaubertConfig", XLM, 16),
    # its blocks are random
    "BigBirdForMaskedLM": ("BigBirdConfig", {**SIZES, "attention_type": "block_sparse", "block_size": 2,
                                             "num_random_blocks": 1, "sep_token_id": 2}, 16),
}


def train_step(model, optimizer, batch):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MODELS)
def test_trains_like_eager(name, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPMD_CACHE", str(tmp_path))
    config, options, length = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, name)(getattr(transformers, config)(**options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    twin = copy.deepcopy(model)
    optimizer, twins = (torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, twin))
    compiled = spmd.compile(train_step, ranks=2)
    for step in range(2):
        ids = torch.randint(3, VOCABULARY, (BATCH, length))
        mask = (torch.arange(length) < torch.tensor([length, length - 1 - step, length, length // 2])[:, None]).long()
        batch = {"input_ids": ids, "attention_mask": mask, "labels": ids}
        torch.testing.assert_close(compiled(model, optimizer, batch), train_step(twin, twins, batch), rtol=1e-5, atol=1e-6)
    for own, other in zip(model.parameters(), twin.parameters()):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-6)
    assert compiled.compiles == 1
