"""What a program is made of: pieces drawn for each of its numbers, and whether they fit together."""
from __future__ import annotations

import itertools
import random
from typing import Any

from .containers import containers
from .more_writes import OTHERS
from .pieces import Place, Role, Use, Way, Write
from .places import PLACES
from .roles import ROLES
from .uses import CHANGES, ENCODINGS, SCALE, USES, Encoding
from .ways import ATTRIBUTES, DIRECT, MEMBERS, WRAPS
from .ways_of_containers import ENTRIES
from .writes import OBJECTS

# A number is a dict: the names of its pieces. A program, or Spec: the style of its step, and its numbers.
Number = dict[str, Any]
Spec = dict[str, Any]

PLACE: dict[str, Place] = {one.name: one for one in (*PLACES, *containers())}
WAY: dict[str, Way] = {}
for _way in (DIRECT, *ATTRIBUTES, *MEMBERS, *ENTRIES):
    WAY[_way.name if _way.name not in WAY else f"{_way.name} of a container"] = _way
WRAP: dict[str, Way] = {one.name: one for one in WRAPS}
USE: dict[str, Use] = {one.name: one for one in USES}
ENCODING: dict[str, Encoding] = {one.name: one for one in ENCODINGS}
ROLE: dict[str, Role] = {one.name: one for one in ROLES}
WRITE: dict[str, Write] = {one.name: one for one in (*OBJECTS, *OTHERS)}
KINDS = {"place": PLACE, "way": WAY, "wrap": WRAP, "use": USE, "role": ROLE, "encoding": ENCODING, "change": CHANGES,
         "write": WRITE}
SITES, STYLES = ("method", "function", "inline"), ("method", "function", "closure")
SIMPLEST = {"way": "direct", "wrap": "nothing", "use": "scale", "encoding": "float", "site": "method",
            "library": False, "role": "config in an attribute", "change": "number, once", "first": 0, "read": True}
_NAMES = {id(way): name for name, way in WAY.items()}
_BEFORE = "number, before call "  # a change of each()


def parts_of(op: str) -> tuple[str, str]:
    """The letter of an operation of CHANGES, and what happens."""
    is_value = op[:1] in ("a", "b", "c") and op[1:] in ("", "!", " owner")
    return (op[0], op[1:].strip()) if is_value else ("", op)


def changes_of(number: Number) -> dict[int, str]:
    """What happens before each call."""
    name = number.get("change", "nothing")
    return {int(name.removeprefix(_BEFORE)): "b"} if name.startswith(_BEFORE) else CHANGES[name]


def is_plain(role: Role) -> bool:
    """Whether the owner's class is an ordinary one that nothing else derives from."""
    return not role.base and role.host != "self"


def is_optimizer(role: Role) -> bool:
    """Whether the owner is the step's optimizer."""
    return role.base in ("optimizer", "sgd")


def _flags(place: Place, role: Role) -> set[str]:
    """What a way of reading may rely on."""
    found = {*place.is_, "scaled"}
    if place.encoding in ("", "float"):
        found |= {"float", "two"}
    if place.key == "'n'":
        found.add("n")
    if place.target in ("$o", "$o.held_$k"):
        found.add("instance")
    if place.target == "$o.held_$k":
        found.add("small")
    if is_plain(role):
        found |= {"plain_owner"} | ({"uncalled"} if not role.name.startswith("criterion") else set())
    return found


def problem(number: Number, style: str) -> str | None:
    """Why the pieces of a number do not fit together; None if they do."""
    role, is_inline = ROLE[number["role"]], number["site"] == "inline"
    if role.style and role.style != style:
        return "style"
    if is_inline and (number["library"] or is_optimizer(role) or not (role.owner or role.host == "self")):
        return "site"
    if "write" in number:
        return None
    place, way, wrap = PLACE[number["place"]], WAY[number["way"]], WRAP[number["wrap"]]
    needs = way.needs | wrap.needs
    if not needs <= _flags(place, role):
        return "way"
    if place.roles and not role.name.startswith(place.roles):
        return "role"
    if way.lines and wrap.name != "nothing":
        return "wrap"
    if ("scaled" in needs and number["use"] != SCALE.name) or (is_inline and number["use"] == "early return"):
        return "use"
    ops = {parts_of(op)[1] for op in changes_of(number).values()}
    is_float = place.encoding == "float" or needs & {"float", "two"} or "delete" in ops
    if is_float and number["encoding"] != "float":
        return "encoding"
    if number["encoding"] == "function" and place.name.startswith(("class attr", "metaclass", "descriptor that holds")):
        return "encoding"  # a function in a class is a method
    return _problem_of_change(ops, place, way, wrap, role, number["site"])


def _problem_of_change(ops: set[str], place: Place, way: Way, wrap: Way, role: Role, site: str) -> str | None:
    if "delete" in ops and (wrap.name != "nothing" or way.default is None or not place.delete):
        return "delete"
    if "!" in ops and not place.replace or "owner" in ops and not role.can_move:
        return "another holder"
    if "extra" in ops and (not place.extra or way.name == "unpacking"):
        return "extra"
    if ops & {"method", "class", "unmethod"} and (place.name == "slot" or site != "method"):
        return "method"
    if "class" in ops and not (is_plain(role) and role.can_move):
        return "class"
    return None


