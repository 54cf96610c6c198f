"""Numbers in containers: where the container is kept, what it is, and how the number is in it."""
from __future__ import annotations

from typing import Iterator, NamedTuple

from .pieces import Place


class Container(NamedTuple):
    """`$c` is the container."""

    name: str
    make: str
    set: str  # changes the number in it
    is_: str  # "mapping", "sequence", "set", and what else ways.py asks for
    read: str = "$c['n']"
    key: str = "'n'"
    extra: str = ""
    delete: str = ""
    module: str = ""
    encoding: str | None = "float"
    values: tuple[float, ...] = (0.5, 1.5, 2.5)


_BOX = "class Box_$k:\n    def __init__(self, n):\n        self.n = n"
_PUT = {"set": "$c['n'] = $v", "encoding": "", "extra": "$c['unread'] = 0.0"}
_FIRST = {"set": "$c[0] = $v", "read": "$c[0]", "key": "0"}
_PRESENT = {"encoding": "float", "values": (0.5, 1.5), "key": ""}

CONTAINERS = [
    Container("dict", "{'n': $v, 'm': 0.25}", is_="mapping dict plain", delete="del $c['n']", **_PUT),
    Container("OrderedDict", "collections.OrderedDict(n=$v, m=0.25)", is_="mapping dict", delete="del $c['n']",
              **_PUT),
    Container("defaultdict", "collections.defaultdict(lambda: 9.0, n=$v, m=0.25)", is_="mapping dict", **_PUT),
    Container("Counter", "collections.Counter(n=$v, m=0.25)", is_="mapping dict", **_PUT),
    Container("UserDict", "collections.UserDict(n=$v, m=0.25)", is_="mapping", delete="del $c['n']", **_PUT),
    Container("ChainMap", "collections.ChainMap({}, {'n': $v, 'm': 0.25})", is_="mapping",
              **_PUT | {"set": "$c.maps[1]['n'] = $v"}),
    Container("ChainMap that is shadowed", "collections.ChainMap({}, {'n': $v, 'm': 0.25})", is_="mapping", **_PUT),
    Container("MappingProxyType", "proxy_$k($v)", "HIDDEN_$k['n'] = $v", "mapping",
              module="HIDDEN_$k = {'m': 0.25}\ndef proxy_$k(n):\n    HIDDEN_$k['n'] = n\n"
                     "    return types.MappingProxyType(HIDDEN_$k)"),
    Container("a dict of one's own", "Own_$k(n=$v, m=0.25)", is_="mapping dict",
              module="class Own_$k(dict):\n    pass", **_PUT),
    Container("a dict with __missing__", "Own_$k(m=0.25)", "Own_$k.n = $v", "", encoding="",
              module="class Own_$k(dict):\n    n = 9.0\n    def __missing__(self, key):\n"
                     "        return self.n\nOwn_$k.n = $v"),
    Container("dict in a dict", "{'a': {'n': $v}, 'b': {}}", "$c['a']['n'] = $v", "", "$c['a']['n']", encoding=""),
    Container("dict in a dict, by get", "{'a': {'n': $v}, 'b': {}}", "$c['a']['n'] = $v", "",
              "$c.get('a', {}).get('n', 9.0)", encoding=""),
    Container("dict with a list", "{'a': [0.25, $v]}", "$c['a'][1] = $v", "", "$c['a'][1]", encoding=""),
    Container("dict with int keys", "{7: $v, 8: 0.25}", "$c[7] = $v", "mapping dict", "$c[7]", "7", encoding=""),
    Container("dict with tuple keys", "{('a', 1): $v}", "$c['a', 1] = $v", "mapping dict", "$c['a', 1]", "('a', 1)",
              encoding=""),
    Container("dict with objects as keys", "{KEY_$k: $v}", "$c[KEY_$k] = $v", "mapping dict", "$c[KEY_$k]", "KEY_$k",
              module="KEY_$k = object()", encoding=""),
    Container("dict with enum keys", "{Key_$k.A: $v}", "$c[Key_$k.A] = $v", "mapping dict", "$c[Key_$k.A]",
              "Key_$k.A", module="class Key_$k(enum.Enum):\n    A = 1", encoding=""),
    Container("dict of functions", "{'n': lambda: $v}", "$c['n'] = lambda: $v", "", "$c['n']()", encoding=""),
    Container("dict of objects", "{'a': Box_$k($v)}", "$c['a'].n = $v", "", "$c['a'].n", module=_BOX, encoding="",
              extra="$c['b'] = Box_$k(0.0)"),
    Container("dict of objects, by values()", "{'a': Box_$k($v)}", "$c['a'].n = $v", "",
              "sum(box.n for box in $c.values())", module=_BOX),
    Container("keys of a dict", "{$v: 'a', 0.25: 'b'}", "$c.clear()\n$c[$v] = 'a'", "", "max($c)"),
    Container("key of a dict that is compared", "{$v: 'a'}", "$c.clear()\n$c[$v] = 'a'", "",
              "1.5 if 1.5 in $c else 0.5", values=(0.5, 1.5)),
    Container("order of a dict", "{'a': 0} if $v > 1 else {'b': 0, 'a': 0}",
              "$c.clear()\n$c.update({'a': 0} if $v > 1 else {'b': 0, 'a': 0})", "",
              "1.5 if next(iter($c)) == 'a' else 0.5", **_PRESENT),
    Container("list", "[$v, 0.25]", is_="sequence list plain", **_FIRST, extra="$c.append(0.0)", delete=""),
    Container("deque", "collections.deque([$v, 0.25])", is_="sequence", **_FIRST, extra="$c.append(0.0)"),
    Container("deque that is rotated", "collections.deque([$v, 0.25], maxlen=2)",
              "$c.append(0.25)\n$c.append($v)\n$c.rotate(1)", "sequence", "$c[0]", "0"),
    Container("UserList", "collections.UserList([$v, 0.25])", is_="sequence", **_FIRST),
    Container("a list of one's own", "Own_$k([$v, 0.25])", is_="sequence list", **_FIRST,
              module="class Own_$k(list):\n    pass"),
    Container("tuple", "($v, 0.25)", "", "sequence", "$c[0]", "0"),
    Container("list in a tuple", "([$v], 0.25)", "$c[0][0] = $v", "", "$c[0][0]", encoding=""),
    Container("tuple in a list", "[($v, 'a'), (0.25, 'b')]", "$c[0] = ($v, 'a')", "", "$c[0][0]", encoding=""),
    Container("tuple in a list, by a loop", "[($v, 'a'), (0.25, 'b')]", "$c[0] = ($v, 'a')", "",
              "sum(n for n, name in $c if name == 'a')"),
    Container("list in a list", "[[0.25], [$v]]", "$c[1][0] = $v", "", "$c[1][0]", encoding=""),
    Container("least of a list in a list", "[[9.0, 8.0], [$v]]", "$c[1][0] = $v", "", "min(min(row) for row in $c)"),
    Container("list in a list, flattened", "[[0.25], [$v]]", "$c[1][0] = $v", "",
              "list(itertools.chain.from_iterable($c))[1]"),
    Container("list in a list, sum", "[[0.25], [$v]]", "$c[1][0] = $v", "", "sum(sum($c, [])) - 0.25"),
    Container("list of objects", "[Box_$k(0.25), Box_$k($v)]", "$c[1].n = $v", "", "$c[1].n", module=_BOX,
              encoding=""),
    Container("list of objects, by a sum", "[Box_$k(0.25), Box_$k($v)]", "$c[1].n = $v", "",
              "sum(box.n for box in $c) - 0.25", module=_BOX),
    Container("list of objects, by max", "[Box_$k(0.25), Box_$k($v)]", "$c[1].n = $v", "",
              "max($c, key=lambda box: box.n).n", module=_BOX),
    Container("list of objects, by attrgetter", "[Box_$k(0.25), Box_$k($v)]", "$c[1].n = $v", "",
              "max(map(operator.attrgetter('n'), $c))", module=_BOX),
    Container("list of objects, sorted", "[Box_$k(9.0), Box_$k($v)]", "$c[1].n = $v", "",
              "sorted($c, key=operator.attrgetter('n'))[0].n", module=_BOX),
    Container("list of functions", "[lambda: $v]", "$c[0] = lambda: $v", "", "[f() for f in $c][0]", encoding=""),
    Container("list of tuples as a dict", "[('n', $v)]", "$c[0] = ('n', $v)", "", "dict($c)['n']", encoding=""),
    Container("list of dicts", "[{'n': $v}]", "$c[0]['n'] = $v", "", "[entry['n'] for entry in $c][0]", encoding=""),
    Container("list of names", "['n', 'm'] if $v > 1 else ['m']", "$c[:] = ['n', 'm'] if $v > 1 else ['m']", "",
              "1.5 if 'n' in $c else 0.5", **_PRESENT),
    Container("a heap", "[$v, 9.0]", "$c[0] = $v", "", "heapq.nsmallest(1, $c)[0]"),
    Container("a sorted list", "[$v]", "$c[0] = $v", "", "bisect.bisect($c, 1.0) + 0.5", values=(0.5, 1.5)),
    Container("length of a list", "[0] * int(2 * $v)", "$c[:] = [0] * int(2 * $v)", "", "len($c) / 2"),
    Container("length of a dict", "dict.fromkeys(range(int(2 * $v)))",
              "$c.clear()\n$c.update(dict.fromkeys(range(int(2 * $v))))", "", "len($c) / 2"),
    Container("length of a deque", "collections.deque([0] * int(2 * $v))", "$c.clear()\n$c.extend([0] * int(2 * $v))",
              "", "len($c) / 2"),
    Container("length of a set", "set(range(int(2 * $v)))", "$c.clear()\n$c.update(range(int(2 * $v)))", "",
              "len($c) / 2"),
    Container("entries of a list, counted", "[0] * int(2 * $v)", "$c[:] = [0] * int(2 * $v)", "",
              "sum(1 for _ in $c) / 2"),
    Container("truth of a list", "[0] * int($v)", "$c[:] = [0] * int($v)", "", "1.5 if $c else 0.5", **_PRESENT),
    Container("truth of a dict", "{0: 0} if $v > 1 else {}", "$c.clear()\n$c.update({0: 0} if $v > 1 else {})", "",
              "0.5 if not $c else 1.5", **_PRESENT),
    Container("truth of a deque", "collections.deque([0] * int($v))", "$c.clear()\n$c.extend([0] * int($v))", "",
              "1.5 if $c else 0.5", **_PRESENT),
    Container("key that is there", "{'n': 0} if $v > 1 else {}", "$c.clear()\n$c.update({'n': 0} if $v > 1 else {})",
              "", "1.5 if 'n' in $c else 0.5", **_PRESENT),
    Container("key that is missed", "{'n': 0} if $v > 1 else {}", "$c.clear()\n$c.update({'n': 0} if $v > 1 else {})",
              "", "0.5 if $c.get('n') is None else 1.5", **_PRESENT),
    Container("key in keys()", "{'n': 0} if $v > 1 else {}", "$c.clear()\n$c.update({'n': 0} if $v > 1 else {})", "",
              "1.5 if 'n' in $c.keys() else 0.5", **_PRESENT),
    Container("set", "{$v, 0.25}", "$c.clear()\n$c.update([$v, 0.25])", "set"),
    Container("frozenset", "frozenset([$v, 0.25])", "", "set"),
    Container("a class with __getitem__", "Own_$k($v)", "$c.data = {'n': $v}", "", encoding="",
              module="class Own_$k:\n    def __init__(self, n):\n        self.data = {'n': n}\n"
                     "    def __getitem__(self, key):\n        return self.data[key]"),
    Container("a sequence of one's own", "Own_$k($v)", "$c.data = $v", "sequence", "$c[0]", "0",
              module="class Own_$k(collections.abc.Sequence):\n    def __init__(self, n):\n"
                     "        self.data = n\n    def __len__(self):\n        return 2\n"
                     "    def __getitem__(self, index):\n        return (self.data, 0.25)[index]"),
    Container("a mapping of one's own", "Own_$k($v)", "$c.data = $v", "mapping", encoding="",
              module="class Own_$k(collections.abc.Mapping):\n    def __init__(self, n):\n"
                     "        self.data = n\n    def __len__(self):\n        return 2\n"
                     "    def __iter__(self):\n        return iter('nm')\n"
                     "    def __getitem__(self, key):\n"
                     "        return {'n': self.data, 'm': 0.25}[key]"),
    Container("string", "'$v 0.25'", "", "", "float($c.split()[0])"),
    Container("bytes", "bytes([int(2 * $v)])", "", "", "$c[0] / 2"),
    Container("range", "range(int(2 * $v))", "", "", "len($c) / 2"),
    Container("slice", "slice(0, int(2 * $v))", "", "", "len(([0] * 9)[$c]) / 2"),
]
KEPT = {  # where a container is: its expression, lines of the owner's __init__, class and module
    "attribute": ("$o.c_$k", "self.c_$k = $m", "", ""),
    "global": ("C_$k", "", "", "C_$k = $m"),
    "class attribute": ("$o.c_$k", "", "c_$k = $m", ""),
    "attribute of an object": ("$o.kept_$k.c", "self.kept_$k = types.SimpleNamespace(c=$m)", "", ""),
    "default": ("get_$k()", "", "", "def get_$k(c=$m):\n    return c"),
}
_ASSIGN = {"attribute": "$o.c_$k = $m", "global": "globals()['C_$k'] = $m", "class attribute": "Owner_$k.c_$k = $m",
           "attribute of an object": "$o.kept_$k.c = $m", "default": "get_$k.__defaults__ = ($m,)"}


def containers() -> Iterator[Place]:
    """Each container in each place."""
    for number, c in enumerate(CONTAINERS):
        kept = list(KEPT) if c.is_ else [list(KEPT)[number % 5], list(KEPT)[(number + 2) % 3]]
        for where in dict.fromkeys(kept):
            target, init, body, module = (text.replace("$m", c.make) for text in KEPT[where])
            assign = _ASSIGN[where].replace("$m", c.make)
            read = "max($c)" if c.is_ == "set" else c.read
            yield Place(f"{c.name}, {where}", read.replace("$c", target), (c.set or assign).replace("$c", target),
                        init, body, "\n".join(filter(None, (c.module, module))), replace=assign,
                        extra=c.extra.replace("$c", target), delete=c.delete.replace("$c", target),
                        is_=frozenset(c.is_.split()) | {"own", "container"}, target=target, key=c.key,
                        encoding=c.encoding, values=c.values)
