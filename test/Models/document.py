"""docs/models.md: what has been run, as `scripts/coverage-models --write` writes it."""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import transformers

import zoo

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
HEAD = """# Models

Made by `scripts/coverage-models --write`; do not edit.

Each class of `transformers` {version} below was trained by an unmodified step (`loss = model(**batch).loss`, backward,
`clip_grad_norm_`, AdamW; and plain SGD without clipping) on a small random config, captured, and compiled for 2 ranks,
with its blocks as shard units. "Equal" compares the ranks' programs with the captured step in float64: loss, parameters
and optimizer state. "Trains" compares 3 steps of the compiled program with eager PyTorch. The counts are the collectives
of a step. Parameters whose gradient is zero but for rounding (biases of attention keys) are compared
[through their optimizer state](interpreter.md#what-it-checks-while-it-runs). What fails says in which stage, at which op
and line.

Mixtures of experts are as their configs come, with transformers' `grouped_mm`, which sorts tokens by expert; compiled
for ranks nothing is sorted, and each rank keeps its own tokens (`spmd-unsort-rows`; `test/Models/test_experts.py`). What they come to
in bf16 and on an emulated GPU is [below](#mixtures-in-each-type-and-on-each-target). Torchtitan's are compiled so, too (`test/Python/test_grouped_products.py`).
Longformer is given no `attention_mask` here: which way its code goes depends on a mask's values, which `spmd.compile` looks
at in each call, and an artifact cannot. It, XLM, Flaubert and BigBird train with masks in `test/Models/test_asking_models.py`; FNet trains, too. Experts
that are gone through one by one train, too (`lazy_rows.py`): JetMoE's, which cuts rows up by counts, and those of LongcatFlash, DBRX,
OpenAI's privacy filter and `experts_implementation="eager"`, loops over masks; all rows are done at once, as grouped
products (`test/Python/test_rows_by_values.py`). Where scores are equal (ties), eager was asked to take the first of them, as a
compiled step does. PhiMoE, which draws its experts at random while it trains, has a jitter of 0, with which the largest score is drawn.
Models that see and hear are given text alone. Not tried: Bamba (one expert), DiffusionGemma (its forward gives no loss) and
ViTPose's backbone (no head has a loss).

{passed} of {total} pass, {failed} fail{missing}.

| class | |
| --- | --- |
"""
TAIL = """
## Trainers

Programs as their authors publish them, trained on two ranks beside eager with small data and sizes and without dropout:
the losses of the first steps differ by less than 1e-4 of themselves. Kept is none of them here; this is what changes.

| program | what changes |
| --- | --- |
| nanoGPT `train.py`, llama2.c `train.py` | the loop's body from `for micro_step` to `optimizer.zero_grad()` becomes a function with a decorator, which is given a list of the microbatches (the prefetch of the next one goes before its call) and returns `loss`; autocast, `GradScaler`, clipping and `raw_model.last_loss` stay |
| minGPT `Trainer.run` | from `logits, self.loss = model(x, y)` to `self.optimizer.step()` becomes a method with a decorator |
| PyTorch's examples: word language model (Transformer, LSTM, GRU, RNN, tied; with and without an optimizer), language translation, mnist, mnist_rnn, forward-forward, vae, dcgan, gat, super resolution, regression, fast neural style, time sequence prediction (with Adam; its closure may stay) | the loop's body becomes a function with a decorator that returns the losses; `.item()` and printing stay outside of it. The word language model's hidden state is an argument and a result, None for the Transformer |
| PyTorch's example gcn | the same, and features and adjacency are dense: `to_dense()` |
| torchtitan 0.2.2, Llama 3, Llama 4, Qwen 3 and DeepSeek V3 | `Trainer.train_step` gets a decorator, and ends before `# log metrics` with `return loss, grad_norm`; `self.lr_schedulers.step()`, `lr = …` and what logs go behind its call in `train()`. `OptimizersContainer`, `next(data_iterator)`, microbatches, autocast and the hook that balances experts stay. `indices_padding_wrapper`, a Triton kernel that pads groups for `torch._grouped_mm`, gives what it wraps; eager, to be compared with on a CPU, needs `torch.histc` of floats |
"""
MIXTURES = """
## Mixtures, in each type and on each target

Mixtures are also trained by plain SGD on 2 ranks in f32 and in bf16 (parameters and all), on `host` and on `emulate:sm_90`, the
kernels of an H100 run on the CPU with every access checked: `scripts/coverage-models --write --target=emulate:sm_90 --dtype=bfloat16`.
Losses of three steps (emulated one), the parameters after them and the gradients of the first step are eager's. A cell says how
far the gradients are from eager's in f32, ‖g − t‖ / ‖t‖ of all together; behind it how far eager's own in bf16 are: of no
parameter are ours more than three times as far, or than 4 epsilons of bf16 (`test/Models/elsewhere.py`). Where eager's are 1 % off it is
roundings; where more, some token whose scores are nearly equal took another expert in bf16. (Where eager's took the same as in f32 and
ours did not, that is shown as a failure: Aria's on the emulated GPU, where the 2nd and 3rd scores of one of 60 tokens are 0.0023 apart, and
eager's own scores in bf16 0.0047 off; and Solar's on the CPU, where those of one token are 0.00015 apart, and in bf16 both eager's and
ours are up to 0.0003 off. Eager given that token's experts of ours has gradients of which ours are no further off than
elsewhere.) {trains}{unknown}

| class | {columns} |
| --- |{lines}
"""
PASS, FAIL = "equal, trains: ", "**fails** in "
#: In which types and on which targets mixtures are trained.
SETTINGS = [(target, dtype) for target in ("host", "emulate:sm_90") for dtype in ("float32", "bfloat16")]