def draw(seed: int, kinds: str = "") -> Spec:
    """The program of a seed. `kinds`: a part of a name that its first number has somewhere."""
    rng = random.Random(seed)
    style = rng.choice(STYLES)
    numbers: list[Number] = []
    writes = rng.random() < 0.25  # a write that is refused hides what else there is
    count = 1 if writes and rng.random() < 0.8 else rng.choice((1, 2, 3))
    while len(numbers) < count:
        number = _draw_write(rng) if writes and not numbers else _draw_read(rng)
        if kinds and not numbers and not any(kinds in str(value) for value in number.values()):
            continue
        optimizers = sum(is_optimizer(ROLE[one["role"]]) for one in (*numbers, number))
        if not problem(number, style) and optimizers < 2:
            numbers.append(number)
    return {"style": style, "numbers": numbers}


def _draw_role(rng: random.Random) -> Number:
    return {"role": rng.choice(ROLES).name, "site": rng.choice(SITES), "library": rng.random() < 0.2}


def _draw_write(rng: random.Random) -> Number:
    return {"write": rng.choice(list(WRITE)), "read": rng.random() < 0.6, **_draw_role(rng)}


def _draw_read(rng: random.Random) -> Number:
    number = _draw_role(rng)
    role = ROLE[number["role"]]
    if rng.random() < 0.5:  # a way first, so that rare ones are drawn, too
        way = rng.choice([*ATTRIBUTES, *ENTRIES])
        fits = [name for name, place in PLACE.items() if way.needs <= _flags(place, role)]
        name = rng.choice(fits or list(PLACE))
    else:
        of_containers = [name for name, place in PLACE.items() if "container" in place.is_]
        name = rng.choice(PLACES).name if rng.random() < 0.6 else rng.choice(of_containers)
        families = [[way for way in family if way.needs <= _flags(PLACE[name], role)]
                    for family in ([DIRECT], MEMBERS, (*ATTRIBUTES, *ENTRIES))]
        way = rng.choice(rng.choice([family for family in families if family]))
    wrap = "nothing" if way.lines or rng.random() < 0.5 else rng.choice(WRAPS).name
    is_float = PLACE[name].encoding == "float" or (way.needs | WRAP[wrap].needs) & {"float", "two"} \
        or way.default is not None or rng.random() < 0.4
    use = "scale" if "scaled" in way.needs or rng.random() < 0.3 else rng.choice(USES).name
    number |= {"place": name, "way": _NAMES[id(way)], "wrap": wrap, "use": use,
               "encoding": "float" if is_float else rng.choice(ENCODINGS).name, "change": "nothing",
               "first": rng.choice((0, 0, 1))}
    changes = [name for name in CHANGES if not problem({**number, "change": name}, role.style)]
    deletes = [name for name in changes if name.startswith("deleted")]
    return number | {"change": rng.choice(deletes if deletes and rng.random() < 0.5 else changes or ["nothing"])}


def each(kind: str) -> list[Spec]:
    """Each piece of a kind ("place", "way", "role", …) once, and the rest as simple as it can be.

    A program has five of them, which change before calls 1 to 5; of writes, changes and optimizers one.
    """
    if kind == "write":
        given = {key: SIMPLEST[key] for key in ("read", "role", "site", "library")}
        return [{"style": "method", "numbers": [{"write": name, **given}]} for name in WRITE]
    numbers = [number for name in KINDS[kind] if (number := _simplest_with(kind, name))]
    specs = []
    for style in STYLES:
        own = [number for number in numbers if (ROLE[number["role"]].style or "method") == style]
        alone = [number for number in own if kind == "change" or is_optimizer(ROLE[number["role"]])]
        rest = [number for number in own if number not in alone]
        specs += [{"style": style, "numbers": [number]} for number in alone]
        for at in range(0, len(rest), 5):
            five = [number | {"change": f"{_BEFORE}{call}"} for call, number in enumerate(rest[at:at + 5], 1)]
            specs.append({"style": style, "numbers": five})
    return specs


def _simplest_with(kind: str, name: str) -> Number | None:
    """The simplest number with a piece."""
    usual = ("instance attribute", "object", "dataclass", "namedtuple", "dict, attribute", "list, attribute",
             "set, attribute")
    places = [name] if kind == "place" else [*usual, *PLACE]
    roles = [name] if kind == "role" else [SIMPLEST["role"], "callback", "layer"]
    ways = [name] if kind == "way" else [SIMPLEST["way"], "getattr with a default"]
    given = {key: value for key, value in SIMPLEST.items() if key != "read"}
    for place, role, way in itertools.product(places, roles, ways):
        number = {**given, "place": place, "role": role, "way": way, kind: name}
        if not problem(number, ROLE[role].style or "method"):
            return number
    return None


def values_of(number: Number) -> list[float]:
    """The numbers that it takes: a, b and c."""
    place, encoding = PLACE[number["place"]], ENCODING[number["encoding"]]
    found = [v for v in place.values if v in encoding.values or len(place.values) > 3]
    if "two" in WAY[number["way"]].needs:
        found = found[:2]
    found = found[number["first"]:] + found[:number["first"]]
    return [*found, *found][:max(3, len(found))]


def states(spec: Spec) -> int:
    """How many programs the step may need: the distinct states that its numbers have before the calls."""
    found, current = set(), [["a", ""] for _ in spec["numbers"]]
    for call in range(6):
        for number, state in zip(spec["numbers"], current):
            letter, what = parts_of(changes_of(number).get(call, ""))
            if letter:
                state[:] = letter, ""
            elif what and what != "extra":
                state[1] = what
        found.add(repr(current))
    return len(found)
