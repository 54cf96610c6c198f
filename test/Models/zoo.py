"""Small random models of `transformers`, and how each is trained: an unmodified step on an ordinary batch.

A case is a model class, a config of tiny sizes (all different from each other and from the batch), a batch, and the
class of its blocks. Dropout is off, but for one of them.
"""
from __future__ import annotations

import contextlib
import dataclasses
import unittest.mock
from typing import Any, Callable, Iterator

import torch

BATCH, TIME, VOCABULARY = 6, 10, 37

@dataclasses.dataclass(frozen=True)
class Case:
    """One model class; `make` gives the model and `batch` one batch, both with `transformers` as argument."""

    name: str
    config: str
    options: dict[str, Any]
    batch: Callable[[], dict[str, torch.Tensor]]
    block: str
    #: What tells it from another case of the same class.
    kind: str = ""
    #: Some of the values that topk chooses from are equal, so that eager is asked to take the first of them.
    ties: bool = False
    #: A module that is in f32 in a model of any type: its forward would cast it.
    in_f32: str = ""
    #: A factor on all initial matrices: most models start with weights so small that a wrong gradient hardly shows.
    scale: float = 4.0


def train_step(model, optimizer, batch):
    """The step as people write it."""
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def plain_step(model, optimizer, batch):
    """Without clipping, which hides gradients that are wrong by a factor."""
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def ids(*shape: int, low: int = 1) -> torch.Tensor:
    return torch.randint(low, VOCABULARY, shape or (BATCH, TIME))


def padding() -> torch.Tensor:
    """Ones, with some zeros at the end of some rows; never a row without any one."""
    lengths = torch.randint(TIME // 2, TIME + 1, (BATCH, 1))
    return (torch.arange(TIME)[None] < lengths).long()


def ignored(labels: torch.Tensor) -> torch.Tensor:
    """Labels with -100 here and there, most of them in the last rows."""
    labels = labels.clone()
    labels[torch.rand(labels.shape) < 0.2] = -100
    labels[-2:, 2:] = -100
    return labels


def causal() -> dict[str, torch.Tensor]:
    tokens = ids()
    return {"input_ids": tokens, "labels": ignored(tokens)}


def padded_causal() -> dict[str, torch.Tensor]:
    return {**causal(), "attention_mask": padding()}


def masked() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "labels": ignored(ids()), "attention_mask": padding()}


def classified() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "labels": torch.randint(0, 3, (BATCH,)), "attention_mask": padding()}


def token_classified() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "labels": ignored(torch.randint(0, 3, (BATCH, TIME))), "attention_mask": padding()}


def answered() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "attention_mask": padding(), "start_positions": torch.randint(0, TIME, (BATCH,)),
            "end_positions": torch.randint(0, TIME, (BATCH,))}


def translated() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "attention_mask": padding(), "labels": ids(BATCH, 7)}


def pictures() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(BATCH, 3, 16, 16), "labels": torch.randint(0, 3, (BATCH,))}


def captions() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "attention_mask": padding(), "pixel_values": torch.randn(BATCH, 3, 16, 16),
            "return_loss": True}


BERT = dict(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
            max_position_embeddings=24, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3)
LLAMA = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=24, attention_dropout=0.0, pad_token_id=0, bos_token_id=1,
             eos_token_id=2)
GPT2 = dict(vocab_size=VOCABULARY, n_positions=24, n_embd=16, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0,
            attn_pdrop=0.0, bos_token_id=1, eos_token_id=2, pad_token_id=0, num_labels=3)
T5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=20, num_layers=2, num_heads=2, dropout_rate=0.0,
          decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, num_labels=3, classifier_dropout=0.0)
BART = dict(vocab_size=VOCABULARY, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=24, dropout=0.0,
            attention_dropout=0.0, activation_dropout=0.0, classifier_dropout=0.0, decoder_start_token_id=2,
            forced_eos_token_id=None, pad_token_id=0, bos_token_id=1, eos_token_id=2)
VIT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, image_size=16,
           patch_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3)


def decoder(name: str, block: str, config: str = "", batch: Callable = causal, **options: Any) -> Case:
    config = config or name.replace("ForCausalLM", "Config")
    return Case(name, config, {**LLAMA, **options}, batch, block)


