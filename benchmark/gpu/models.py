"""Small models with recorded batches, for breadth: one for each of the ways in which kernels are made. `pack` captures
and compiles them; where they run nothing of this file is needed."""
from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import nn

TESTS = Path(__file__).resolve().parent.parent.parent / "test"
sys.path[:0] = [str(TESTS / "Models"), str(TESTS / "Python")]

import own
import pipeline
import test_convnets
import test_grad_scaler
import test_grouped_products
import test_recurrent
import zoo

import spmd

BF16, F16, F64 = torch.bfloat16, torch.float16, torch.float64
ROWS, TIME, VOCABULARY = 8, 9, 37
TWO = ("shard:2",)


@dataclasses.dataclass(frozen=True)
class Model:
    """`package` captures the step with its batches and what eager makes of them."""
    name: str
    package: Callable[[], Any]
    block: str = ""
    #: Of a parameter's difference over its norm; 0: what `spmd-run --check` takes for its type.
    tolerance: float = 0.0
    #: The meshes for which it is also compiled, beside one rank; axes and their sizes.
    meshes: tuple[str, ...] = ()

    @property
    def policy(self) -> str:
        return f"class:{self.block}" if self.block else "none"


def record(step: Callable, model: nn.Module, optimizer: torch.optim.Optimizer, batches: list, *held: Any,
           **options: Any) -> Any:
    return spmd.capture(step, model, optimizer, *held, *batches[0], reference=[(*held, *batch) for batch in batches],
                        reference_state="zero_gradient", **options)


def adamw(model: nn.Module, lr: float = 1e-3) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=lr)


# --- transformers' ---------------------------------------------------------------------------------------------------

def of_zoo(label: str, dtype: torch.dtype = torch.float32, **options: Any) -> Model:
    """AdamW and clipping in f32, as test/Models trains them; in halves plain SGD, whose steps are not all of one size."""
    case = zoo.find(label)

    def package() -> Any:
        model, batches = zoo.build(case).to(dtype), [(batch,) for batch in zoo.batches(case, 3)]
        if dtype == torch.float32:
            return record(zoo.train_step, model, adamw(model), batches)
        batches = [({name: t.to(dtype) if t.is_floating_point() else t for name, t in batch.items()},)
                   for batch, in batches]
        return record(zoo.plain_step, model, torch.optim.SGD(model.parameters(), lr=1e-2), batches)

    tolerance = 1e-3 if dtype == torch.float32 else 2.0**-5
    return Model("-".join([*label.replace("(", "").replace(")", "").split(), *suffix(dtype)]), package, case.block,
                 tolerance, **options)


def suffix(dtype: torch.dtype) -> list[str]:
    return {torch.float32: [], BF16: ["bf16"], F16: ["f16"], F64: ["f64"]}[dtype]


ZOO = [
    of_zoo("GPT2LMHeadModel", meshes=TWO), of_zoo("GPT2ForSequenceClassification"), of_zoo("LlamaForCausalLM (padded)", meshes=TWO),
    of_zoo("MistralForCausalLM"), of_zoo("Qwen3ForCausalLM"), of_zoo("Gemma2ForCausalLM"), of_zoo("Olmo2ForCausalLM"),
    of_zoo("StableLmForCausalLM"), of_zoo("PhiForCausalLM"), of_zoo("CohereForCausalLM"), of_zoo("GlmForCausalLM"),
    of_zoo("MixtralForCausalLM", meshes=TWO), of_zoo("MixtralForCausalLM (batched_mm)"), of_zoo("OlmoeForCausalLM"),
    of_zoo("Qwen2MoeForCausalLM"), of_zoo("DeepseekV3ForCausalLM"), of_zoo("DeepseekV2ForCausalLM"),
    of_zoo("Qwen3NextForCausalLM"), of_zoo("GptOssForCausalLM"), of_zoo("FalconForCausalLM"), of_zoo("GPTJForCausalLM"),
    of_zoo("OPTForCausalLM"), of_zoo("BloomForCausalLM"), of_zoo("MptForCausalLM"), of_zoo("BertForMaskedLM"),
    of_zoo("BertForMaskedLM (dropout)", meshes=TWO), of_zoo("BertForQuestionAnswering"), of_zoo("AlbertForMaskedLM"),
    of_zoo("MobileBertForMaskedLM"), of_zoo("LongformerForMaskedLM"), of_zoo("DebertaV2ForMaskedLM"),
    of_zoo("ModernBertForMaskedLM"), of_zoo("T5ForConditionalGeneration"), of_zoo("BartForConditionalGeneration"),
    of_zoo("ViTForImageClassification"), of_zoo("BeitForImageClassification"), of_zoo("CLIPModel"),
    of_zoo("ConvNextForImageClassification"), of_zoo("ResNetForImageClassification", meshes=TWO),
    *(of_zoo(label, BF16) for label in ("GPT2LMHeadModel", "Qwen3ForCausalLM", "MixtralForCausalLM", "GptOssForCausalLM",
                                        "BertForMaskedLM", "ViTForImageClassification")),
]


