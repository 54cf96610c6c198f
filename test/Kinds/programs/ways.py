"""How numbers are read.

ATTRIBUTES take the target and the key of a place, MEMBERS are read through members of the owner, WRAPS take any
expression $x.
"""
from __future__ import annotations

from .pieces import Way, flags
from .ways_of_containers import ENTRIES


_ATTRIBUTE, _DICT, _OWN = flags("attribute"), flags("attribute dict"), flags("own")
_DATACLASS, _NAMED = flags("attribute dataclass"), flags("attribute namedtuple")
DIRECT = Way("direct", "$x")

# $t is the target, $y the key as a literal, $a the name of the attribute without quotes
ATTRIBUTES = [
    Way("getattr", "getattr($t, $y)", needs=_ATTRIBUTE),
    Way("getattr with a default", "getattr($t, $y, 9.0)", needs=_ATTRIBUTE, default=9.0),
    Way("getattr of a computed name", "getattr($t, ''.join(list($y)))", needs=_ATTRIBUTE),
    Way("getattr of an f-string", 'getattr($t, f"{$y}")', needs=_ATTRIBUTE),
    Way("getattr of a name in a table", "getattr($t, TABLE_$k['name'])", needs=_ATTRIBUTE,
        module="TABLE_$k = {'name': $y}"),
    Way("hasattr and getattr", "getattr($t, $y) if hasattr($t, $y) else 9.0", needs=_ATTRIBUTE, default=9.0),
    Way("vars()", "vars($t)[$y]", needs=_DICT),
    Way("vars().get", "vars($t).get($y, 9.0)", needs=_DICT, default=9.0),
    Way("__dict__", "$t.__dict__[$y]", needs=_DICT),
    Way("__dict__, by a loop", "[v for name, v in $t.__dict__.items() if name == $y][0]", needs=_DICT),
    Way("**vars()", "dict(**vars($t))[$y]", needs=_DICT),
    Way("in vars()", "vars($t)[$y] if $y in vars($t) else 9.0", needs=_DICT, default=9.0),
    Way("% vars()", "float('%($a)s' % vars($t))", needs=_DICT | {"float"}),
    Way("object.__getattribute__", "object.__getattribute__($t, $y)", needs=flags("attribute dict instance")),
    Way("__getattribute__", "$t.__getattribute__($y)", needs=flags("attribute dict instance")),
    Way("attrgetter", "operator.attrgetter($y)($t)", needs=_ATTRIBUTE),
    Way("attrgetter of a module", "getter_$k($t)", needs=_ATTRIBUTE, module="getter_$k = operator.attrgetter($y)"),
    Way("attrgetter in map", "list(map(operator.attrgetter($y), [$t]))[0]", needs=_ATTRIBUTE),
    Way("getattr in map", "list(map(getattr, [$t], [$y]))[0]", needs=_ATTRIBUTE),
    Way("str.format", "float('{0.$a}'.format($t))", needs=_ATTRIBUTE | {"float"}),
    Way("getattr in reduce", "functools.reduce(getattr, [$y], $t)", needs=_ATTRIBUTE),
    Way("getattr in a partial", "functools.partial(getattr, $t)($y)", needs=_ATTRIBUTE),
    Way("copy.copy", "copy.copy($t).$a", needs=flags("attribute dict instance small")),
    Way("copy.deepcopy", "copy.deepcopy($t).$a", needs=flags("attribute dict instance small")),
    Way("inspect.getattr_static", "inspect.getattr_static($t, $y)", needs=_DICT),
    Way("eval", "eval('o.$a', {'o': $t})", needs=_ATTRIBUTE),
    Way("exec", lines="scope = {'o': $t}\nexec('n = o.$a', scope)\nn = scope['n']", needs=_ATTRIBUTE),
    Way("function that gets the object", "read_$k($t)", needs=_ATTRIBUTE,
        module="def read_$k(one):\n    return one.$a"),
    Way("function that gets *args", "read_$k(*[$t])", needs=_ATTRIBUTE,
        module="def read_$k(*args):\n    return args[0].$a"),
    Way("function that gets **kwargs", "read_$k(**{'one': $t})", needs=_ATTRIBUTE,
        module="def read_$k(**kwargs):\n    return kwargs['one'].$a"),
    Way("generator function", "next(read_$k([$t]))", needs=_ATTRIBUTE,
        module="def read_$k(ones):\n    for one in ones:\n        yield one.$a"),
    Way("yield from", "list(both_$k([$t]))[0]", needs=_ATTRIBUTE,
        module="def read_$k(ones):\n    for one in ones:\n        yield one.$a\ndef both_$k(ones):\n"
               "    yield from read_$k(ones)"),
    Way("send to a generator", lines="reader = read_$k()\nnext(reader)\nn = reader.send($t)", needs=_ATTRIBUTE,
        module="def read_$k():\n    one = yield\n    yield one.$a"),
    Way("coroutine", lines="try:\n    read_$k($t).send(None)\nexcept StopIteration as stop:\n    n = stop.value",
        needs=_ATTRIBUTE, module="async def read_$k(one):\n    return one.$a"),
    Way("singledispatch", "read_$k($t)", needs=_ATTRIBUTE,
        module="@functools.singledispatch\ndef read_$k(one):\n    return one.$a"),
    Way("try", lines="try:\n    n = $t.$a\nexcept AttributeError:\n    n = 9.0", needs=_ATTRIBUTE, default=9.0),
    Way("match of a class", lines="match $t:\n    case object($a=n):\n        pass\n    case _:\n        n = 9.0",
        needs=_ATTRIBUTE, default=9.0),
    Way("loop", lines="for one in ($t,):\n    n = one.$a", needs=_ATTRIBUTE),
    Way("local of two branches", lines="if len(t.shape) < 9:\n    one = $t\nelse:\n    one = None\nn = one.$a",
        needs=_ATTRIBUTE),
    Way("conditional expression", lines="one = $t if t.dtype == torch.float64 else None\nn = one.$a",
        needs=_ATTRIBUTE),
    Way("unpacked tuple", lines="one, _ = $t, 1\nn = one.$a", needs=_ATTRIBUTE),
    Way("entry of a local dict", lines="found = {'one': $t}\nn = found['one'].$a", needs=_ATTRIBUTE),
    Way("walrus", "one.$a if (one := $t) is not None else 9.0", needs=_ATTRIBUTE),
    Way("lambda that gets the object", "(lambda one: one.$a)($t)", needs=_ATTRIBUTE),
    Way("sorted by key", "sorted([$t, $t], key=lambda one: one.$a)[0].$a", needs=_ATTRIBUTE | {"float"}),
    Way("min by key", "min([$t], key=lambda one: one.$a).$a", needs=_ATTRIBUTE | {"float"}),
    Way("dataclasses.asdict", "dataclasses.asdict($t)['n']", needs=_DATACLASS),
    Way("dataclasses.astuple", "dataclasses.astuple($t)[0]", needs=_DATACLASS),
    Way("dataclasses.replace", "dataclasses.replace($t, m=0.5).n", needs=_DATACLASS),
    Way("dataclasses.fields", "[getattr($t, f.name) for f in dataclasses.fields($t)][0]", needs=_DATACLASS),
    Way("== of dataclasses", "1.5 if $t == type($t)(1.5) else 0.5", needs=_DATACLASS | {"two"}),
    Way("repr of a dataclass", "float(repr($t).split('n=')[1].split(',')[0])", needs=_DATACLASS | {"float"}),
    Way("match of a dataclass", lines="match $t:\n    case Held_$k(n, _):\n        pass", needs=_DATACLASS),
    Way("unpacked namedtuple", lines="n, _ = $t", needs=_NAMED),
    Way("index of a namedtuple", "$t[0]", needs=_NAMED),
    Way("_asdict()", "$t._asdict()['n']", needs=_NAMED),
    Way("* of a namedtuple", "(lambda n, m: n)(*$t)", needs=_NAMED),
    Way("match of a namedtuple", lines="match $t:\n    case (n, _):\n        pass", needs=_NAMED),
]
# $s is the number as the owner's own methods read it
MEMBERS = [
    Way("method", "$o.read_$k()", needs=_OWN, body="def read_$k(self):\n    return $s", methods=("read_$k",)),
    Way("method by getattr", "getattr($o, 'read_$k')()", needs=_OWN, body="def read_$k(self):\n    return $s",
        methods=("read_$k",)),
    Way("method by methodcaller", "operator.methodcaller('read_$k')($o)", needs=_OWN,
        body="def read_$k(self):\n    return $s", methods=("read_$k",)),
    Way("method by the class", "type($o).read_$k($o)", needs=_OWN, body="def read_$k(self):\n    return $s"),
    Way("method of a method", "$o.read_$k()", needs=_OWN,
        body="def read_$k(self):\n    return self.inner_$k()\ndef inner_$k(self):\n    return $s",
        methods=("read_$k", "inner_$k")),
    Way("super().method()", "$o.read_$k()", needs=_OWN,
        module="class Base_$k:\n    __slots__ = ()\n    def read_$k(self):\n        return $s", bases="Base_$k",
        body="def read_$k(self):\n    return super().read_$k()", methods=("read_$k",)),
    Way("super() with arguments", "$o.read_$k()", needs=_OWN,
        module="class Base_$k:\n    __slots__ = ()\n    def read_$k(self):\n        return $s", bases="Base_$k",
        body="def read_$k(self):\n    return super(Owner_$k, self).read_$k()", methods=("read_$k",)),
    Way("method of a mixin", "$o.read_$k()", needs=_OWN,
        module="class Mixin_$k:\n    __slots__ = ()\n    def read_$k(self):\n        return $s", bases="Mixin_$k",
        methods=("read_$k",)),
    Way("two mixins by super()", "$o.read_$k()", needs=_OWN, bases="One_$k, Two_$k", methods=("read_$k",),
        module="class Two_$k:\n    __slots__ = ()\n    def read_$k(self):\n        return $s\n"
               "class One_$k:\n    __slots__ = ()\n    def read_$k(self):\n"
               "        return super().read_$k()"),
    Way("abstract method", "$o.read_$k()", needs=_OWN, bases="Base_$k", body="def inner_$k(self):\n    return $s",
        methods=("inner_$k", "read_$k"), module="class Base_$k:\n    __slots__ = ()\n    def inner_$k(self):\n"
               "        raise NotImplementedError\n    def read_$k(self):\n"
               "        return self.inner_$k()"),
    Way("property", "$o.read_$k", needs=_OWN, body="@property\ndef read_$k(self):\n    return $s"),
    Way("property of a base", "$o.read_$k", needs=_OWN,
        module="class Base_$k:\n    __slots__ = ()\n    @property\n    def read_$k(self):\n"
               "        return $s", bases="Base_$k"),
    Way("property by super()", "$o.read_$k", needs=_OWN,
        module="class Base_$k:\n    __slots__ = ()\n    @property\n    def read_$k(self):\n"
               "        return $s", bases="Base_$k",
        body="@property\ndef read_$k(self):\n    return super().read_$k"),
    Way("descriptor", "$o.read_$k", needs=_OWN, body="read_$k = Reader_$k()",
        module="class Reader_$k:\n    def __get__(self, instance, owner):\n"
               "        return read_$k(instance)\ndef read_$k(self):\n    return $s"),
    Way("classmethod", "$o.read_$k($o)", needs=_OWN, body="@classmethod\ndef read_$k(cls, self):\n    return $s",
        methods=("read_$k",)),
    Way("staticmethod", "$o.read_$k($o)", needs=_OWN, body="@staticmethod\ndef read_$k(self):\n    return $s",
        methods=("read_$k",)),
    Way("partialmethod", "$o.read_$k()", needs=_OWN, body="def inner_$k(self, sign):\n    return $s\n"
             "read_$k = functools.partialmethod(inner_$k, 1)"),
    Way("method that is a lambda", "$o.read_$k()", needs=_OWN, body="read_$k = lambda self: $s",
        methods=("read_$k",)),
    Way("method of a function", "$o.read_$k()", needs=_OWN, module="def read_$k(self):\n    return $s",
        body="read_$k = read_$k", methods=("read_$k",)),
    Way("method with a decorator", "$o.read_$k()", needs=_OWN, body="@wrapped_$k\ndef read_$k(self):\n    return $s",
        methods=("read_$k",), module="def wrapped_$k(function):\n    @functools.wraps(function)\n"
               "    def inner(*args, **kwargs):\n        return function(*args, **kwargs)\n"
               "    return inner"),
    Way("decorator that reads", "$o.read_$k()", needs=_OWN,
        body="@wrapped_$k\ndef read_$k(self, value):\n    return value",
        module="def wrapped_$k(function):\n    @functools.wraps(function)\n    def inner(self):\n"
               "        return function(self, $s)\n    return inner"),
    Way("decorator that is an object", "$o.read_$k()", needs=_OWN,
        body="@Wrapped_$k\ndef read_$k(self):\n    return $s",
        module="class Wrapped_$k:\n    def __init__(self, function):\n"
               "        self.function = function\n    def __get__(self, instance, owner):\n"
               "        return functools.partial(self.function, instance)"),
    Way("generator method", "sum($o.read_$k())", needs=_OWN | {"float"}, body="def read_$k(self):\n    yield $s"),
    Way("context manager of one's own", lines="with Reader_$k($o) as n:\n    pass", needs=_OWN,
        module="class Reader_$k:\n    def __init__(self, one):\n        self.one = one\n"
               "    def __enter__(self):\n        return read_$k(self.one)\n"
               "    def __exit__(self, *error):\n        pass\ndef read_$k(self):\n    return $s"),
    Way("contextmanager", lines="with reader_$k($o) as n:\n    pass", needs=_OWN,
        module="@contextlib.contextmanager\ndef reader_$k(self):\n    yield $s"),
    Way("callable object", "Reader_$k()($o)", needs=_OWN,
        module="class Reader_$k:\n    def __call__(self, one):\n        return read_$k(one)\n"
               "def read_$k(self):\n    return $s"),
    Way("callable object of a module", "READER_$k($o)", needs=_OWN,
        module="class Reader_$k:\n    def __call__(self, one):\n        return read_$k(one)\n"
               "def read_$k(self):\n    return $s\nREADER_$k = Reader_$k()"),
    Way("iterator of one's own", "next(Reader_$k($o))", needs=_OWN,
        module="class Reader_$k:\n    def __init__(self, one):\n        self.one = one\n"
               "    def __iter__(self):\n        return self\n    def __next__(self):\n"
               "        return read_$k(self.one)\ndef read_$k(self):\n    return $s"),
    Way("function in a table", "READERS_$k['read']($o)", needs=_OWN, module="READERS_$k = {'read': lambda self: $s}"),
    Way("function in a list", "[f($o) for f in READERS_$k][0]", needs=_OWN, module="READERS_$k = [lambda self: $s]"),
    Way("function that is an attribute of a class", "Readers_$k.read($o)", needs=_OWN,
        module="class Readers_$k:\n    read = staticmethod(lambda self: $s)"),
    Way("function of a function", "make_reader_$k()($o)", needs=_OWN,
        module="def make_reader_$k():\n    def read(self):\n        return $s\n    return read"),
    Way("closure of the owner", "bound_$k($o)()", needs=_OWN, module="def bound_$k(self):\n    return lambda: $s"),
    Way("recursion", "read_$k($o, 2)", needs=_OWN,
        module="def read_$k(self, depth):\n    return read_$k(self, depth - 1) if depth else $s"),
    Way("partial of a function", "functools.partial(read_$k, $o)()", needs=_OWN,
        module="def read_$k(self):\n    return $s"),
    Way("function through eval", "eval('read(one)', {'read': read_$k, 'one': $o})", needs=_OWN,
        module="def read_$k(self):\n    return $s"),
    Way("thread", "in_thread_$k($o)", needs=_OWN, module="def in_thread_$k(self):\n    found = []\n"
               "    thread = threading.Thread(target=lambda: found.append($s))\n    thread.start()\n"
               "    thread.join()\n    return found[0]"),
    Way("__getattr__", "$o.read_$k", needs=flags("own plain_owner"),
        body="def __getattr__(self, name):\n    if name == 'read_$k':\n        return $s\n"
             "    raise AttributeError(name)"),
    Way("__getitem__", "$o['read']", needs=flags("own plain_owner"),
        body="def __getitem__(self, name):\n    return $s"),
    Way("__call__", "$o()", needs=flags("own plain_owner uncalled"), body="def __call__(self):\n    return $s"),
    Way("__len__", "len($o) / 2", needs=flags("own plain_owner float"),
        body="def __len__(self):\n    return int(2 * $s)"),
    Way("__iter__", "list($o)[0]", needs=flags("own plain_owner"), body="def __iter__(self):\n    yield $s"),
    Way("__enter__", lines="with $o as n:\n    pass", needs=flags("own plain_owner"),
        body="def __enter__(self):\n    return $s\ndef __exit__(self, *error):\n    pass"),
    Way("__float__", "float($o)", needs=flags("own plain_owner float"), body="def __float__(self):\n    return $s"),
    Way("__contains__", "1.5 if 1.5 in $o else 0.5", needs=flags("own plain_owner two"),
        body="def __contains__(self, value):\n    return $s == value"),
    Way("__add__", "$o + 0.0", needs=flags("own plain_owner float"),
        body="def __add__(self, other):\n    return $s + other"),
    Way("__rmul__", "1.0 * $o", needs=flags("own plain_owner float"),
        body="def __rmul__(self, other):\n    return $s * other"),
    Way("__eq__", "1.5 if $o == 1.5 else 0.5", needs=flags("own plain_owner two"),
        body="__hash__ = object.__hash__\ndef __eq__(self, other):\n    return $s == other"),
    Way("__bool__", "1.5 if $o else 0.5", needs=flags("own plain_owner two"),
        body="def __bool__(self):\n    return $s > 1"),
    Way("__str__", "float(str($o))", needs=flags("own plain_owner float"),
        body="def __str__(self):\n    return repr($s)"),
    Way("__format__", "float(f'{$o}')", needs=flags("own plain_owner float"),
        body="def __format__(self, spec):\n    return repr($s)"),
]
WAYS = [DIRECT, *ATTRIBUTES, *MEMBERS, *ENTRIES]

