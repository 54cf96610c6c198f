"""The partitioned program as objects: what a Python pass reads and changes.

    def double_the_loss(program):
        loss = program.results["loss"]
        ...

One rank's step: operations in order, each with operands and results that know their types, attributes, phase, module and
shard unit. A pass replaces, inserts and erases operations, and adds state that lives from step to step.
"""
from __future__ import annotations

import dataclasses
import re
from typing import Any, Iterator, Sequence

from .text import Attribute, end_of, read_dictionary, split, write_dictionary


@dataclasses.dataclass(frozen=True)
class TensorType:
    """A rank's piece of a tensor.

    `shape` is the piece's, `global_shape` the whole tensor's; `state` is "replicated", "shard<dim, pre, chunk>",
    "partial<sum>", "owned" or "varying"; `dtype` as in MLIR: "f32", "bf16", "i64", "i1".
    """

    shape: tuple[int, ...]
    dtype: str
    global_shape: tuple[int, ...]
    state: str

    def __str__(self) -> str:
        sizes = "".join(f"{size}x" for size in self.shape)
        whole = ", ".join(map(str, self.global_shape))
        return f"tensor<{sizes}{self.dtype}, #spmd.sharding<global = [{whole}], [{self.state}]>>"

    @staticmethod
    def parse(text: str) -> TensorType | str:
        match = re.fullmatch(r"tensor<((?:\d+x)*)(\w+), #spmd\.sharding<global = \[([\d, ]*)\], \[(.*)\]>>", text)
        if match is None:
            return text
        shape = tuple(int(size) for size in match[1].split("x") if size)
        return TensorType(shape, match[2], tuple(int(size) for size in match[3].split(",") if size.strip()), match[4])

    def like(self, **changes: Any) -> TensorType:
        """This type with another dtype, shape, global_shape or state."""
        return dataclasses.replace(self, **changes)


class Value:
    """A tensor of the program: a result of an operation, or an argument (then `owner` is None, and `role` says which)."""

    def __init__(self, type: TensorType | str, owner: Operation | None = None, role: str = ""):
        self.type, self.owner, self.role = type, owner, role

    def __repr__(self) -> str:
        return f"<{self.owner.name if self.owner else self.role or 'value'}: {self.type}>"


class Operation:
    """`name` ("aten.mm"), `operands` and `results` (Values), `attributes` by name; `location` in MLIR's words.

    Operands may be set: `op.operands[0] = value`.
    """

    def __init__(self, name: str, operands: Sequence[Value], result_types: Sequence[TensorType | str],
                 attributes: dict[str, Any] | None = None, location: str = "unknown"):
        self.name, self.operands, self.attributes = name, list(operands), dict(attributes or {})
        self.results = [Value(type, self) for type in result_types]
        self.location = location
        self.regions: list[list[Block]] = []
        self.properties: set[str] = set()  # names of attributes that are printed as properties
        self.program: Program | None = None

    @property
    def result(self) -> Value:
        """The only result."""
        if len(self.results) != 1:
            raise ValueError(f"{self.name} has {len(self.results)} results")
        return self.results[0]

    @property
    def unit(self) -> str | None:
        """The shard unit that it belongs to, as a collective does."""
        unit = self.attributes.get("unit")
        return str(unit).lstrip("@") if unit is not None else None

    @property
    def segment(self) -> int | None:
        """The number of its run of forward, backward or optimizer, counted through the step."""
        return self.attributes.get("spmd.segment")

    @property
    def module(self) -> str | None:
        """The path of the module that it computes; None for what is of no module."""
        match = re.search(r'#spmd\.src<"([^"]*)">', self._place)
        return match[1] if match else None

    @property
    def lines(self) -> list[tuple[str, int]]:
        """The user's lines, (file, line), innermost first."""
        return [(file, int(line)) for file, line in re.findall(r'"([^"]*)":(\d+):\d+', self._place)]

    @property
    def _place(self) -> str:
        return self.program.expand(self.location) if self.program else self.location

    def replace_with(self, *values: Value) -> None:
        """Puts a value in the place of each result, everywhere, and erases the operation."""
        self._ours()
        if len(values) != len(self.results):
            raise ValueError(f"{self.name} has {len(self.results)} results, {len(values)} values are given")
        for old, new in zip(self.results, values):
            self.program.replace_uses(old, new)
        self.erase()

    def erase(self) -> None:
        """Takes the operation away; ValueError when a result is used."""
        self._ours()
        users = [user.name for result in self.results for user in self.program.users(result)]
        if users:
            raise ValueError(f"{self.name} is used by {', '.join(users)}")
        self.program.ops.remove(self)
        self.program = None

    def insert_before(self, name: str, operands: Sequence[Value] = (), result_types: Sequence[TensorType] = (),
                      attributes: dict[str, Any] | None = None) -> Operation:
        """A new operation in front of this one, in its segment and with its location."""
        return self._insert(0, name, operands, result_types, attributes)

    def insert_after(self, name: str, operands: Sequence[Value] = (), result_types: Sequence[TensorType] = (),
                     attributes: dict[str, Any] | None = None) -> Operation:
        """A new operation behind this one, in its segment and with its location."""
        return self._insert(1, name, operands, result_types, attributes)

    def _insert(self, offset: int, name: str, operands: Sequence[Value], result_types: Sequence[TensorType],
                attributes: dict[str, Any] | None) -> Operation:
        self._ours()
        own = {} if self.segment is None else {"spmd.segment": self.segment}
        made = Operation(name, operands, result_types, {**own, **(attributes or {})}, self.location)
        made.program = self.program
        self.program.ops.insert(self.program.ops.index(self) + offset, made)
        return made

    def _ours(self) -> None:
        if self.program is None:
            raise ValueError(f"{self.name} is no operation of a program any more")

    def __repr__(self) -> str:
        return f"<{self.name} ({', '.join(str(v.type) for v in self.operands)}) -> " \
               f"({', '.join(str(v.type) for v in self.results)})>"