def tied(name: str, block: str, **options: Any) -> Case:
    return dataclasses.replace(decoder(name, block, **options), kind="ties", ties=True)


def encoder(name: str, config: str, block: str, batch: Callable = masked, **options: Any) -> Case:
    return Case(name, config, {**BERT, **options}, batch, block)


def vision(name: str, config: str, block: str, **options: Any) -> Case:
    return Case(name, config, {**VIT, **options}, pictures, block)


CLIP_TEXT = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
                 num_attention_heads=2, max_position_embeddings=24, attention_dropout=0.0, eos_token_id=VOCABULARY - 1,
                 bos_token_id=1, pad_token_id=0)
CLIP_VISION = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, image_size=16,
                   patch_size=4, attention_dropout=0.0)

EXPERTS = dict(num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=24, intermediate_size=24)
SHARED = dict(n_routed_experts=4, n_shared_experts=1, n_group=1, topk_group=1, first_k_dense_replace=1)
LATENT = dict(q_lora_rank=8, kv_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=4)
INDEX = dict(index_topk=4, index_head_dim=8, index_n_heads=2)
INKLING = dict(**EXPERTS, n_routed_experts=4, head_dim=8, swa_num_attention_heads=4, swa_num_key_value_heads=2, swa_head_dim=8,
               sliding_window_size=4, d_rel=4, rel_extent=16, layer_types=["hybrid_sliding", "hybrid"])

PATCHES = dict(depth=1, hidden_size=16, intermediate_size=20, num_heads=2, patch_size=4)
DEEPSTACK = dict(**PATCHES, out_hidden_size=16, num_position_embeddings=16, deepstack_visual_indexes=[0])
PICTURES = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=4)
PAGES = dict(hidden_size=16, output_channels=8, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=4, mlp_dim=20,
             window_size=2, global_attn_indexes=[0], downsample_channels=[8, 16])
SECTIONS = dict(rope_type="default", rope_theta=10000.0, mrope_section=[1, 1, 2])

