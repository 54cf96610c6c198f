"""Mixtral-8x7B as transformers has it, captured without weights to be planned.

    python benchmark/mixtral.py --batch=64 --save=mixtral-64.step

Needs PyTorch and transformers.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch
from transformers import MixtralConfig, MixtralForCausalLM

sys.path.append(str(Path(__file__).parent.parent / "examples"))
from llama3_8b import train_step  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64, help="sequences in the global batch")
    parser.add_argument("--length", type=int, default=8192, help="tokens in a sequence")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--save", required=True, help="step package to write")
    options = parser.parse_args()
    import spmd
    # config.json of mistralai/Mixtral-8x7B-v0.1
    config = MixtralConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=options.layers,
                           num_attention_heads=32, num_key_value_heads=8, vocab_size=32000, num_local_experts=8,
                           num_experts_per_tok=2, max_position_embeddings=32768, rope_theta=1e6, use_cache=False)
    with torch.device("meta"):
        model = MixtralForCausalLM(config).to(torch.bfloat16)
        tokens = torch.zeros(options.batch, options.length, dtype=torch.int64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    package = spmd.capture(train_step, model, optimizer, tokens, tokens.clone(), name=Path(options.save).stem)
    package.save(options.save, weights=False)


if __name__ == "__main__":
    main()