@dataclasses.dataclass
class Block:
    arguments: list[Value]
    ops: list[Operation]


@dataclasses.dataclass(frozen=True)
class Segment:
    """One parameter's place in a unit's flat buffer, in elements."""

    parameter: str
    shape: tuple[int, ...]
    offset: int
    numel: int


@dataclasses.dataclass(frozen=True)
class Unit:
    """A shard unit: its parameters in one flat buffer of `padded` elements, cut among the ranks."""

    name: str
    dtype: str
    padded: int
    segments: tuple[Segment, ...]

    @property
    def parameters(self) -> list[str]:
        return [segment.parameter for segment in self.segments]


class State:
    """State that a pass has added: `value` is what the last step has left, `update(value)` what this one leaves."""

    def __init__(self, program: Program, value: Value, position: int):
        self._program, self.value, self._position = program, value, position

    def update(self, value: Value) -> None:
        if value.type != self.value.type:
            raise ValueError(f"the state is {self.value.type}, its new value {value.type}")
        self._program.returned.operands[self._position] = value


class Program:
    """One rank's step. `ops` in order, `arguments` with their roles, `returned` the operation that gives the results."""

    def __init__(self, module: Operation, aliases: list[str]):
        self._module, self._aliases = module, aliases
        self._locations = dict(re.match(r"(#\w+) = (.*)", line).groups() for line in aliases)
        self._function = next(op for op in module.regions[0][0].ops if op.name == "func.func")
        self._body = self._function.regions[0][0]
        for op in self._body.ops:
            op.program = self
        self._argument_attributes = [read_dictionary(entry[1:-1]) for entry in
                                     split(str(self._function.attributes.get("arg_attrs", "[]"))[1:-1])]
        self._result_attributes = [read_dictionary(entry[1:-1]) for entry in
                                   split(str(self._function.attributes.get("res_attrs", "[]"))[1:-1])]
        for argument, attributes in zip(self.arguments, self._argument_attributes):
            argument.role = str(attributes.get("spmd.arg", ""))
        # A hash of what gradients and results are, by which later passes are held to it: a pass may change them.
        self._function.attributes.pop("spmd.recorded_values", None)

    @property
    def ops(self) -> list[Operation]:
        return self._body.ops

    @property
    def arguments(self) -> list[Value]:
        return self._body.arguments

    @property
    def returned(self) -> Operation:
        return self.ops[-1]

    @property
    def loss(self) -> Value | None:
        """The loss, if the step returns one."""
        return next((value for value, role in zip(self.returned.operands, self._result_attributes)
                     if str(role.get("spmd.result", "")).startswith("#spmd.loss")), None)

    @property
    def state(self) -> list[Value]:
        """The arguments that live from step to step: parameters, buffers and optimizer state."""
        return [value for value in self.arguments
                if re.match(r"#spmd\.(param|buffer|state|shard|table)<", value.role)]

    @property
    def units(self) -> dict[str, Unit]:
        units = {}
        for op in self._module.regions[0][0].ops:
            if op.name == "spmd.shard_unit":
                layout = str(op.attributes["layout"])
                head = re.match(r"#spmd\.flat<(\w+), padded = (\d+)", layout)
                segments = tuple(
                    Segment(name, tuple(int(size) for size in shape.split(",") if size.strip()), int(offset), int(numel))
                    for name, shape, offset, numel in re.findall(
                        r'#spmd\.segment<"([^"]*)", shape = \[([\d, ]*)\].*?offset = (\d+), numel = (\d+)', layout))
                name = op.attributes["sym_name"]
                units[name] = Unit(name, head[1], int(head[2]), segments)
        return units

    @property
    def ranks(self) -> int:
        mesh = next(op for op in self._module.regions[0][0].ops if op.name == "spmd.mesh")
        ranks = 1
        for size in mesh.attributes["axis_sizes"]:
            ranks *= size
        return ranks

    def find(self, name: str, /, **attributes: Any) -> list[Operation]:
        """The operations of a name, in order, that have these attributes."""
        return [op for op in self.ops
                if op.name == name and all(op.attributes.get(key) == value for key, value in attributes.items())]

    def argument(self, unit: str, state: str = "param") -> Value:
        """A unit's chunk of its parameters, or of a state of the optimizer."""
        for value in self.arguments:
            if re.match(rf'#spmd\.(shard|table)<@{re.escape(unit)}, "{re.escape(state)}"', value.role):
                return value
        raise KeyError(f"unit {unit!r} has no {state!r}; arguments are {', '.join(v.role for v in self.arguments)}")

    def users(self, value: Value) -> list[Operation]:
        return [op for op in self.ops if any(operand is value for operand in op.operands)]

    def replace_uses(self, old: Value, new: Value) -> None:
        for op in self.ops:
            op.operands = [new if operand is old else operand for operand in op.operands]

    def add_state(self, unit: str, name: str, init: float = 0.0) -> State:
        """A chunk of state beside a unit's parameters: a number for each of them, sharded as they are, kept from step to
        step and in checkpoints. It begins with `init`, and is what it was until `update` says otherwise."""
        parameter = self.argument(unit)
        if any(re.match(rf'#spmd\.shard<@{re.escape(unit)}, "{re.escape(name)}"', v.role) for v in self.arguments):
            raise ValueError(f"unit {unit!r} has a state {name!r} already")
        role = f'#spmd.shard<@{unit}, "{name}", init = {float(init):.17e} : f64>'
        value = Value(parameter.type, role=role)
        self.arguments.append(value)
        self._argument_attributes.append({"spmd.arg": Attribute(role)})
        self.returned.operands.append(value)
        self._result_attributes.append({"spmd.result": Attribute(f"#spmd.update<{role}>")})
        return State(self, value, len(self.returned.operands) - 1)

    def expand(self, location: str) -> str:
        """A location with its aliases written out."""
        for _ in range(64):
            found = re.search(r"#loc\d*\b", location)
            if found is None:
                break
            inner = re.sub(r"^loc\((.*)\)$", r"\1", self._locations.get(found[0], "loc(unknown)"))
            location = location[:found.start()] + inner + location[found.end():]
        return location

    def __iter__(self) -> Iterator[Operation]:
        return iter(list(self.ops))

    def __str__(self) -> str:
        def dictionaries(entries: list[dict[str, Any]]) -> Attribute:
            return Attribute(f"[{', '.join(map(write_dictionary, entries))}]")

        attributes = self._function.attributes
        if self._argument_attributes:
            attributes["arg_attrs"] = dictionaries(self._argument_attributes)
        if self._result_attributes:
            attributes["res_attrs"] = dictionaries(self._result_attributes)
        taken = ", ".join(str(value.type) for value in self.arguments)
        given = ", ".join(str(value.type) for value in self.returned.operands)
        attributes["function_type"] = Attribute(f"({taken}) -> ({given})")
        self._function.properties |= {"arg_attrs", "res_attrs", "function_type"}
        return "\n".join([*_Printer().print(self._module, 0), *self._aliases, ""])