#: Mixtures of experts.
MIXTURES = [
    # Rows of grouped products are multiples of 16 bytes, in bf16 too.
    decoder("MixtralForCausalLM", "MixtralDecoderLayer", num_local_experts=3, num_experts_per_tok=2,
            intermediate_size=24, output_router_logits=True),
    dataclasses.replace(decoder("MixtralForCausalLM", "MixtralDecoderLayer", num_local_experts=3, num_experts_per_tok=2,
                                experts_implementation="batched_mm"), kind="batched_mm"),
    decoder("OlmoeForCausalLM", "OlmoeDecoderLayer", num_experts=3, num_experts_per_tok=2, intermediate_size=24),
    decoder("Qwen2MoeForCausalLM", "Qwen2MoeDecoderLayer", num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=24, shared_expert_intermediate_size=20, output_router_logits=True),
    decoder("Qwen3MoeForCausalLM", "Qwen3MoeDecoderLayer", num_experts=4, num_experts_per_tok=2,
            moe_intermediate_size=24, head_dim=8, norm_topk_prob=True),
    decoder("DeepseekV3ForCausalLM", "DeepseekV3DecoderLayer", n_routed_experts=4, num_experts_per_tok=2, n_group=2,
            topk_group=1, moe_intermediate_size=24, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=8,
            kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8, num_key_value_heads=4),
    # Rotary embeddings by complex numbers.
    decoder("DeepseekV2ForCausalLM", "DeepseekV2DecoderLayer", n_routed_experts=4, num_experts_per_tok=2, n_group=1,
            topk_group=1, moe_intermediate_size=24, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=8,
            kv_lora_rank=8, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, head_dim=8, num_key_value_heads=4),
    # Linear attention by a gated delta rule, which solves triangular systems, beside attention.
    decoder("Qwen3NextForCausalLM", "Qwen3NextDecoderLayer", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=24,
            shared_expert_intermediate_size=20, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=2,
            linear_key_head_dim=8, linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"]),
    decoder("GptOssForCausalLM", "GptOssDecoderLayer", num_local_experts=4, num_experts_per_tok=2, head_dim=8,
            intermediate_size=24, sliding_window=4, layer_types=["sliding_attention", "full_attention"]),
    # Other mixtures: by name of what routes, attends, or stands beside attention otherwise.
    *(decoder(f"{name}ForCausalLM", f"{name}DecoderLayer", **{**EXPERTS, **options}) for name, options in {
        "Cohere2Moe": dict(num_shared_experts=1, head_dim=8, sliding_window=4),
        "Dots1": dict(**SHARED, sliding_window=4),
        "Ernie4_5_Moe": dict(moe_num_experts=4, moe_k=2),
        "FlexOlmo": {},
        "Glm4Moe": dict(SHARED),
        "Glm4MoeLite": dict(**SHARED, **LATENT),
        "GraniteMoe": {},
        "GraniteMoeShared": dict(shared_intermediate_size=20),
        "HunYuanMoEV1": dict(moe_topk=2, head_dim=8),
        "HYV3": dict(num_shared_experts=1, head_dim=8),
        "JetMoe": dict(kv_channels=4),
        "Laguna": dict(shared_expert_intermediate_size=20, head_dim=8, sliding_window=4),
        "Lfm2Moe": dict(num_dense_layers=1, layer_types=["conv", "full_attention"]),
        "Mellum": dict(head_dim=8, sliding_window=4),
        "MiMoV2Flash": dict(**SHARED, head_dim=8, v_head_dim=8, sliding_window=4),
        "MiniMax": dict(head_dim=8, sliding_window=4),
        "MiniMaxM2": dict(head_dim=8),
        "Mistral4": dict(**SHARED, **LATENT),
        "SolarOpen": dict(**SHARED, head_dim=8)}.items()),
    decoder("AriaTextForCausalLM", "AriaTextDecoderLayer", moe_num_experts=4, moe_topk=2, head_dim=8, intermediate_size=24),
    decoder("GraniteMoeHybridForCausalLM", "GraniteMoeHybridDecoderLayer", num_local_experts=4, num_experts_per_tok=2,
            intermediate_size=24, shared_intermediate_size=20, layer_types=["mamba", "attention"], mamba_n_heads=4, mamba_d_head=8,
            mamba_d_state=4, mamba_n_groups=1, mamba_chunk_size=4),
    decoder("JambaForCausalLM", "JambaMambaDecoderLayer", num_experts=4, num_experts_per_tok=2, attn_layer_period=2,
            attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=4, mamba_d_conv=4,
            intermediate_size=24, mamba_expand=2, mamba_dt_rank=4, use_mamba_kernels=False),
    decoder("LongcatFlashForCausalLM", "LongcatFlashDecoderLayer", ffn_hidden_size=20, expert_ffn_hidden_size=24,
            moe_topk=2, n_routed_experts=4, zero_expert_num=2, num_layers=1, head_dim=8, **LATENT),
    decoder("NemotronHForCausalLM", "NemotronHBlock", n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=24,
            moe_shared_expert_intermediate_size=20, head_dim=8, mamba_num_heads=4, mamba_head_dim=8, ssm_state_size=4,
            n_groups=1, chunk_size=4, layers_block_type=["mamba", "attention", "moe"]),
    decoder("Qwen3_5MoeForCausalLM", "Qwen3_5MoeDecoderLayer", "Qwen3_5MoeTextConfig", num_experts=4,
            num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=20, head_dim=8,
            linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
            layer_types=["linear_attention", "full_attention"]),
    Case("DbrxForCausalLM", "DbrxConfig", dict(
        vocab_size=VOCABULARY, d_model=16, n_heads=4, n_layers=2, max_seq_len=24, pad_token_id=0,
        attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=10000.0),
        ffn_config=dict(ffn_hidden_size=24, moe_num_experts=4, moe_top_k=2)), causal, "DbrxBlock"),
    # A router that begins with zeros, and attention to the keys whose scores behind a ReLU are the largest.
    tied("AfmoeForCausalLM", "AfmoeDecoderLayer", **{**EXPERTS, "num_shared_experts": 1, "head_dim": 8, "sliding_window": 4,
                                                     "num_dense_layers": 1}),
    *(tied(f"{name}ForCausalLM", f"{name}DecoderLayer", **{**EXPERTS, **SHARED, **LATENT, **INDEX})
      for name in ("DeepseekV32", "GlmMoeDsa")),
    # Experts that are modules of their own, in loops over those that are hit.
    Case("SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", {
        **T5, "num_decoder_layers": 2, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 3,
        "router_jitter_noise": 0.0}, translated, "SwitchTransformersBlock", in_f32="classifier", scale=1.0),
    Case("NllbMoeForConditionalGeneration", "NllbMoeConfig", {
        **BART, "encoder_sparse_step": 2, "decoder_sparse_step": 2, "num_experts": 3, "moe_token_dropout": 0.0,
        "encoder_layerdrop": 0.0, "decoder_layerdrop": 0.0, "scale_embedding": False}, translated, "NllbMoeEncoderLayer",
        in_f32="classifier"),
    # Of each kind of sparse attention, residual stream and router that stands in no other model's code.
    decoder("AXK1ForCausalLM", "AXK1DecoderLayer", **{**EXPERTS, **SHARED, **LATENT}),
    tied("AXK2ForCausalLM", "AXK2DecoderLayer", **{**EXPERTS, **SHARED, **LATENT, **INDEX, "gated_norm_rank": 4}),
    decoder("BailingHybridForCausalLM", "BailingHybridDecoderLayer", **{
        **EXPERTS, **SHARED, **LATENT, "head_dim": 8, "layer_types": ["linear_attention", "full_attention"], "num_mtp_layers": 0}),
    decoder("BeamForCausalLM", "BeamDecoderLayer", **{
        **EXPERTS, "head_dim": 8, "sliding_window": 4, "n_group": 2, "topk_group": 1, "mlp_layer_types": ["dense", "sparse"]}),
    tied("DeepseekV4ForCausalLM", "DeepseekV4DecoderLayer", **{
        **EXPERTS, **SHARED, **INDEX, "head_dim": 16, "q_lora_rank": 8, "num_key_value_heads": 1, "partial_rotary_factor": 0.5,
        "o_groups": 2, "o_lora_rank": 8, "hc_mult": 2, "hc_sinkhorn_iters": 3, "sliding_window": 4,
        "layer_types": ["sliding_attention", "compressed_sparse_attention"], "mlp_layer_types": ["moe", "moe"],
        "compress_rates": {"compressed_sparse_attention": 2, "heavily_compressed_attention": 4}}),
    tied("Dots3NoteForCausalLM", "Dots3NoteTextDecoderLayer", config="Dots3NoteTextConfig", **{
        **EXPERTS, **SHARED, **LATENT, **INDEX, "head_dim": 16, "sliding_window": 4, "shared_experts_intermediate_size": 24,
        "layer_types": ["sliding_attention", "indexed_attention"], "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4,
        "swa_q_lora_rank": 8, "swa_kv_lora_rank": 8, "swa_head_dim": 16, "swa_qk_nope_head_dim": 8, "swa_v_head_dim": 8}),
    decoder("ExaoneMoeForCausalLM", "ExaoneMoeDecoderLayer", **{
        **EXPERTS, "head_dim": 8, "sliding_window": 4, "num_shared_experts": 1, "sliding_window_pattern": 2}),
    decoder("FlintForCausalLM", "FlintDecoderLayer", **{
        **EXPERTS, "head_dim": 8, "sliding_window": 4, "shared_expert_intermediate_size": 20, "mlp_only_layers": [],
        "layer_types": ["sliding_attention", "full_attention"]}),
    decoder("GraniteMoeSWAForCausalLM", "GraniteMoeSWADecoderLayer", **{
        **EXPERTS, "shared_intermediate_size": 20, "sliding_window": 4}),
    tied("HYV4ForCausalLM", "HYV4DecoderLayer", **{**EXPERTS, **SHARED, **LATENT, **INDEX, "hc_mult": 2}),
    decoder("InklingForCausalLM", "InklingDecoderLayer", config="InklingTextConfig", **{
        **INKLING, "n_shared_experts": 1, "logits_mup_width_multiplier": 1.0}),
    decoder("KimiLinearForCausalLM", "KimiLinearDecoderLayer", **{
        **EXPERTS, **SHARED, **LATENT, "q_lora_rank": None, "linear_head_dim": 8, "linear_num_heads": 2,
        "layer_types": ["linear_attention", "full_attention"], "mlp_layer_types": ["dense", "sparse"]}),
    decoder("Kolibri1ForCausalLM", "Kolibri1DecoderLayer", **{
        **EXPERTS, "head_dim": 8, "sliding_window": 4, "shared_expert_intermediate_size": 24,
        "layer_types": ["sliding_attention", "full_attention"]}),
    decoder("MiniMaxM3VLForCausalLM", "MiniMaxM3VLDecoderLayer", config="MiniMaxM3VLTextConfig", **{
        **EXPERTS, "head_dim": 8, "dense_intermediate_size": 20, "shared_intermediate_size": 24, "rotary_dim": 4,
        "index_n_heads": 2, "index_head_dim": 8, "index_block_size": 2, "index_topk_blocks": 2,
        "layer_types": ["full_attention", "minimax_m3_sparse"]}),
    decoder("Qwen4ExpForCausalLM", "Qwen4ExpTextDecoderLayer", config="Qwen4ExpTextConfig", **{
        **EXPERTS, "shared_expert_intermediate_size": 20, "head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 2,
        "linear_key_head_dim": 8, "linear_value_head_dim": 8, "hc_count": 2, "hc_lowrank": 4, "indexer_n_heads": 2,
        "indexer_kv_heads": 1, "indexer_head_dim": 8, "indexer_budget": 4, "indexer_compress_ratio": 2,
        "layer_types": ["linear_attention", "indexed_attention"]}),
    decoder("ZayaForCausalLM", "ZayaDecoderLayer", **{
        **EXPERTS, "num_experts_per_tok": 1, "head_dim": 8, "router_hidden_size": 8}),
    decoder("Gemma4ForCausalLM", "Gemma4TextDecoderLayer", config="Gemma4TextConfig", **{
        **EXPERTS, "head_dim": 8, "global_head_dim": 8, "sliding_window": 4, "enable_moe_block": True, "top_k_experts": 2,
        "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": VOCABULARY,
        "layer_types": ["sliding_attention", "full_attention"]}),
    # A router whose own code computes in f32.
    dataclasses.replace(decoder("Inkling2ForCausalLM", "Inkling2SlidingDecoderLayer", config="Inkling2TextConfig", **{
        **INKLING, "unpadded_vocab_size": VOCABULARY, "n_layers_per_attn_res_block": 2, "log_scaling_n_floor": 1000}), in_f32="gate"),
    # A router that draws at random in training: with a jitter of 0 from the largest alone.
    decoder("PhimoeForCausalLM", "PhimoeDecoderLayer", **{**EXPERTS, "router_jitter_noise": 0.0}),
    # Experts of their own: all of them for each token, rows of two embeddings, and masks.
    decoder("Llama4ForCausalLM", "Llama4TextDecoderLayer", config="Llama4TextConfig", **{
        **EXPERTS, "num_experts_per_tok": 1, "head_dim": 8, "intermediate_size_mlp": 20, "attention_chunk_size": 4}),
    decoder("DogeForCausalLM", "DogeDecoderLayer", **{**EXPERTS, "is_moe": True, "intermediate_size": 20}),
    Case("OpenAIPrivacyFilterForTokenClassification", "OpenAIPrivacyFilterConfig", {
        **LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 8, "intermediate_size": 24, "sliding_window": 4,
        "num_labels": 3}, token_classified, "OpenAIPrivacyFilterEncoderLayer"),
    # Models that see and hear, given text alone.
    *(dataclasses.replace(Case(f"{name}ForConditionalGeneration", f"{name}Config", dict(
        text_config={**LLAMA, **EXPERTS, **text}, vision_config=seen, **heard), causal, f"{block}DecoderLayer"), kind=kind, ties=bool(kind))
      for name, block, kind, text, seen, heard in [
        ("Aria", "AriaText", "", dict(moe_num_experts=4, moe_topk=2, head_dim=8), dict(**PICTURES, model_type="idefics3_vision"), {}),
        ("DeepseekOcr2", "DeepseekOcr2Text", "", dict(
            **SHARED, head_dim=4, mlp_layer_types=["dense", "sparse"], num_key_value_heads=4), dict(sam_config=PAGES, encoder_config=dict(
                hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)), {}),
        ("Ernie4_5_VLMoe", "Ernie4_5_VLMoe", "", dict(
            moe_intermediate_size=[24, 24], moe_num_experts=4, moe_k=2, moe_num_shared_experts=1, head_dim=8,
            rope_parameters=SECTIONS), PATCHES, {}),
        ("Glm4vMoe", "Glm4vMoeText", "", dict(**SHARED, head_dim=16, rope_parameters={**SECTIONS, "partial_rotary_factor": 0.5}),
         dict(**PATCHES, image_size=16, out_hidden_size=16), {}),
        ("Glm5Next", "Glm5NextText", "ties", {
            **SHARED, **LATENT, **INDEX, "qk_rope_head_dim": 0, "linear_head_dim": 8, "linear_num_heads": 2, "hc_mult": 2,
            "hc_sinkhorn_iters": 3, "index_kpool": 2, "layer_types": ["linear_attention", "indexed_attention"],
            "mlp_layer_types": ["dense", "sparse"]}, dict(**PATCHES, image_size=16, out_hidden_size=16), {}),
        ("MistralLarge4", "MistralLarge4Text", "ties", {**SHARED, **LATENT, **INDEX}, dict(**PICTURES, model_type="pixtral"), {}),
        ("MuseSpark", "MuseSparkText", "", dict(
            head_dim=8, sliding_window=4, moe_hidden_size=16, layer_types=["sliding_attention", "full_attention"]), dict(
                hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2, patch_size=4), dict(audio_config=dict(
                    patch_sizes=[2, 2], hidden_sizes=[8, 8], depths=[1, 1], num_hidden_layers=2, out_hidden_size=16))),
        ("Qwen3VLMoe", "Qwen3VLMoeText", "", dict(head_dim=8), DEEPSTACK, {}),
        ("Qwen3_5Moe", "Qwen3_5Moe", "", dict(
            head_dim=8, shared_expert_intermediate_size=20, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8,
            linear_value_head_dim=8, layer_types=["linear_attention", "full_attention"]), DEEPSTACK, {}),
        ("Qwen3OmniMoeThinker", "Qwen3OmniMoeThinkerText", "", dict(head_dim=8), DEEPSTACK, dict(audio_config=dict(
            num_mel_bins=8, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=20, d_model=16, output_dim=16,
            downsample_hidden_size=8))),
        ("Step3p7", "Step3p7", "", dict(
            n_routed_experts=4, share_expert_dim=24, head_dim=8, sliding_window=4, layer_types=["sliding_attention", "full_attention"],
            mlp_layer_types=["dense", "sparse"]), PICTURES, {}),
        ("UnlimitedOcr", "UnlimitedOcrText", "", dict(
            **SHARED, head_dim=4, mlp_layer_types=["dense", "sparse"], num_key_value_heads=4, sliding_window=4),
         dict(sam_config=PAGES, encoder_config=PICTURES), {})]),
]