WRAPS = [
    Way("nothing", "$x"),
    Way("lambda", "(lambda: $x)()"),
    Way("nested function", lines="def inner():\n    return $x\nn = inner()"),
    Way("nested function with a default", lines="def inner(value=$x):\n    return value\nn = inner()"),
    Way("nested class", lines="class Inner:\n    value = $x\nn = Inner.value"),
    Way("generator expression", "next($x for _ in range(1))"),
    Way("list comprehension", "[$x for _ in range(1)][0]"),
    Way("local of two branches", lines="if len(t.shape) < 9:\n    value = $x\nelse:\n    value = 9.0\nn = value"),
    Way("walrus", "value if (value := $x) is not None else 9.0"),
    Way("conditional expression", "$x if len(t.shape) < 9 else 9.0"),
    Way("and", "len(t.shape) < 9 and $x"),
    Way("or", "None or $x"),
    Way("try and finally", lines="try:\n    value = $x\nfinally:\n    pass\nn = value"),
    Way("loop", lines="for n in ($x,):\n    pass"),
    Way("while", lines="while True:\n    n = $x\n    break"),
    Way("entry of a list", "[$x][0]"),
    Way("entry of a dict", "{'n': $x}['n']"),
    Way("argument of a function", "same_$k($x)", module="def same_$k(value):\n    return value"),
    Way("map with a lambda", "list(map(lambda _: $x, [0]))[0]"),
    Way("reduce", "functools.reduce(lambda a, b: $x, [0, 0])"),
    Way("nullcontext", lines="with contextlib.nullcontext($x) as n:\n    pass"),
    Way("ExitStack", lines="with contextlib.ExitStack() as stack:\n"
              "    n = stack.enter_context(contextlib.nullcontext($x))"),
    Way("no_grad", lines="with torch.no_grad():\n    n = $x"),
    Way("enable_grad", lines="with torch.enable_grad():\n    n = $x"),
    Way("checkpoint", lines="n = 9.0\ndef inner(t):\n    nonlocal n\n    n = $x\n    return t * 1.0\n"
              "t = torch.utils.checkpoint.checkpoint(inner, t, use_reentrant=False)"),
    Way("match", lines="match $x:\n    case n:\n        pass"),
    Way("assert", lines="n = $x\nassert n is not None"),
    Way("del", lines="value = $x\nn = value\ndel value"),
    Way("augmented", lines="n = 0.0\nn += $x", needs=flags("float")),
    Way("isinstance", lines="n = $x\nif not isinstance(n, (int, float)):\n    n = 9.0", needs=flags("float")),
]