class _Printer:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}

    def _name(self, value: Value) -> str:
        if id(value) not in self._names:
            raise ValueError(f"{value!r} is used before its operation, or is of none in the program")
        return self._names[id(value)]

    def _define(self, value: Value) -> str:
        return self._names.setdefault(id(value), f"%v{len(self._names)}")

    def print(self, op: Operation, depth: int) -> Iterator[str]:
        pad = "  " * depth
        operands = ", ".join(map(self._name, op.operands))
        regions = [line for region in op.regions for line in self._region(region, depth)]
        results = ", ".join(map(self._define, op.results))
        properties = {k: v for k, v in op.attributes.items() if k in op.properties}
        rest = {k: v for k, v in op.attributes.items() if k not in op.properties}
        head = f"{pad}{results + ' = ' if results else ''}\"{op.name}\"({operands})"
        head += f" <{write_dictionary(properties)}>" if properties else ""
        types = f"({', '.join(str(v.type) for v in op.operands)}) -> ({', '.join(str(v.type) for v in op.results)})"
        tail = f"{' ' + write_dictionary(rest) if rest else ''} : {types} loc({op.location})"
        if not op.regions:
            yield head + tail
            return
        yield head + " ({"
        yield from regions
        yield pad + "})" + tail

    def _region(self, region: list[Block], depth: int) -> Iterator[str]:
        for block in region:
            if block.arguments:
                arguments = ", ".join(f"{self._define(value)}: {value.type}" for value in block.arguments)
                yield "  " * depth + f"^bb0({arguments}):"
            for op in block.ops:
                yield from self.print(op, depth + 1)


