"""A random program for a seed."""
from __future__ import annotations

import dataclasses
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "Python"))
from optimizer_cases import IMPLEMENTATIONS, FUSED, LR, OPTIONS

from layers import LAYERS
from program import Data, Piece, Program
from rows import Scope
from terms import BETWEEN, GRADIENTS, RESULTS, SEEN, SETUP, TERMS, UPDATES

_LABELS = ("F.cross_entropy(out, y)", "F.cross_entropy(out, y, label_smoothing=0.1)",
           "F.cross_entropy(out, y, reduction='sum') / {N}", "F.nll_loss(F.log_softmax(out, -1), y)",
           "F.cross_entropy(out, y, reduction='none').mean()", "F.multi_margin_loss(out, y)",
           "F.cross_entropy(out, y, weight=torch.arange(1.0, {K} + 1).to(out.dtype))",
           "(F.one_hot(y, {K}) - out.softmax(-1)).square().sum(-1).mean()",
           "-out.log_softmax(-1).gather(1, y.unsqueeze(1)).mean()",
           "F.binary_cross_entropy_with_logits(out, F.one_hot(y, {K}).to(out.dtype))",
           "((1 - out.softmax(-1)[:, 0]) ** 2 * F.cross_entropy(out, y, reduction='none')).mean()")
_IGNORED = ("F.cross_entropy(out, y, ignore_index=-100)",
            "F.cross_entropy(out, y, ignore_index=-100, label_smoothing=0.2)",
            "(F.cross_entropy(out, y.clamp(min=0), reduction='none') * (y >= 0)).sum() / (y >= 0).sum()",
            "F.cross_entropy(out, y, ignore_index=-100, reduction='sum') / (y != -100).sum().clamp(min=1)")
_VALUES = ("F.mse_loss(out, y)", "F.l1_loss(out, y)", "F.smooth_l1_loss(out, y)", "F.huber_loss(out, y, delta=0.5)",
           "F.mse_loss(out, y, reduction='sum') / {N}", "(out - y).square().sum(-1).sqrt().mean()",
           "F.gaussian_nll_loss(out, y, out.exp())",
           "F.kl_div(F.log_softmax(out, -1), y.softmax(-1), reduction='batchmean')",
           "(out - y).abs().amax(-1).mean()", "torch.log(torch.cosh(out - y)).mean()", "(out - y).norm()",
           "1 - F.cosine_similarity(out, y, dim=-1).mean()", "F.cross_entropy(out, y.softmax(-1))",
           "F.margin_ranking_loss(out[:, 0], out[:, 1], y[:, 0].sign())", "F.poisson_nll_loss(out, y.abs())",
           "F.triplet_margin_loss(out, y, out.detach().flip(0))", "F.binary_cross_entropy(out.sigmoid(), y.sigmoid())",
           "F.pairwise_distance(out, y).mean()", "(out * y).mean().square()")

_STYLES = {"plain": 10, "zero first": 2, "zeros": 1, "chunks": 3, "two backwards": 1, "autograd.grad": 1,
           "two updates": 1, "autocast": 0.7, "over calls": 1}
_MODES = {"replicate": 5, "shard_grad_op": 1, "shard_optimizer": 1, "default": 1}
# How rows of matrices are padded, and what GEMMs take over: all that a library of some target has.
_ALIGNMENTS = (1, 32, 64, 128)
_EPILOGUES = ("none", "bias,residual,relu,gelu,gelu_tanh", "bias,residual,relu,gelu_tanh,bias_gradient", "bias_gradient",
              "bias,residual,relu,gelu_tanh,gelu_tanh_backward,bias_gradient", "bias,gelu_tanh_backward")


def generate(seed: int) -> Program:
    return _Generator(seed).program()


