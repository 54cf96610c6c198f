"""Llama-3-8B as transformers has it, captured to be planned: nothing of its 8 billion parameters ever exists here.

    python examples/llama3_8b.py --save llama3-8b.step             # 64 sequences of 8,192 tokens; seconds, under 1 GB
    python examples/llama3_8b.py --precision param=bf16,reduce=f32   # with f32 masters
    spmd-compile llama3-8b.step --ranks=64 --policy=class:LlamaDecoderLayer --compile-to=plan --memory-budget=80GB

docs/planning.md shows what that prints. Needs PyTorch and transformers.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch.nn.utils import clip_grad_norm_
from transformers import LlamaConfig, LlamaForCausalLM

# config.json of meta-llama/Meta-Llama-3-8B and -70B, and of Llama-3.1-405B
MODELS = {
    "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32),
    "70b": dict(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64),
    "405b": dict(hidden_size=16384, intermediate_size=53248, num_hidden_layers=126, num_attention_heads=128),
    "tiny": dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                 num_key_value_heads=2, vocab_size=320),
}


def train_step(model, optimizer, input_ids, labels):
    loss = model(input_ids=input_ids, labels=labels, shift_labels=labels).loss  # the loader has shifted them
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def setup(model: str = "8b", batch: int = 64, length: int = 8192, layers: int | None = None, device: str = "meta",
          dtype: torch.dtype = torch.bfloat16, checkpoint: bool = False) -> dict:
    """Everything spmd.capture needs. `batch` is the global one: all ranks' sequences. With `checkpoint` backward
    computes the forward pass of a decoder layer again."""
    settings = dict(vocab_size=128256, num_key_value_heads=8, max_position_embeddings=8192, rope_theta=500000.0,
                    rms_norm_eps=1e-5, use_cache=False, tie_word_embeddings=False) | MODELS[model]
    if layers is not None:
        settings["num_hidden_layers"] = layers
    with torch.device(device):
        llama = LlamaForCausalLM(LlamaConfig(**settings)).to(dtype)
        tokens = torch.zeros(batch, length, dtype=torch.int64)
    if checkpoint:
        llama.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        llama.train()
    optimizer = torch.optim.AdamW(llama.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    return dict(train_step=train_step, model=llama, optimizer=optimizer, args=(tokens, tokens.clone()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="8b")
    parser.add_argument("--batch", type=int, default=64, help="sequences in the global batch")
    parser.add_argument("--length", type=int, default=8192, help="tokens in a sequence")
    parser.add_argument("--layers", type=int, help="fewer layers than the model has")
    parser.add_argument("--checkpoint", action="store_true", help="backward computes decoder layers again")
    parser.add_argument("--precision", help="f32 parameters that are computed with in another type: param=bf16,reduce=f32")
    parser.add_argument("--save", help="step package to write; default llama3-MODEL.step")
    options = parser.parse_args()
    import spmd
    path = options.save or f"llama3-{options.model}.step"
    dtype = torch.float32 if options.precision else torch.bfloat16
    example = setup(options.model, options.batch, options.length, options.layers, dtype=dtype,
                    checkpoint=options.checkpoint)
    package = spmd.capture(example["train_step"], example["model"], example["optimizer"], *example["args"],
                           precision=options.precision, name=Path(path).stem)
    package.save(path, weights=False)


if __name__ == "__main__":
    main()