@dataclasses.dataclass
class Document:
    """What was found, by case: what training in f32 with AdamW came to, and by target and type how far gradients are off."""

    rows: dict[str, str] = dataclasses.field(default_factory=dict)
    cells: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=lambda: {setting: {} for setting in SETTINGS})

    @staticmethod
    def read() -> Document:
        found = Document()
        text = DOCUMENT.read_text() if DOCUMENT.exists() else ""
        for name, row in re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.MULTILINE):
            columns = re.split(r" (?<!\\)\| ", row)
            if len(columns) == 1:
                found.rows[name] = row
                continue
            for setting, cell in zip(SETTINGS, columns):
                if cell != "–":
                    found.cells[setting][name] = cell
        return found

    def write(self) -> None:
        labels, mixtures = [zoo.label(case) for case in zoo.CASES], [zoo.label(case) for case in zoo.MIXTURES]
        known = {name: self.rows[name] for name in labels if name in self.rows}
        passed = sum(row.startswith(PASS) for row in known.values())
        below = sum(name not in known and any(name in cells for cells in self.cells.values()) for name in labels)
        missing = len(labels) - len(known) - below
        text = HEAD.format(version=transformers.__version__, passed=passed, total=len(labels), failed=len(known) - passed,
                           missing=(f", {below} are in the [table of mixtures](#mixtures-in-each-type-and-on-each-target) alone"
                                    if below else "")
                           + (f", {missing} have not been run" if missing else ""))
        text += "".join(f"| `{name}` | {row} |\n" for name, row in known.items())
        trains = any(cell == "trains" for cells in self.cells.values() for cell in cells.values())
        unknown = sum(name not in cells for cells in self.cells.values() for name in mixtures)
        text += MIXTURES.format(columns=" | ".join(f"{target}, {dtype}" for target, dtype in SETTINGS), lines=" --- |" * len(SETTINGS),
                                trains="`trains`: of an earlier run, which compared no gradients. " if trains else "",
                                unknown=f"{unknown} cells have not been run (–)." if unknown else "All have been run.")
        text += "".join(f"| `{name}` | " + " | ".join(self.cells[setting].get(name, "–") for setting in SETTINGS) + " |\n"
                        for name in mixtures)
        DOCUMENT.write_text(text + TAIL)