class _Generator:
    def __init__(self, seed: int):
        self.rng, self.seed = random.Random(seed), seed

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def some(self, scope: Scope, table: Any, most: int, probability: float) -> tuple[Piece, ...]:
        if not self.chance(probability):
            return ()
        picked: dict[str, Piece] = {}
        for _ in range(self.rng.randint(1, most)):
            piece = scope.pick(table)
            picked.setdefault(piece.name, piece)
        return tuple(picked.values())

    def program(self) -> Program:
        rng = self.rng
        # Rows are padded where they are at least as long as what they are aligned to: 4 elements of f32, 8 of bf16, or more.
        self.width = rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 12) if self.chance(0.7) else (13, 17, 19, 33, 35))
        self.classes = rng.choice((2, 3, 4, 5, 6) if self.chance(0.9) else (11, 17))
        # Fewer rows than ranks, too.
        self.rows = rng.choice((1, 1, 2, 2, 2, 3) if self.chance(0.3) else (4, 5, 6, 7, 7, 8, 9, 11))
        self.time = rng.choice((2, 3, 4, 5))
        data, has = self._data()
        style = rng.choices(list(_STYLES), list(_STYLES.values()))[0]
        if style == "chunks" and any(dim != 0 for _, dim in data.batch_dims):
            style = "plain"
        values = {"C": str(self.width), "K": str(self.classes), "T": str(self.time), "B": str(self.rows)}
        for word in ("start", "ema", "shadow", "teacher"):
            if self.chance(0.1):
                has.add(word)
        if self.chance(0.25):
            has.add("seen")
        scope = Scope(rng, values, has)
        parts: dict[str, Any] = {}
        repeat = rng.choice((1, 2, 2, 3)) if self.chance(0.3) else 0
        if repeat:
            parts["block"] = tuple(scope.pick(LAYERS, f"blocks[{rng.randrange(repeat)}].")
                                   for _ in range(rng.randint(1, 2)))
        parts["layers"] = tuple(scope.pick(LAYERS) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))))
        parts["setup"] = (*self._buffers(has), *self.some(scope, SETUP, 1, 0.12))
        parts["terms"] = self.some(scope, TERMS, 3, 0.75) + ((scope.pick(SEEN),) if "seen" in has else ())
        parts["gradients"] = self.some(scope, GRADIENTS, 2, 0.4) if style != "two updates" else ()
        parts["updates"] = self.some(scope, UPDATES, 2, 0.25)
        parts["results"] = self.some(scope, RESULTS, 3, 1 if "seen" in has else 0.5)
        parts["between"] = self.some(scope, BETWEEN, 2, 0.3)
        if style == "over calls":
            parts["setup"] += (Piece("update", ("global UPDATE", "UPDATE = True")),)
            parts["between"] += (Piece("update", ("global UPDATE", f"UPDATE = step % {rng.choice((2, 3))} == 1")),)
        has_attention = any("attention" in one.name or one.name in ("multihead", "transformer")
                            for one in (*parts["layers"], *parts.get("block", ())))
        dtype = rng.choices(("torch.float32", "torch.bfloat16", "torch.float16", "torch.float64"),
                            (80, 11, 4, 0 if has_attention else 5))[0]  # attention has no kernel for float64
        optimizer, steps, options = self._optimizer(), rng.choice((1, 2, 2, 3, 3, 4, 5, 8)), self._options(repeat, dtype)
        if style == "over calls" and ("view", "local") not in options and self.seed % 2:
            options += (("accumulate", "unsharded"),)
        if ("view", "local") in options:  # what a step writes into rows of one rank has no place in the call's batch
            data = dataclasses.replace(data, prepare=tuple(line for line in data.prepare if "mul_" not in line))
        return Program(self.seed, data, self.width, self.classes, optimizer, steps, style, dtype, options, repeat,
                       replicas=2 if self.chance(0.1) else 1, **parts)

    def _buffers(self, has: set[str]) -> list[Piece]:
        made = {"start": "model.register_buffer('start', model.head.weight.detach().clone())",
                "ema": "model.register_buffer('ema', torch.zeros((), dtype=dtype))",
                "shadow": "model.shadow = nn.ParameterList([nn.Parameter(p.detach().clone(), requires_grad=False) "
                          "for p in model.parameters()])",
                "teacher": "global TEACHER\nTEACHER = copy.deepcopy(model).requires_grad_(False)"}
        return [Piece(word, tuple(made[word].splitlines())) for word in made if word in has]

    def _data(self) -> tuple[Data, set[str]]:
        rng, rows, time, width, classes = self.rng, self.rows, self.time, self.width, self.classes
        kind = rng.choices(("vectors", "tokens", "sequences", "images", "bytes", "ids"), (6, 4, 3, 1, 1, 1))[0]
        per_token = kind == "tokens" or kind == "sequences" and self.chance(0.4)
        count = rows * time if per_token else rows
        has, batch, prepare, dims = set(), [], [], []
        features = rng.choice((3, 4, 5, width))
        if kind == "vectors":
            batch.append(("x", f"torch.randn({rows}, {features}, generator=generator).to(dtype)"))
            embed = Piece("embed", ("h = torch.tanh(self.embed(x))",),
                          (f"self.embed = nn.Linear({features}, {width})",))
            if features == width and self.chance(0.5):
                embed = Piece("embed", ("h = x",))
        elif kind == "bytes":
            batch.append(("x", f"torch.randint(0, 256, ({rows}, {features}), generator=generator, dtype=torch.uint8)"))
            embed = Piece("embed", ("h = torch.tanh(self.embed(x.to(self.embed.weight.dtype) / 255))",),
                          (f"self.embed = nn.Linear({features}, {width})",))
        elif kind in ("tokens", "ids"):
            shape = f"{rows}, {time}" if kind == "tokens" else f"{rows},"
            dtype = rng.choice(("", "", ", dtype=torch.int32"))
            batch.append(("x", f"torch.randint(0, 11, ({shape}), generator=generator{dtype})"))
            embed = Piece("embed", ("h = self.embed(x)",), (f"self.embed = nn.Embedding(11, {width})",))
        elif kind == "sequences":
            batch.append(("x", f"torch.randn({rows}, {time}, {features}, generator=generator).to(dtype)"))
            embed = Piece("embed", ("h = self.embed(x)",), (f"self.embed = nn.Linear({features}, {width})",))
        else:
            self.time = time = 9
            batch.append(("x", f"torch.randn({rows}, 2, 6, 6, generator=generator).to(dtype)"))
            embed = Piece("embed", ("h = F.relu(self.embed(x))", f"h = F.{rng.choice(('max', 'avg'))}_pool2d(h, 2)",
                                    "h = h.flatten(2).transpose(1, 2)"),
                          (f"self.embed = nn.Conv2d(2, {width}, 3, padding=1)",))
        timed = kind in ("tokens", "sequences", "images")
        has.add("time" if timed else "rows")
        pools = ("h = h.mean(1)", "h = h[:, -1]", "h = h.amax(1)", "h = h.sum(1)")
        pool = (rng.choice(pools),) if timed and not per_token else ()
        shape = f"{rows}, {time}" if per_token else f"{rows},"
        if self.chance(0.6):
            has.add("labels")
            ignored = self.chance(0.25)
            batch.append(("y", f"torch.randint({'-1' if ignored else '0'}, {classes}, ({shape}), generator=generator)"))
            loss = rng.choice(_IGNORED if ignored else _LABELS)
            if ignored:
                prepare.append("y = torch.where(y < 0, -100, y)")
            if per_token:
                prepare.append("y = y.flatten()")
        else:
            wide = f"{rows}, {time}, {classes}" if per_token else f"{rows}, {classes}"
            batch.append(("y", f"torch.randn({wide}, generator=generator).to(dtype)"))
            loss = rng.choice(_VALUES)
            if per_token:
                prepare.append("y = y.flatten(0, 1)")
        if self.chance(0.15):
            has.add("weights")
            batch.append(("weights", f"torch.rand({shape.rstrip(',')}, generator=generator).to(dtype)"))
            if per_token:
                prepare.append("weights = weights.flatten()")
        if self.chance(0.12):
            has.add("shared")
            batch.append(("shared", f"torch.randn({classes}, 2, generator=generator).to(dtype)"))
            dims.append(("shared", None))
        if self.chance(0.08) and kind in ("vectors", "sequences"):
            prepare.append(rng.choice(("x = x * 2", "x = (x - x.mean(0)) / (x.std(0) + 0.1)", "x.mul_(0.5)",
                                       "x = x.flip(0)")))
        out = "model(x).flatten(0, 1)" if per_token else "model(x)"
        return Data(tuple(batch), tuple(dims), embed, pool, tuple(prepare), out,
                    loss.format(N=count, K=classes)), has

    def _optimizer(self) -> str:
        rng = self.rng
        name = "SGD" if self.chance(0.6) else rng.choice(("Adam", "AdamW", "AdamW", *OPTIONS))
        option = "plain" if self.chance(0.4) else rng.choice(list(OPTIONS[name]))
        implementations = [k for k in IMPLEMENTATIONS if k != "fused" or name in FUSED]
        implementation = rng.choice(("default", "default", *implementations))
        given = {"lr": LR.get(name, 1e-2), **OPTIONS[name][option], **IMPLEMENTATIONS[implementation]}
        params = "model.parameters()"
        if option == "groups":
            params = ("[{'params': [p for p in model.parameters() if p.dim() > 1], 'weight_decay': 0.1}, "
                      f"{{'params': [p for p in model.parameters() if p.dim() < 2], 'lr': {given['lr'] / 2}}}]")
        elif self.chance(0.05):
            params = "model.head.parameters()"
        return f"{name}({params}, {', '.join(f'{k}={v!r}' for k, v in given.items())})"

    def _options(self, repeat: int, dtype: str) -> tuple[tuple[str, Any], ...]:
        options: dict[str, Any] = {}
        if self.chance(0.5):
            options["policy"] = self.rng.choice(("always", "name:head", "none", "size:20",
                                                 *(["class:Block"] * 2 if repeat else [])))
        if self.chance(0.4):
            options["mode"] = self.rng.choices(list(_MODES), list(_MODES.values()))[0]
        if self.chance(0.08):
            options["view"] = "local"
        rare = ("--prefetch=0", "--reshard-after-forward=false", "--fuse=false")
        words = [word for word in rare if self.chance(0.08)]
        if options.get("mode") == "default":
            words.append("--memory-budget=1GB")
        if self.chance(0.3):
            words.append(f"--row-alignment={self.rng.choice(_ALIGNMENTS)}")
        if self.chance(0.15):
            words.append(f"--epilogues={self.rng.choice(_EPILOGUES)}")
        if words:
            options["options"] = words
        if self.chance(0.15) and dtype != "torch.float64":
            options["target"] = "emulate:sm_90"
        return tuple(options.items())


if __name__ == "__main__":
    print(generate(int(sys.argv[1])).source(), end="")