class _Reader:
    """Reads what spmd-opt prints with --mlir-print-op-generic and locations."""

    def __init__(self, text: str):
        self._text, self._at = text, 0
        self._values: dict[str, Value] = {}

    def program(self) -> Program:
        aliases = re.findall(r"^#\w+ = .*$", self._text, re.MULTILINE)
        self._text = re.sub(r"^#\w+ = .*\n", "", self._text, flags=re.MULTILINE)
        return Program(self._operation(), aliases)

    def _peek(self, text: str) -> bool:
        while self._text[self._at:self._at + 1].isspace():
            self._at += 1
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self._at += len(text) if found else 0
        return found

    def _until(self, stops: str) -> str:
        self._peek("")
        end = end_of(self._text, self._at, stops)
        found, self._at = self._text[self._at:end], end
        return found.strip()

    def _operation(self) -> Operation:
        names: list[tuple[str, int]] = []
        if self._peek("%"):
            for name in split(self._until("=")):
                base, _, count = name.partition(":")
                names.append((base, int(count) if count else 1))
            self._take("=")
        self._take('"')
        name = self._until('"')
        self._at += 1
        self._take("(")
        operands = [self._values[operand] for operand in split(self._until(")"))]
        self._take(")")
        op = Operation(name, operands, [])
        if self._take("<{"):
            op.attributes |= read_dictionary(self._until("}"))
            op.properties = set(op.attributes)
            self._take("}>")
        if self._take("({"):
            op.regions.append(self._region())
            while self._take(","):
                self._take("{")
                op.regions.append(self._region())
            self._take(")")
        if self._take("{"):
            op.attributes |= read_dictionary(self._until("}"))
            self._take("}")
        self._take(":")
        self._take("(")
        self._until(")")
        self._take(")")
        self._take("->")
        types = self._types()
        if self._take("loc("):
            op.location = self._until(")")
            self._take(")")
        op.results = [Value(TensorType.parse(text), op) for text in types]
        at = 0
        for base, count in names:
            for index in range(count):
                self._values[base if count == 1 else f"{base}#{index}"] = op.results[at]
                at += 1
        return op

    def _types(self) -> list[str]:
        if self._take("("):
            types = split(self._until(")"))
            self._take(")")
            return types
        self._peek("")
        start = self._at
        while self._at < len(self._text) and not self._text[self._at].isspace():
            inner = end_of(self._text, self._at, " \n")
            self._at = inner
        return [self._text[start:self._at].strip()]

    def _region(self) -> list[Block]:
        block = Block([], [])
        if self._take("^"):
            self._until("(:")
            if self._take("("):
                for entry in split(self._until(")")):
                    name, _, type_text = entry.partition(":")
                    type_text = re.sub(r"\s+loc\(.*\)$", "", type_text.strip())
                    value = Value(TensorType.parse(type_text))
                    self._values[name.strip()] = value
                    block.arguments.append(value)
                self._take(")")
            self._take(":")
        while not self._peek("}"):
            block.ops.append(self._operation())
        self._take("}")
        return [block]


def read_program(text: str) -> Program:
    """The program in the generic form of MLIR, with locations."""
    return _Reader(text).program()
