"""docs/models.md: what has been run, as `scripts/coverage-models --write` writes it."""
from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import transformers

import zoo

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
HEAD = """# Models

This page lists the model classes of `transformers` {version} that were trained on two ranks. It is for users who look for their model.
`scripts/coverage-models --write` generates it from runs; do not edit it.

An unmodified step trains each class: `loss = model(**batch).loss`, backward, `clip_grad_norm_`, AdamW; and plain SGD without
clipping. The config is small and random. The step is captured and compiled for 2 ranks, with the model's blocks as shard units.

- *equal*: loss, parameters and optimizer state of the ranks' programs equal those of the captured step in float64. Parameters
  whose gradient is zero except for rounding (biases of attention keys) are compared
  [through their optimizer state](interpreter.md#what-it-checks-while-it-runs).
- *trains*: 3 steps of the compiled program agree with eager PyTorch.
- The counts are the collectives of a step.
- A failure names the stage, the op and the line.

Notes on some classes:

- **Mixtures of experts** use transformers' `grouped_mm`, which sorts tokens by expert. The compiled program sorts nothing, and each
  rank keeps its own tokens (`spmd-unsort-rows`; `test/Models/test_experts.py`, for torchtitan
  `test/Python/test_grouped_products.py`). A [second table](#mixtures-in-each-type-and-on-each-target) has bf16 and an emulated GPU.
- **Loops over experts** train too (`lazy_rows.py`): JetMoE cuts rows by counts; LongcatFlash, DBRX, OpenAI's privacy filter and
  `experts_implementation="eager"` loop over masks. The compiled program computes all rows at once, as grouped products
  (`test/Python/test_rows_by_values.py`).
- **Ties.** If scores are equal, eager was configured to take the first one, as a compiled step does.
- **PhiMoE** draws its experts at random during training. Here its jitter is 0, so it takes the largest score.
- **Longformer** has no `attention_mask` here. With a mask its code branches on the mask's values. `spmd.compile` reads them in each
  call; an artifact cannot. Longformer, XLM, Flaubert and BigBird train with masks in `test/Models/test_asking_models.py`; FNet
  trains too.
- **Models for images and sound** receive only text.
- **Not tried**: Bamba (one expert), DiffusionGemma (its forward returns no loss), ViTPose's backbone (no head has a loss).

{passed} of {total} pass, {failed} fail{missing}.

| class | result |
| --- | --- |
"""
TAIL = """
## Trainers

These programs are used as their authors publish them, with small data and sizes and without dropout. They train on two ranks
beside eager; the losses of the first steps differ by less than a relative 1e-4. The programs are not part of this repository. The
table says what to change.

| program | change |
| --- | --- |
| nanoGPT `train.py`, llama2.c `train.py` | the loop's body from `for micro_step` to `optimizer.zero_grad()` becomes a function with a decorator. It receives a list of the microbatches (prefetch the next one before its call) and returns `loss`. Autocast, `GradScaler`, clipping and `raw_model.last_loss` stay |
| minGPT `Trainer.run` | the lines from `logits, self.loss = model(x, y)` to `self.optimizer.step()` become a method with a decorator |
| PyTorch's examples: word language model (Transformer, LSTM, GRU, RNN, tied; with and without an optimizer), language translation, mnist, mnist_rnn, forward-forward, vae, dcgan, gat, super resolution, regression, fast neural style, time sequence prediction (with Adam; its closure may stay) | the loop's body becomes a function with a decorator that returns the losses; `.item()` and printing stay outside. The hidden state of the word language model is an argument and a result, None for the Transformer |
| PyTorch's example gcn | the same; features and adjacency are dense: `to_dense()` |
| torchtitan 0.2.2, Llama 3, Llama 4, Qwen 3 and DeepSeek V3 | `Trainer.train_step` gets a decorator, and ends before `# log metrics` with `return loss, grad_norm`. `self.lr_schedulers.step()`, `lr = …` and logging move after its call in `train()`. `OptimizersContainer`, `next(data_iterator)`, microbatches, autocast and the hook that balances experts stay. `indices_padding_wrapper`, a Triton kernel that pads groups for `torch._grouped_mm`, returns its argument. For a comparison on a CPU, eager needs `torch.histc` of floats |
"""
MIXTURES = """
## Mixtures, in each type and on each target

Plain SGD trains mixtures of experts on 2 ranks, in f32 and in bf16 (parameters included), on `host` and on `emulate:sm_90`. The latter
runs the kernels of an H100 on the CPU and checks every access
(`scripts/coverage-models --write --target=emulate:sm_90 --dtype=bfloat16`). Losses of three steps (emulated: one step), the
parameters after them and the gradients of the first step are compared with eager.

A cell has the distance of all gradients from eager's in f32, ‖g − t‖ / ‖t‖, and after it the distance of eager's own gradients in
bf16. No parameter's gradient is more than three times as far from eager's f32 as eager's bf16, or more than 4 epsilons of bf16
(`test/Models/elsewhere.py`). A distance of about 1 % is rounding. A larger one means that some token with nearly equal
scores took another expert in bf16.

A failure is shown if eager in bf16 takes the same expert as in f32 and ours does not. There are two. Aria on the emulated GPU:
the 2nd and 3rd score of one of 60 tokens are 0.0023 apart, and eager's own scores in bf16 are off by 0.0047. Solar on the CPU:
scores of one token are 0.00015 apart, and scores of eager and ours in bf16 are off by up to 0.0003. If eager uses our expert
for that token, its gradients are as close to ours as in the other cells. {trains}{unknown}

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
                                trains="`trains` is from an earlier run, which compared no gradients. " if trains else "",
                                unknown=f"{unknown} cells have not been run (–)." if unknown else "All have been run.")
        text += "".join(f"| `{name}` | " + " | ".join(self.cells[setting].get(name, "–") for setting in SETTINGS) + " |\n"
                        for name in mixtures)
        DOCUMENT.write_text(text + TAIL)
