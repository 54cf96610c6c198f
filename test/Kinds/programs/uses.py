"""What numbers do, in which form they are kept, and how they change between calls."""
from __future__ import annotations

from typing import NamedTuple

from .pieces import Use

SCALE = Use("scale", "t = t * (1.0 + 0.1 * n)")
USES = [
    SCALE,
    Use("added product", "t = t + 0.1 * n * t"),
    Use("exponent", "t = t + 0.01 * (t * t + 1.0) ** n"),
    Use("branch", "if n > 1:\n    t = t * 1.5"),
    Use("branch of a conditional expression", "t = t * (1.5 if n > 1 else 0.5)"),
    Use("early return", "if n > 1:\n    return t\nt = t * 0.5"),
    Use("equal", "if n == 1.5:\n    t = t * 1.5"),
    Use("iterations", "for _ in range(int(n * 2)):\n    t = t * 1.1"),
    Use("while", "i = 0\nwhile i < n:\n    t = t * 1.1\n    i += 1"),
    Use("threshold", "t = torch.where(t.abs() > 0.2 * n, t, 0.5 * t)"),
    Use("clamp", "t = t.clamp(-n, n)"),
    Use("alpha", "t = torch.add(t, t, alpha=n)"),
    Use("index", "t = t * [1.0, 1.5, 0.7][int(n * 2) % 3]"),
    Use("key", "t = t * {'0.5': 1.0, '1.5': 1.5}.get(str(n), 0.7)"),
    Use("string", "if f'{n}' == '1.5':\n    t = t * 1.5"),
    Use("tensor", "t = t * torch.tensor(n, dtype=t.dtype)"),
    Use("full", "t = t * torch.full((), n, dtype=t.dtype)"),
    Use("sign", "t = t * math.copysign(1.0, n - 1.0)"),
    Use("rounded", "t = t * (1.0 + round(n))"),
    Use("math", "t = t * math.exp(-n)"),
    Use("comparison", "t = t * (1.0 + (n > 1))"),
    Use("function of PyTorch", "t = torch.nn.functional.leaky_relu(t, 0.1 * n)"),
    Use("lerp", "t = torch.lerp(t, 2.0 * t, 0.1 * n)"),
    Use("all()", "t = t * (1.5 if all((n > 1, True)) else 0.5)"),
]


class Encoding(NamedTuple):
    """`literal`: the number v as it is kept; `decode`: lines that give it back."""

    name: str
    literal: str
    decode: str = ""
    values: tuple[float, ...] = (0.5, 1.5, 2.5)
    module: str = ""


ENCODINGS = [
    Encoding("float", "{v!r}"),
    Encoding("int", "{i}", "n = n / 2"),
    Encoding("bool", "{b}", "n = 1.5 if n else 0.5", (0.5, 1.5)),
    Encoding("None", "({v!r} if {b} else None)", "n = 0.5 if n is None else n", (0.5, 1.5)),
    Encoding("string", "'{v!r}'", "n = float(n)"),
    Encoding("word", "'{w}'", "n = {'low': 0.5, 'middle': 1.5, 'high': 2.5}[n]"),
    Encoding("word that is compared", "'{w}'", "n = 0.5 if n == 'low' else 1.5 if n == 'middle' else 2.5"),
    Encoding("tuple", "({v!r}, 'x')", "n = n[0]"),
    Encoding("list", "[{v!r}]", "n = n[0]"),
    Encoding("dict", "{{'v': {v!r}}}", "n = n['v']"),
    Encoding("set", "{{{v!r}}}", "n = max(n)"),
    Encoding("enum member", "Level_$k({v!r})", "n = n.value",
             module="class Level_$k(enum.Enum):\n    LOW = 0.5\n    MIDDLE = 1.5\n    HIGH = 2.5"),
    Encoding("IntEnum member", "Level_$k({i})", "n = n / 2",
             module="class Level_$k(enum.IntEnum):\n    LOW = 1\n    MIDDLE = 3\n    HIGH = 5"),
    Encoding("enum member by is", "Level_$k({v!r})", "n = 1.5 if n is Level_$k.MIDDLE else 0.5", (0.5, 1.5),
             "class Level_$k(enum.Enum):\n    LOW = 0.5\n    MIDDLE = 1.5"),
    Encoding("object", "Boxed_$k({v!r})", "n = n.v",
             module="class Boxed_$k:\n    def __init__(self, v):\n        self.v = v"),
    Encoding("function", "(lambda: {v!r})", "n = n()"),
    Encoding("partial", "functools.partial(float, {v!r})", "n = n()"),
    Encoding("class", "type('Boxed', (), {{'v': {v!r}}})", "n = n.v"),
    Encoding("numpy scalar", "np.float64({v!r})", "n = float(n)"),
    Encoding("array", "np.array([{v!r}])", "n = float(n[0])"),
    Encoding("Decimal", "decimal.Decimal('{v!r}')", "n = float(n)"),
    Encoding("Fraction", "fractions.Fraction({i}, 2)", "n = float(n)"),
    Encoding("complex", "complex(0.0, {v!r})", "n = n.imag"),
    Encoding("timedelta", "datetime.timedelta(seconds={v!r})", "n = n.total_seconds()"),
    Encoding("range", "range({i})", "n = len(n) / 2"),
    Encoding("bytes", "b'{v!r}'", "n = float(n)"),
    Encoding("dtype", "({{0.5: torch.float32, 1.5: torch.float64}}[{v!r}])", "n = 1.5 if n == torch.float64 else 0.5",
             (0.5, 1.5)),
    Encoding("float of one's own", "Float_$k({v!r})", "n = float(n)", module="class Float_$k(float):\n    pass"),
]
WORDS = {0.5: "low", 1.5: "middle", 2.5: "high"}


def literal(encoding: Encoding, v: float, k: int) -> str:
    """The source of the number v."""
    text = encoding.literal.format(v=v, i=int(2 * v), b=v > 1, w=WORDS.get(v, "high"))
    return text.replace("$k", str(k))


# By name: what happens before each of calls 1 to 5. "a", "b", "c": the number is set to its first, second or third
# value; "b!": another holder has the second; "b owner": another owner has it; "method": a method is replaced.
CHANGES = {
    "nothing": {},
    "nothing, it is set again": {2: "a", 3: "a"},
    "number, once": {2: "b"},
    "number, late": {4: "b"},
    "number, twice": {1: "b", 3: "c"},
    "number, often": {1: "b", 2: "c", 3: "a", 4: "b", 5: "c"},
    "number returns": {2: "b", 4: "a"},
    "equal holder": {2: "a!"},
    "equal holder, then number": {2: "a!", 4: "b"},
    "another holder": {2: "b!", 4: "a!"},
    "entry is added": {2: "extra"},
    "entry is added, then number": {1: "extra", 3: "b"},
    "deleted": {2: "delete", 4: "a"},
    "deleted, another number": {2: "delete", 4: "b"},
    "equal owner": {2: "a owner"},
    "equal owner, then number": {2: "a owner", 4: "b"},
    "another owner": {2: "b owner", 4: "a owner"},
    "method on the instance": {2: "method", 4: "unmethod"},
    "class of the owner": {2: "class", 4: "unclass"},
    "method of the class": {2: "patch"},
}