# --- written here and in test/Models ---------------------------------------------------------------------------------

def tokens() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, VOCABULARY, (ROWS, TIME)), torch.randint(0, VOCABULARY, (ROWS, TIME))


def autocast(dtype: torch.dtype) -> Callable:
    def step(model, optimizer, x, y):
        with torch.autocast(x.device.type, dtype):
            loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step


def llama(name: str, dtype: torch.dtype = torch.float32, step: Callable = own.clipped_step, **options: Any) -> Model:
    def package() -> Any:
        torch.manual_seed(0)
        model = own.Llama(fused=dtype != torch.float32, vocabulary=VOCABULARY, width=32).to(dtype)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9) if dtype == F16 else adamw(model, 1e-2)
        return record(step, model, optimizer, [tokens() for _ in range(5)])
    return Model(name, package, "LlamaBlock", **options)


def simple(name: str, build: Callable[[], nn.Module], batch: Callable[[], tuple], step: Callable = own.clipped_step,
           optimizer: Callable[[nn.Module], torch.optim.Optimizer] = adamw, **options: Any) -> Model:
    def package() -> Any:
        torch.manual_seed(0)
        model = build()
        return record(step, model, optimizer(model), [batch() for _ in range(5)])
    return Model(name, package, **options)


class Embeddings(nn.Module):
    """Rows that are read, skipped, added up in bags, and scattered."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, 12, padding_idx=3)
        self.bags = nn.EmbeddingBag(VOCABULARY, 12, mode="sum")
        self.head = nn.Linear(12, VOCABULARY)

    def forward(self, x, y):
        h = self.words(x) + self.bags(x)[:, None]
        h = torch.zeros_like(h).scatter_add(1, (x % TIME)[..., None].expand_as(h), h)
        h = h.index_add(1, torch.tensor([2, 2, 5]), h[:, :3] * 0.5)
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


class Sorted(nn.Module):
    """Sorts, top-k, cumulative sums, medians of what a layer gives."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(11, 40), nn.Linear(24, 5)

    def forward(self, x, y):
        h = self.first(x)
        ordered, places = h.sort(dim=-1, stable=True)
        best, where = h.topk(8, -1)
        running = ordered.cumsum(-1)[:, ::5] * 0.1
        parts = torch.cat((best, running, h.gather(-1, places.argsort(-1)[:, :7]), where.to(h.dtype).mean(-1, True) * 0.01), -1)
        return F.cross_entropy(self.second(parts) + h.median(-1, True).values, y)


class Spectra(nn.Module):
    """Fourier transforms and complex numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 12), nn.Linear(12, 5)

    def forward(self, x, y):
        h = self.first(x)
        spectrum = torch.fft.rfft(h, norm="ortho")
        return F.cross_entropy(self.second(torch.fft.irfft(spectrum * spectrum.abs(), n=12)), y)


class Noisy(nn.Module):
    """Dropout, and noise of two kinds."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(11, 24), nn.Linear(24, 5)

    def forward(self, x, y):
        h = F.dropout(torch.relu(self.first(x)), 0.3)
        return F.cross_entropy(self.second(h + 0.1 * torch.randn_like(h) * torch.rand_like(h)), y)


def rows(width: int, dtype: torch.dtype = torch.float32) -> Callable[[], tuple]:
    return lambda: (torch.randn(ROWS, width, dtype=dtype), torch.randint(0, 5, (ROWS,)))


def labelled(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, TIME, 7, dtype=dtype), torch.randint(0, 5, (ROWS, TIME))