CASES = [
    Case("GPT2LMHeadModel", "GPT2Config", GPT2, causal, "GPT2Block"),
    Case("GPT2ForSequenceClassification", "GPT2Config", GPT2, classified, "GPT2Block"),
    Case("GPT2ForTokenClassification", "GPT2Config", {**GPT2, "classifier_dropout": 0.0}, token_classified,
         "GPT2Block"),
    decoder("LlamaForCausalLM", "LlamaDecoderLayer"),
    dataclasses.replace(decoder("LlamaForCausalLM", "LlamaDecoderLayer", batch=padded_causal), kind="padded"),
    decoder("MistralForCausalLM", "MistralDecoderLayer", sliding_window=4),
    decoder("Qwen2ForCausalLM", "Qwen2DecoderLayer"),
    decoder("Qwen3ForCausalLM", "Qwen3DecoderLayer", head_dim=8),
    decoder("GemmaForCausalLM", "GemmaDecoderLayer", head_dim=8),
    decoder("Gemma2ForCausalLM", "Gemma2DecoderLayer", head_dim=8, sliding_window=4),
    decoder("OlmoForCausalLM", "OlmoDecoderLayer"),
    decoder("Olmo2ForCausalLM", "Olmo2DecoderLayer"),
    decoder("StableLmForCausalLM", "StableLmDecoderLayer", hidden_dropout=0.0),
    decoder("PhiForCausalLM", "PhiDecoderLayer", resid_pdrop=0.0, embd_pdrop=0.0),
    decoder("Phi3ForCausalLM", "Phi3DecoderLayer", resid_pdrop=0.0, embd_pdrop=0.0),
    decoder("GraniteForCausalLM", "GraniteDecoderLayer"),
    decoder("CohereForCausalLM", "CohereDecoderLayer"),
    decoder("Starcoder2ForCausalLM", "Starcoder2DecoderLayer", residual_dropout=0.0, embedding_dropout=0.0),
    decoder("SmolLM3ForCausalLM", "SmolLM3DecoderLayer"),
    decoder("HeliumForCausalLM", "HeliumDecoderLayer", head_dim=4),
    decoder("GlmForCausalLM", "GlmDecoderLayer", head_dim=8),
    *MIXTURES,
    Case("FalconForCausalLM", "FalconConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, hidden_dropout=0.0,
        attention_dropout=0.0, bos_token_id=1, eos_token_id=2), causal, "FalconDecoderLayer"),
    Case("GPTNeoXForCausalLM", "GPTNeoXConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20,
        max_position_embeddings=24, hidden_dropout=0.0, attention_dropout=0.0, classifier_dropout=0.0), causal,
        "GPTNeoXLayer"),
    Case("GPTJForCausalLM", "GPTJConfig", dict(
        vocab_size=VOCABULARY, n_positions=24, n_embd=16, n_layer=2, n_head=2, rotary_dim=4, resid_pdrop=0.0,
        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=1, eos_token_id=2), causal, "GPTJBlock"),
    Case("OPTForCausalLM", "OPTConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=20,
        word_embed_proj_dim=16, max_position_embeddings=24, dropout=0.0, attention_dropout=0.0, pad_token_id=0,
        bos_token_id=1, eos_token_id=2), padded_causal, "OPTDecoderLayer"),
    Case("BloomForCausalLM", "BloomConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, n_layer=2, n_head=2, hidden_dropout=0.0, attention_dropout=0.0,
        pad_token_id=0, bos_token_id=1, eos_token_id=2), causal, "BloomBlock"),
    Case("MptForCausalLM", "MptConfig", dict(
        vocab_size=VOCABULARY, d_model=16, n_layers=2, n_heads=2, max_seq_len=24, expansion_ratio=2, emb_pdrop=0.0,
        resid_pdrop=0.0), causal, "MptBlock"),
    Case("XGLMForCausalLM", "XGLMConfig", dict(
        vocab_size=VOCABULARY, d_model=16, num_layers=2, attention_heads=2, ffn_dim=20, max_position_embeddings=24,
        dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, layerdrop=0.0, pad_token_id=0, bos_token_id=1,
        eos_token_id=2), causal, "XGLMDecoderLayer"),
    encoder("BertForMaskedLM", "BertConfig", "BertLayer"),
    dataclasses.replace(encoder("BertForMaskedLM", "BertConfig", "BertLayer", hidden_dropout_prob=0.1,
                                attention_probs_dropout_prob=0.1), kind="dropout"),
    encoder("BertForSequenceClassification", "BertConfig", "BertLayer", classified),
    encoder("BertForTokenClassification", "BertConfig", "BertLayer", token_classified),
    encoder("BertForQuestionAnswering", "BertConfig", "BertLayer", answered, num_labels=2),
    encoder("RobertaForMaskedLM", "RobertaConfig", "RobertaLayer", pad_token_id=0),
    encoder("XLMRobertaForMaskedLM", "XLMRobertaConfig", "XLMRobertaLayer", pad_token_id=0),
    encoder("ElectraForMaskedLM", "ElectraConfig", "ElectraLayer", embedding_size=12),
    encoder("AlbertForMaskedLM", "AlbertConfig", "AlbertLayer", embedding_size=12),
    encoder("CamembertForMaskedLM", "CamembertConfig", "CamembertLayer", pad_token_id=0),
    encoder("MobileBertForMaskedLM", "MobileBertConfig", "MobileBertLayer", embedding_size=12,
            intra_bottleneck_size=16),
    encoder("LayoutLMForMaskedLM", "LayoutLMConfig", "LayoutLMLayer"),
    encoder("LongformerForMaskedLM", "LongformerConfig", "LongformerLayer", causal, attention_window=[4, 4], pad_token_id=0),
    Case("DistilBertForMaskedLM", "DistilBertConfig", dict(
        vocab_size=VOCABULARY, dim=16, n_layers=2, n_heads=2, hidden_dim=20, max_position_embeddings=24, dropout=0.0,
        attention_dropout=0.0), masked, "TransformerBlock"),
    Case("DebertaV2ForMaskedLM", "DebertaV2Config", {**BERT, "relative_attention": False}, masked, "DebertaV2Layer"),
    Case("ModernBertForMaskedLM", "ModernBertConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=24, pad_token_id=0, local_attention=4, reference_compile=False), masked,
        "ModernBertEncoderLayer"),
    Case("T5ForConditionalGeneration", "T5Config", T5, translated, "T5Block", scale=1.0),
    Case("MT5ForConditionalGeneration", "MT5Config", T5, translated, "MT5Block", scale=1.0),
    Case("UMT5ForConditionalGeneration", "UMT5Config", T5, translated, "UMT5Block", scale=1.0),
    Case("BartForConditionalGeneration", "BartConfig", BART, translated, "BartEncoderLayer"),
    Case("PegasusForConditionalGeneration", "PegasusConfig", BART, translated, "PegasusEncoderLayer"),
    Case("MarianMTModel", "MarianConfig", {**BART, "decoder_start_token_id": 0}, translated, "MarianEncoderLayer"),
    vision("ViTForImageClassification", "ViTConfig", "ViTLayer"),
    vision("DeiTForImageClassification", "DeiTConfig", "DeiTLayer"),
    vision("BeitForImageClassification", "BeitConfig", "BeitLayer", drop_path_rate=0.0),
    vision("Dinov2ForImageClassification", "Dinov2Config", "Dinov2Layer", drop_path_rate=0.0),
    vision("ViTMSNForImageClassification", "ViTMSNConfig", "ViTMSNLayer"),
    vision("SiglipForImageClassification", "SiglipConfig", "SiglipEncoderLayer"),
    Case("CLIPModel", "CLIPConfig", dict(text_config=CLIP_TEXT, vision_config=CLIP_VISION, projection_dim=12), captions,
         "CLIPEncoderLayer"),
    Case("SiglipModel", "SiglipConfig", dict(text_config={**CLIP_TEXT, "projection_size": 16},
                                             vision_config=CLIP_VISION), captions, "SiglipEncoderLayer"),
    Case("ConvNextForImageClassification", "ConvNextConfig", dict(
        hidden_sizes=[8, 12], depths=[1, 1], num_stages=2, patch_size=4, num_labels=3, drop_path_rate=0.0), pictures,
        "ConvNextLayer"),
    Case("ResNetForImageClassification", "ResNetConfig", dict(
        embedding_size=8, hidden_sizes=[8, 12], depths=[1, 1], layer_type="basic", num_labels=3), pictures,
        "ResNetBasicLayer"),
]


