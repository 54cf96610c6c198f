"""A row of a table of pieces, and how its placeholders are filled."""
from __future__ import annotations

import dataclasses
import random
import re

from program import Piece

# What a placeholder without a value of its own is drawn from.
CHOICES = {
    "act": ("torch.tanh", "F.relu", "F.gelu", "torch.sigmoid", "F.silu", "torch.sin", "F.softplus", "F.elu",
            "F.leaky_relu", "F.mish", "F.hardtanh", "F.hardswish", "torch.atan", "torch.cos", "F.softsign", "F.celu",
            "F.selu", "F.logsigmoid", "F.tanhshrink", "torch.erf", "torch.asinh", "torch.abs"),
    "c": ("0.01", "0.1", "0.25", "0.5"),
    "dim": ("0", "1", "-1"),
    "diagonal": ("", "1", "-1"),
    "cast": ("", ".float()"),
    "first": ("0", "-1", "1"),
    "cell": ("GRU", "LSTM", "RNN"),
    "max_norm": ("0.1", "0.5", "1.0", "5.0"),
    "norm_type": ("2", "2.0", "1", "1.5", "3", "float('inf')"),
    "decay": ("0.9", "0.99", "0.5"),
    "reduction": ("'mean'", "'sum'"),
    "foreach": ("", ", foreach=True", ", foreach=False"),
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A kind of piece. `matrices`, `vectors`, `scalars` name parameters that other pieces may use; `when` is what it
    needs: a word of Scope.has."""

    name: str
    code: tuple[str, ...]
    init: tuple[str, ...]
    top: tuple[str, ...]
    weight: float
    when: str
    known: dict[str, tuple[str, ...]]


def row(name: str, *code: str, init: str | tuple[str, ...] = (), top: str | tuple[str, ...] = (), weight: float = 1,
        when: str = "", **known: str | tuple[str, ...]) -> Row:
    return Row(name, code, _tuple(init), _tuple(top), weight, when, {k: _tuple(v) for k, v in known.items()})


def _tuple(text: str | tuple[str, ...]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


class Scope:
    """What rows are filled from: numbers of the program, and the parameters it has so far."""

    def __init__(self, rng: random.Random, values: dict[str, str], has: set[str]):
        self.rng, self.values, self.has = rng, values, has
        self.known: dict[str, list[str]] = {"matrices": ["head.weight"], "vectors": ["head.bias"], "scalars": []}
        self.number = 0

    def can(self, candidate: Row) -> bool:
        needs = re.findall(r"\$(scalar)\b", " ".join(candidate.code))
        return all(word in self.has for word in candidate.when.split()) and (not needs or bool(self.known["scalars"]))

    def pick(self, table: tuple[Row, ...], prefix: str = "", register: bool = True) -> Piece:
        allowed = [candidate for candidate in table if self.can(candidate)]
        chosen = self.rng.choices(allowed, [candidate.weight for candidate in allowed])[0]
        return self.fill(chosen, prefix, register)

    def fill(self, chosen: Row, prefix: str = "", register: bool = True) -> Piece:
        self.number += 1
        values = {**self.values, "i": str(self.number)}

        def value(match: re.Match) -> str:
            key = match[1]
            if key not in values:
                values[key] = self._parameter(key) or self.rng.choice(CHOICES[key])
            return values[key]

        def text(lines: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(re.sub(r"\$(\w+)", value, line) for line in lines)
        piece = Piece(chosen.name, text(chosen.code), text(chosen.init), text(chosen.top))
        for kind, names in chosen.known.items() if register else ():
            self.known[kind] += [prefix + name for name in text(names)]
        return piece

    def _parameter(self, key: str) -> str | None:
        """$w and $W: matrices; $v: a vector; $scalar; $p: any parameter."""
        kinds = {"w": ("matrices",), "W": ("matrices",), "v": ("vectors",), "scalar": ("scalars",),
                 "p": ("matrices", "vectors", "scalars")}.get(key)
        return kinds and "model." + self.rng.choice([name for kind in kinds for name in self.known[kind]])