def pairs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(ROWS, 7), torch.randn(ROWS, 9)


def convnet(name: str, dtype: torch.dtype = torch.float32, **options: Any) -> Model:
    make, optimizer, image = test_convnets.CASES[name]

    def package() -> Any:
        torch.manual_seed(1)
        model = make().to(dtype)
        batches = [(x.to(dtype), y) for x, y in test_convnets.batches(5, 6, image)]
        # Batch norm over few values in halves is chaotic; how far eager itself moves is allowed.
        return record(test_convnets.train_step, model, optimizer(model), batches, reference_movement=dtype == BF16)
    return Model("-".join([*name.split(), *suffix(dtype)]), package, **options)


def recurrent(name: str, layer: type[nn.Module], **options: Any) -> Model:
    def package() -> Any:
        torch.manual_seed(0)
        t = test_recurrent
        model = t.Tagger(layer, batch_first=True, **options)
        return record(t.train_step, model, torch.optim.SGD(model.parameters(), lr=0.1),
                      [(torch.randn(t.BATCH, t.LENGTH, t.INPUTS), torch.randn(t.BATCH, t.LENGTH, 3)) for _ in range(t.STEPS)])
    return Model(name, package)


def grouped(kind: type[nn.Module]) -> Model:
    def package() -> Any:
        torch.manual_seed(0)
        t, model = test_grouped_products, kind()
        return record(t.step, model, torch.optim.SGD(model.parameters(), lr=0.1),
                      [(torch.randn(t.ROWS, t.WIDTH),) for _ in range(3)])
    return Model(f"grouped-{kind.__name__.lower()}", package)


def scaled(name: str, step: Callable) -> Model:
    """With a GradScaler, whose scale is too large for f16 in the first steps."""
    def package() -> Any:
        model = test_grad_scaler.network()
        return record(step, model, torch.optim.SGD(model.parameters(), lr=0.1), test_grad_scaler.batches(8, {}),
                      test_grad_scaler.scaler_of(init_scale=2.0**21))
    return Model(name, package)


def optimized(name: str, make: Callable, **options: Any) -> Model:
    return simple(f"optimizer-{name}", own.Weighted, labelled, optimizer=lambda model: make(model.parameters(), **options))


OWN = [
    llama("llama", meshes=("replicate:2,shard:2",)), llama("llama-bf16", BF16), llama("llama-autocast-bf16", step=autocast(BF16)),
    llama("llama-f16", F16, own.step), llama("llama-autocast-f16", step=autocast(F16)),
    convnet("resnet sgd", F64), convnet("unet sgd", F64),
    scaled("scaler", test_grad_scaler.documented), scaled("scaler-autocast", test_grad_scaler.under_autocast),
    simple("experts-dense", own.MoE, tokens, block="MixtureOfExperts"),
    simple("contrastive", own.Contrastive, pairs, block="Linear", meshes=TWO),
    simple("weighted-f64", lambda: own.Weighted().double(), lambda: labelled(F64)),
    simple("embeddings", Embeddings, tokens), simple("sorted", Sorted, rows(11)), simple("spectra", Spectra, rows(16)),
    simple("noisy", Noisy, rows(11), block="Linear", meshes=TWO), simple("noisy-bf16", lambda: Noisy().to(BF16), rows(11, BF16)),
    convnet("resnet sgd", block="Residual", meshes=TWO), convnet("resnet adamw"), convnet("unet sgd"), convnet("vae sgd"), convnet("resnet sgd", BF16),
    recurrent("lstm", nn.LSTM), recurrent("gru", nn.GRU, num_layers=2, bidirectional=True), recurrent("rnn", nn.RNN),
    grouped(test_grouped_products.Forms), grouped(test_grouped_products.Experts),
    optimized("sgd", torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
    optimized("adam", torch.optim.Adam, lr=1e-2, amsgrad=True), optimized("nadam", torch.optim.NAdam, lr=1e-2),
    optimized("rmsprop", torch.optim.RMSprop, lr=1e-2, centered=True), optimized("adagrad", torch.optim.Adagrad, lr=1e-2),
    optimized("fused", torch.optim.AdamW, lr=1e-2, fused=True),
]

#: The more unlike each other the earlier.
MODELS = [model for pair in zip(OWN, ZOO) for model in pair] + ZOO[len(OWN):]