@contextlib.contextmanager
def first_of_ties() -> Iterator[None]:
    """PyTorch does not say which of equal values topk takes; a compiled step takes the first ones. In here eager does, too."""
    topk = torch.topk

    def first(tensor, k, dim=-1, largest=True, sorted=True):
        if isinstance(tensor, torch._subclasses.FakeTensor):
            return topk(tensor, k, dim, largest, sorted)
        places = tensor.detach().sort(dim=dim, descending=largest, stable=True).indices.narrow(dim, 0, k)
        return torch.return_types.topk((tensor.gather(dim, places), places))

    with unittest.mock.patch.object(torch, "topk", first), unittest.mock.patch.object(torch.Tensor, "topk", first):
        yield


def label(case: Case) -> str:
    """The class, with what tells two cases of one class apart."""
    return f"{case.name} ({case.kind})" if case.kind else case.name


def find(name: str) -> Case:
    return next(case for case in CASES if label(case) == name)


def build(case: Case) -> torch.nn.Module:
    """The model with its random weights, the same every time."""
    import transformers
    transformers.utils.logging.set_verbosity_error()
    options = {k: dict(v) if isinstance(v, dict) else v for k, v in case.options.items()}
    if case.name.startswith("SiglipFor"):
        options = dict(vision_config=dict(CLIP_VISION), num_labels=3)
    torch.manual_seed(0)
    model = getattr(transformers, case.name)(getattr(transformers, case.config)(**options))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(case.scale)
    return model.train()


def batches(case: Case, count: int) -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    return [case.batch() for _ in range(count)]
