"""What the PTX of a kernel does to global memory, read from its text."""
import dataclasses
import json
import pathlib
import re

INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][\w.]*)\s+(.*?);", re.M)
REGISTER = re.compile(r"%[a-z]+\d+")
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


@dataclasses.dataclass
class Accesses:
    """Instructions of one kernel."""
    #: (pointer number, "ld" or "st", bytes at a time) -> how many; pointer None: a table, or not known.
    counts: dict[tuple[int | None, str, int], int] = dataclasses.field(default_factory=dict)
    #: Most bytes that a thread's loads bring at a time.
    in_flight: int = 0
    #: Accesses to local memory.
    local: int = 0

    def of(self, kind: str, pointer: int | None = None) -> dict[int, int]:
        """bytes at a time -> how many, of loads or stores, of one pointer or all."""
        widths: dict[int, int] = {}
        for (number, name, width), count in self.counts.items():
            if name == kind and pointer in (None, number):
                widths[width] = widths.get(width, 0) + count
        return widths


def width_of(op: str) -> int:
    """Bytes of ld.global.v4.b32."""
    lanes = re.search(r"\.v(\d)\.", op)
    return (int(lanes[1]) if lanes else 1) * BYTES[re.search(r"(\d+)$", op)[1]]


def find_bases(body: str) -> dict[str, int]:
    """register -> number of the argument whose address it is made from."""
    bases: dict[str, int] = {}
    before = -1
    while len(bases) != before:
        before = len(bases)
        for op, operands in INSTRUCTION.findall(body):
            param = re.search(r"_param_(\d+)\]", operands)
            registers = REGISTER.findall(operands)
            if op.startswith("ld.param") and param:
                bases.setdefault(registers[0], int(param[1]))
            elif registers and re.match(r"(add|sub|mad|mov|selp|or|cvta)\b", op):
                source = next((bases[r] for r in registers[1:] if r in bases), None)
                if source is not None:
                    bases.setdefault(registers[0], source)
    return bases


def read_kernel(body: str) -> Accesses:
    accesses = Accesses(local=len(re.findall(r"\b(?:ld|st)\.local", body)))
    bases = find_bases(body)
    # What may be issued together: no branch, no barrier and no store between, and no address that is loaded itself.
    for block in re.split(r"^\$\S+:|\bbra\b.*;$|\bbar\.sync\b.*;$|\bst\.global.*;$", body, flags=re.M):
        depth: dict[str, int] = {}  # register -> loads that it had to wait for
        bytes_at: dict[int, int] = {}
        for op, operands in INSTRUCTION.findall(block):
            registers = REGISTER.findall(operands)
            if op.startswith("ld.global"):
                address = re.search(r"\[(%rd\d+)", operands)
                level = depth.get(address[1], 0) if address else 0
                bytes_at[level] = bytes_at.get(level, 0) + width_of(op)
                depth.update({r: level + 1 for r in registers if not address or r != address[1]})
            elif registers and not op.startswith("st."):
                depth[registers[0]] = max((depth.get(r, 0) for r in registers[1:]), default=0)
        accesses.in_flight = max([accesses.in_flight, *bytes_at.values()])
    for op, operands in INSTRUCTION.findall(body):
        if op.startswith(("ld.global", "st.global")):
            address = re.search(r"\[(%rd\d+)", operands)
            key = (bases.get(address[1]) if address else None, op[:2], width_of(op))
            accesses.counts[key] = accesses.counts.get(key, 0) + 1
    return accesses


def read_ptx(text: str) -> dict[str, Accesses]:
    """symbol -> what it does."""
    return {name: read_kernel(body) for name, body in re.findall(r"\.visible \.entry (\w+)\((.*?)\n}\n", text, re.S)}


def argument_bytes(artifact: pathlib.Path) -> dict[str, list[int]]:
    """symbol -> bytes behind each pointer."""
    plan = json.loads((artifact / "train_step.plan.json").read_text())
    lists = {c["kernel"]: [value if isinstance(value, list) else [value] for value in c.values()]
             for c in plan["commands"] if "kernel" in c}
    return {kernel: [ref["bytes"] for values in members for ref in values if isinstance(ref, dict) and "buffer" in ref]
            for kernel, members in lists.items()}
