"""The sentences by which a random step may be refused, each with lines of a step that is refused so.

A sentence says what is not supported, at the user's line. Any other one, however well written, is a failure of a random
step: whoever adds an error that a user may meet adds it here.
"""
from __future__ import annotations

import dataclasses
import re

from program import Data, Piece, Program


@dataclasses.dataclass(frozen=True)
class Refusal:
    """`pattern` is looked for in the message; `lines`, by place (program.PLACES), are of a step that it refuses."""

    pattern: str
    lines: dict[str, tuple[str, ...]]
    options: tuple[tuple[str, object], ...] = ()
    style: str = "plain"
    ranks: tuple[int, ...] = ()  # on which the step is run, where the runtime refuses it

    def program(self) -> Program:
        return small_program(self.lines, self.options, self.style)


def small_program(lines: dict[str, tuple[str, ...]], options: tuple[tuple[str, object], ...] = (),
                  style: str = "plain") -> Program:
    """One layer and a head, with these lines."""
    data = Data(batch=(("x", "torch.randn(6, 4, generator=generator).to(dtype)"),), batch_dims=(),
                embed=Piece("embed", ("h = torch.tanh(self.embed(x))",), ("self.embed = nn.Linear(4, 4)",)),
                pool=(), prepare=(), out="model(x)", loss="out.square().mean()")
    return Program(1, data, 4, 3, "SGD(model.parameters(), lr=0.1)", 1, style, "torch.float32", options,
                   **{place: (Piece("own", text),) for place, text in lines.items()})


LISTED = (
    Refusal(r"error: unknown op '\w+'\n",
            {"terms": ("loss = loss + torch.special.bessel_j1(out.detach()).mean()",)}),
    Refusal(r"error: '\w+' is not supported: ", {"layers": ("h = h @ torch.linalg.matrix_exp(self.embed.weight)",)}),
    Refusal(r"^the step replaces (buffer|parameter) '.*' by another tensor\n  hint: write into it in place",
            {"setup": ("model.register_buffer('mean', torch.zeros(3, dtype=dtype))",),
             "updates": ("model.mean = out.detach().mean(0)",)}),
    Refusal(r"reads a value that differs from rank to rank .* with view=local only gradients are averaged",
            {"updates": ("with torch.no_grad():", "    model.head.weight.mul_(loss.detach())")},
            (("view", "local"),)),
    Refusal(r"error: policy '.*' chooses no module: ", {}, (("policy", "size:1000"),)),
    Refusal(r"on CPUs GEMMs of \w+ (apply no activation|add no bias or residual)",
            {"layers": ("h = F.gelu(F.linear(h, self.embed.weight, self.embed.bias), approximate='tanh')",)},
            (("options", ["--epilogues=bias,gelu_tanh"]),), ranks=(1,)),
)


def is_listed(text: str) -> bool:
    return any(re.search(refusal.pattern, text) for refusal in LISTED)
