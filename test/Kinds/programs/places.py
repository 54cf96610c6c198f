"""Where numbers live, but for containers (containers.py)."""
from __future__ import annotations

from .pieces import Place, flags

PLAIN = ("config", "criterion", "callback", "hook")  # roles whose class is an ordinary one, by their prefix



def _held(name: str, module: str, make: str, is_: str = "attribute dict", **fields: object) -> Place:
    """An attribute `n` of an object that the owner holds; `make` makes the object with $v."""
    given = {"set": "$o.held_$k.n = $v", "replace": f"$o.held_$k = {make}", "extra": "$o.held_$k.unread = 1.0"}
    return Place(name, "$o.held_$k.n", module=module, init=f"self.held_$k = {make}", is_=flags(is_),
                 target="$o.held_$k", key="'n'", **given | fields)


_OWN = {"target": "$o", "key": "'n_$k'", "read": "$o.n_$k"}
_SCHEDULE = ("self.dummy_$k = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)\n"
             "schedule = torch.optim.lr_scheduler.LambdaLR(self.dummy_$k, lambda epoch: TABLE_$k[epoch])\n"
             "self.held_$k = Hidden_$k(schedule)")
_ADVANCE = "TABLE_$k.append($v)\n$o.dummy_$k.step()\n$o.held_$k.value.step()"
_HIDDEN = "TABLE_$k = [$v]\nclass Hidden_$k:\n    def __init__(self, value):\n        self.value = value"
_FILE = ("import tempfile\nPATH_$k = tempfile.mkdtemp() + '/number'\ndef write_$k(v):\n"
         "    with open(PATH_$k, 'w') as stream:\n        stream.write(repr(v))\nwrite_$k($v)")

PLACES = [
    Place("instance attribute", **_OWN, set="$o.n_$k = $v", init="self.n_$k = $v", extra="$o.unread_$k = 1.0",
          delete="del $o.n_$k", is_=flags("attribute dict own")),
    Place("slot", **_OWN, set="$o.n_$k = $v", init="self.n_$k = $v", body="__slots__ = ('n_$k',)",
          delete="del $o.n_$k", is_=flags("attribute own"),
          roles=("config", "callback", "criterion object", "hook")),
    Place("property", **_OWN, set="$o._n_$k = $v", init="self._n_$k = $v", is_=flags("attribute own"),
          body="@property\ndef n_$k(self):\n    return self._n_$k"),
    Place("property with a setter", **_OWN, set="$o.n_$k = $v", init="self.n_$k = $v", is_=flags("attribute own"),
          body="@property\ndef n_$k(self):\n    return self.__dict__['hidden']\n@n_$k.setter\n"
               "def n_$k(self, value):\n    self.__dict__['hidden'] = value"),
    Place("property of a lambda", **_OWN, set="$o._n_$k = $v", init="self._n_$k = $v", is_=flags("attribute own"),
          body="n_$k = property(lambda self: self._n_$k)"),
    Place("property of attrgetter", **_OWN, set="$o._n_$k = $v", init="self._n_$k = $v", is_=flags("attribute own"),
          body="n_$k = property(operator.attrgetter('_n_$k'))"),
    Place("descriptor", **_OWN, set="$o.n_$k = $v", init="self.n_$k = $v", body="n_$k = Descriptor_$k()",
          is_=flags("attribute own"), module="class Descriptor_$k:\n    def __set_name__(self, owner, name):\n"
                 "        self.name = '_' + name\n    def __get__(self, instance, owner):\n"
                 "        return self if instance is None else instance.__dict__[self.name]\n"
                 "    def __set__(self, instance, value):\n"
                 "        instance.__dict__[self.name] = value"),
    Place("descriptor that holds the number", **_OWN, set="vars(Owner_$k)['n_$k'].value = $v",
          body="n_$k = Descriptor_$k()", is_=flags("attribute own"),
          module="class Descriptor_$k:\n    value = $v\n    def __get__(self, instance, owner):\n"
                 "        return self.value"),
    Place("descriptor with a weak dict", **_OWN, set="$o.n_$k = $v", init="self.n_$k = $v",
          body="n_$k = Descriptor_$k()", is_=flags("attribute own"),
          roles=PLAIN + ("step", "model", "layer", "optimizer"),
          module="class Descriptor_$k:\n    def __init__(self):\n"
                 "        self.values = weakref.WeakKeyDictionary()\n"
                 "    def __get__(self, instance, owner):\n        return self.values[instance]\n"
                 "    def __set__(self, instance, value):\n        self.values[instance] = value"),
    Place("cached property", **_OWN, set="$o._n_$k = $v\nvars($o).pop('n_$k', None)", init="self._n_$k = $v",
          is_=flags("attribute own"), body="@functools.cached_property\ndef n_$k(self):\n    return self._n_$k"),
    Place("cached property that goes stale", **_OWN, set="$o._n_$k = $v", init="self._n_$k = $v",
          is_=flags("attribute own"), body="@functools.cached_property\ndef n_$k(self):\n    return self._n_$k"),
    Place("class attribute", **_OWN, set="Owner_$k.n_$k = $v", body="n_$k = $v", is_=flags("attribute own"),
          extra="Owner_$k.unread_$k = 1.0"),
    Place("class attribute, read on the class", "Owner_$k.n_$k", target="Owner_$k", key="'n_$k'",
          set="Owner_$k.n_$k = $v", body="n_$k = $v", is_=flags("attribute own dict")),
    Place("class attribute, read on type()", "type($o).n_$k", target="type($o)", key="'n_$k'",
          set="Owner_$k.n_$k = $v", body="n_$k = $v", is_=flags("attribute own")),
    Place("class attribute, read on __class__", "$o.__class__.n_$k", target="$o.__class__", key="'n_$k'",
          set="Owner_$k.n_$k = $v", body="n_$k = $v", is_=flags("attribute own")),
    Place("class attribute of a base", **_OWN, set="Parent_$k.n_$k = $v",
          module="class Parent_$k:\n    __slots__ = ()\n    n_$k = $v", bases="Parent_$k",
          is_=flags("attribute own"), extra="Parent_$k.unread_$k = 1.0"),
    Place("class attribute that is shadowed", **_OWN, set="$o.n_$k = $v", body="n_$k = $v",
          is_=flags("attribute own"), delete=""),
    Place("class attribute shadowed by a subclass", **_OWN, set="Owner_$k.n_$k = $v",
          module="class Parent_$k:\n    n_$k = $v", bases="Parent_$k", is_=flags("attribute own")),
    Place("metaclass attribute", "type($o).n_$k", target="type($o)", key="'n_$k'", set="Meta_$k.n_$k = $v",
          is_=flags("attribute own"), module="class Meta_$k(type):\n    n_$k = $v", bases="metaclass=Meta_$k",
          roles=PLAIN + ("layer",)),
    Place("property of a metaclass", "type($o).n_$k", target="type($o)", key="'n_$k'", set="Meta_$k.hidden = $v",
          is_=flags("attribute own"),
          module="class Meta_$k(type):\n    hidden = $v\n    @property\n    def n_$k(cls):\n"
                 "        return cls.hidden", bases="metaclass=Meta_$k", roles=PLAIN + ("layer",)),
    Place("attribute of a class that nobody makes", "Settings_$k.n", target="Settings_$k", key="'n'",
          set="Settings_$k.n = $v", module="class Settings_$k:\n    n = $v", is_=flags("attribute dict own"),
          extra="Settings_$k.unread = 1.0"),
    Place("module global", "N_$k", set="globals()['N_$k'] = $v", module="N_$k = $v", is_=flags("own")),
    Place("module global read through globals()", "globals()['N_$k']", set="globals()['N_$k'] = $v",
          module="N_$k = $v", is_=flags("own library")),
    Place("attribute of a module", "cfg_$k.n", target="cfg_$k", key="'n'", set="cfg_$k.n = $v",
          module="cfg_$k = types.ModuleType('cfg_$k')\ncfg_$k.n = $v", is_=flags("attribute dict own"),
          extra="cfg_$k.unread = 1.0"),
    Place("attribute of a module in sys.modules", "sys.modules['cfg_$k'].n", target="sys.modules['cfg_$k']",
          key="'n'", set="sys.modules['cfg_$k'].n = $v",
          module="sys.modules['cfg_$k'] = types.ModuleType('cfg_$k')\nsys.modules['cfg_$k'].n = $v",
          is_=flags("attribute dict own")),
    Place("__getattr__ of a module", "cfg_$k.n", target="cfg_$k", key="'n'", set="cfg_$k._n = $v",
          is_=flags("attribute own"),
          module="cfg_$k = types.ModuleType('cfg_$k')\ncfg_$k._n = $v\ndef lazy_$k(name):\n"
                 "    if name != 'n':\n        raise AttributeError(name)\n    return cfg_$k._n\n"
                 "cfg_$k.__getattr__ = lazy_$k"),
    Place("closure cell", "get_$k()", set="put_$k($v)", is_=flags("own"),
          module="def make_$k(n):\n    def get():\n        return n\n    def put(value):\n"
                 "        nonlocal n\n        n = value\n    return get, put\n"
                 "get_$k, put_$k = make_$k($v)"),
    Place("cell_contents", "get_$k()", set="get_$k.__closure__[0].cell_contents = $v", is_=flags("own"),
          module="def make_$k(n):\n    return lambda: n\nget_$k = make_$k($v)"),
    Place("default argument", "get_$k()", set="get_$k.__defaults__ = ($v,)", module="def get_$k(n=$v):\n    return n",
          is_=flags("own")),
    Place("keyword default", "get_$k()", set="get_$k.__kwdefaults__['n'] = $v",
          module="def get_$k(*, n=$v):\n    return n", is_=flags("own")),
    Place("default of a method", "$o.get_$k()", set="Owner_$k.get_$k.__defaults__ = ($v,)",
          body="def get_$k(self, n=$v):\n    return n", is_=flags("own")),
    Place("attribute of a function", "get_$k.n", target="get_$k", key="'n'", set="get_$k.n = $v",
          module="def get_$k():\n    return 9.0\nget_$k.n = $v", is_=flags("attribute dict own")),
    Place("code of a function", "get_$k()", set="get_$k.__code__ = (lambda: $v).__code__",
          module="def get_$k():\n    return $v", is_=flags("own")),
    _held("object", "class Held_$k:\n    def __init__(self, n):\n        self.n = n", "Held_$k($v)",
          delete="del $o.held_$k.n"),
    _held("object with slots",
          "class Held_$k:\n    __slots__ = ('n',)\n    def __init__(self, n):\n        self.n = n", "Held_$k($v)",
          "attribute", extra=""),
    _held("dataclass", "@dataclasses.dataclass\nclass Held_$k:\n    n: object = 9.0\n    m: float = 0.25",
          "Held_$k($v)", "attribute dict dataclass"),
    _held("frozen dataclass", "@dataclasses.dataclass(frozen=True)\nclass Held_$k:\n    n: object = 9.0\n"
          "    m: float = 0.25", "Held_$k($v)", "attribute dict dataclass", set="$o.held_$k = Held_$k($v)", extra=""),
    _held("dataclass with slots", "@dataclasses.dataclass(slots=True)\nclass Held_$k:\n    n: object = 9.0\n"
          "    m: float = 0.25", "Held_$k($v)", "attribute dataclass", extra=""),
    _held("SimpleNamespace", "", "types.SimpleNamespace(n=$v)"),
    _held("argparse.Namespace", "import argparse", "argparse.Namespace(n=$v)"),
    _held("namedtuple", "Held_$k = collections.namedtuple('Held_$k', 'n m')", "Held_$k($v, 0.25)",
          "attribute namedtuple", set="$o.held_$k = $o.held_$k._replace(n=$v)", extra=""),
    _held("NamedTuple", "class Held_$k(typing.NamedTuple):\n    n: object\n    m: float = 0.25", "Held_$k($v)",
          "attribute namedtuple", set="$o.held_$k = Held_$k($v)", extra=""),
    _held("module attribute of a module",
          "class Held_$k(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
          "        self.n = n", "Held_$k($v)"),
    _held("object behind __getattr__", "class Held_$k:\n    def __init__(self, n):\n        self.data = {'n': n}\n"
          "    def __getattr__(self, name):\n        if name == 'data':\n"
          "            raise AttributeError(name)\n        return self.data[name]", "Held_$k($v)", "attribute",
          set="$o.held_$k.data['n'] = $v", extra="$o.held_$k.data['unread'] = 1.0"),
    _held("object behind a proxy", "class Inner_$k:\n    pass\nclass Held_$k:\n    def __init__(self, n):\n"
          "        self.inner = Inner_$k()\n        self.inner.n = n\n"
          "    def __getattr__(self, name):\n        if name == 'inner':\n"
          "            raise AttributeError(name)\n        return getattr(self.inner, name)", "Held_$k($v)",
          "attribute", set="$o.held_$k.inner.n = $v", extra=""),
    _held("object with __getattribute__", "class Held_$k:\n    def __init__(self, n):\n        self.hidden = n\n"
          "    def __getattribute__(self, name):\n"
          "        return object.__getattribute__(self, 'hidden' if name == 'n' else name)", "Held_$k($v)",
          "attribute", set="$o.held_$k.hidden = $v"),
    _held("a dict with attributes", "class Held_$k(dict):\n    __getattr__ = dict.__getitem__\n"
          "    __setattr__ = dict.__setitem__", "Held_$k(n=$v)", "attribute"),
    _held("attribute of a dict", "class Held_$k(dict):\n    def __init__(self, n):\n        self.n = n",
          "Held_$k($v)"),
    _held("attribute of a float", "class Held_$k(float):\n    pass\ndef held_of_$k(n):\n    held = Held_$k(1.0)\n"
          "    held.n = n\n    return held", "held_of_$k($v)"),
    _held("attribute of a list", "class Held_$k(list):\n    def __init__(self, n):\n        self.n = n",
          "Held_$k($v)"),
    Place("threading.local", "LOCAL_$k.n", target="LOCAL_$k", key="'n'", set="LOCAL_$k.n = $v",
          is_=flags("attribute own"), module="LOCAL_$k = threading.local()\nLOCAL_$k.n = $v"),
    Place("weak reference", "$o.ref_$k().n", target="$o.ref_$k()", key="'n'", set="$o.ref_$k().n = $v",
          is_=flags("attribute dict own"), module="class Held_$k:\n    pass\nHELD_$k = Held_$k()\nHELD_$k.n = $v",
          init="self.ref_$k = weakref.ref(HELD_$k)"),
    Place("partial, keyword", "$o.get_$k()", set="$o.get_$k.keywords['n'] = $v",
          init="self.get_$k = functools.partial(plain_$k, n=$v)", module="def plain_$k(n):\n    return n",
          replace="$o.get_$k = functools.partial(plain_$k, n=$v)", is_=flags("own")),
    Place("partial, argument", "$o.get_$k()", set="$o.get_$k = functools.partial(plain_$k, $v)",
          init="self.get_$k = functools.partial(plain_$k, $v)", module="def plain_$k(n):\n    return n",
          is_=flags("own")),
    Place("partial of a type", "$o.get_$k()", set="$o.get_$k = functools.partial(max, $v, 0.25)",
          init="self.get_$k = functools.partial(max, $v, 0.25)", is_=flags("own"), encoding="float"),
    Place("bound method of another object", "$o.get_$k()", set="$o.get_$k.__self__.n = $v",
          init="self.get_$k = Other_$k($v).get",
          module="class Other_$k:\n    def __init__(self, n):\n        self.n = n\n    def get(self):\n"
                 "        return self.n", replace="$o.get_$k = Other_$k($v).get", is_=flags("own")),
    Place("bound method of a dict", "$o.get_$k('n')", set="$o.get_$k.__self__['n'] = $v",
          init="self.get_$k = {'n': $v}.get", replace="$o.get_$k = {'n': $v}.get", is_=flags("own")),
    Place("function in an attribute", "$o.get_$k()", set="$o.get_$k = lambda: $v", init="self.get_$k = lambda: $v",
          is_=flags("own")),
    Place("lru_cache, cleared", "cached_$k()", set="globals()['N_$k'] = $v\ncached_$k.cache_clear()",
          module="N_$k = $v\n@functools.lru_cache\ndef cached_$k():\n    return N_$k", is_=flags("own library")),
    Place("lru_cache that goes stale", "cached_$k()", set="globals()['N_$k'] = $v",
          module="N_$k = $v\n@functools.lru_cache\ndef cached_$k():\n    return N_$k", is_=flags("own library")),
    Place("singledispatch", "dispatched_$k(1)", set="dispatched_$k.register(int, lambda _: $v)",
          module="@functools.singledispatch\ndef dispatched_$k(value):\n    return 9.0\n"
                 "dispatched_$k.register(int, lambda _: $v)", is_=flags("own")),
    Place("os.environ", "float(os.environ['SPMD_KIND_$k'])", set="os.environ['SPMD_KIND_$k'] = '$v'",
          encoding="float", module="os.environ['SPMD_KIND_$k'] = '$v'", delete="", is_=flags("own")),
    Place("os.getenv", "float(os.getenv('SPMD_KIND_$k', '9'))", set="os.environ['SPMD_KIND_$k'] = '$v'",
          encoding="float", module="os.environ['SPMD_KIND_$k'] = '$v'", is_=flags("own")),
    Place("ContextVar", "VAR_$k.get()", set="VAR_$k.set($v)",
          module="VAR_$k = contextvars.ContextVar('VAR_$k')\nVAR_$k.set($v)", is_=flags("own")),
    Place("default of a ContextVar", "VAR_$k.get(*$o.rest_$k)", set="$o.rest_$k = ($v,)", init="self.rest_$k = ($v,)",
          module="VAR_$k = contextvars.ContextVar('VAR_$k')", is_=flags("own")),
    Place("file", "float(open(PATH_$k).read())", set="write_$k($v)", module=_FILE, encoding="float",
          is_=flags("own")),
    Place("file by pathlib", "float(pathlib.Path(PATH_$k).read_text())", set="write_$k($v)", module=_FILE,
          encoding="float", is_=flags("own")),
    Place("logger level", "LOG_$k.level / 20", set="LOG_$k.setLevel(int($v * 20))", encoding="float",
          module="LOG_$k = logging.getLogger('kind_$k')\nLOG_$k.setLevel(int($v * 20))", is_=flags("own")),
    Place("last lr of a scheduler", "$o.held_$k.value.get_last_lr()[0]", set=_ADVANCE, module=_HIDDEN, init=_SCHEDULE,
          encoding="float", is_=flags("own"), roles=PLAIN + ("step", "model", "layer")),
    Place("last_epoch of a scheduler", "$o.held_$k.value.last_epoch + 0.5", set=_ADVANCE, module=_HIDDEN,
          init=_SCHEDULE, encoding="float", values=(0.5, 1.5, 2.5, 3.5, 4.5, 5.5), is_=flags("own"),
          roles=PLAIN + ("step", "model", "layer")),
    Place("0-d array", "float($o.n_$k)", set="$o.n_$k[...] = $v", init="self.n_$k = np.array($v)", encoding="float",
          replace="$o.n_$k = np.array($v)", is_=flags("own")),
    Place("array", "float($o.n_$k[0])", set="$o.n_$k[0] = $v", init="self.n_$k = np.array([$v, 0.25])",
          encoding="float", replace="$o.n_$k = np.array([$v, 0.25])", is_=flags("own")),
    Place("sum of an array", "float($o.n_$k.sum()) - 0.25", set="$o.n_$k[0] = $v",
          init="self.n_$k = np.array([$v, 0.25])", encoding="float", replace="$o.n_$k = np.array([$v, 0.25])",
          is_=flags("own")),
    Place("array.array", "$o.n_$k[0]", set="$o.n_$k[0] = $v", init="import array\nself.n_$k = array.array('d', [$v])",
          encoding="float", replace="import array\n$o.n_$k = array.array('d', [$v])", is_=flags("own")),
    Place("bytearray", "$o.n_$k[0] / 2", set="$o.n_$k[0] = int(2 * $v)", init="self.n_$k = bytearray([int(2 * $v)])",
          encoding="float", replace="$o.n_$k = bytearray([int(2 * $v)])", is_=flags("own")),
    Place("value of an enum", "Mode_$k.A.value", set="Mode_$k.A._value_ = $v",
          module="class Mode_$k(enum.Enum):\n    A = $v\n    B = 9.0", is_=flags("own"), encoding="float"),
    Place("attribute of an enum member", "$o.mode_$k.n", target="$o.mode_$k", key="'n'",
          set="$o.mode_$k = Mode_$k($v)", encoding="float", init="self.mode_$k = Mode_$k($v)",
          is_=flags("attribute own"),
          module="class Mode_$k(enum.Enum):\n    A = 0.5\n    B = 1.5\n    C = 2.5\n    @property\n"
                 "    def n(self):\n        return self.value"),
    Place("training flag", "1.5 if $o.mod_$k.training else 0.5", set="$o.mod_$k.train($v > 1)",
          init="self.mod_$k = torch.nn.ReLU().train($v > 1)", encoding="float", values=(0.5, 1.5), is_=flags("own")),
    Place("rate of a dropout", "$o.mod_$k.p", target="$o.mod_$k", key="'p'", set="$o.mod_$k.p = $v",
          init="self.mod_$k = torch.nn.Dropout(0.1)\nself.mod_$k.p = $v", encoding="float",
          is_=flags("attribute dict own")),
    Place("eps of a layer of PyTorch", "1e3 * $o.mod_$k.eps", set="$o.mod_$k.eps = $v * 1e-3",
          init="self.mod_$k = torch.nn.LayerNorm(3, eps=$v * 1e-3)", encoding="float", is_=flags("own")),
    Place("number of a distribution", "float($o.dist_$k.total_count) / 2", set="$o.dist_$k.total_count = 2 * $v",
          encoding="float", init="self.dist_$k = torch.distributions.Binomial(4, torch.tensor(0.5))\n"
               "self.dist_$k.total_count = 2 * $v", is_=flags("own")),
    Place("number of its own class", "float($o.n_$k)", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __float__(self):\n        return self.hidden"),
    Place("number with operators", "$o.n_$k * 1.0", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __mul__(self, other):\n        return self.hidden * other"),
    Place("object with __bool__", "1.5 if $o.n_$k else 0.5", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", values=(0.5, 1.5), replace="$o.n_$k = Number_$k($v)",
          is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __bool__(self):\n        return self.hidden > 1"),
    Place("object with __len__", "len($o.n_$k) / 2", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __len__(self):\n        return int(self.hidden * 2)"),
    Place("object with __index__", "range(9)[$o.n_$k] / 2", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __index__(self):\n        return int(self.hidden * 2)"),
    Place("object with __eq__", "1.5 if $o.n_$k == 1.5 else 0.5", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", values=(0.5, 1.5), replace="$o.n_$k = Number_$k($v)",
          is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __eq__(self, other):\n        return self.hidden == other"),
    Place("object with __lt__", "1.5 if sorted([$o.n_$k, Number_$k(1.0)])[0] is $o.n_$k else 0.5",
          set="$o.n_$k.hidden = 2 - $v", init="self.n_$k = Number_$k(2 - $v)", encoding="float", values=(0.5, 1.5),
          is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __lt__(self, other):\n        return self.hidden < other.hidden"),
    Place("object with __format__", "float(f'{$o.n_$k}')", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __format__(self, spec):\n        return repr(self.hidden)"),
    Place("object with __iter__", "sum($o.n_$k)", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          encoding="float", replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __iter__(self):\n        return iter([self.hidden])"),
    Place("object with __contains__", "1.5 if 1.5 in $o.n_$k else 0.5", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", values=(0.5, 1.5), replace="$o.n_$k = Number_$k($v)",
          is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __contains__(self, value):\n        return value == self.hidden"),
    Place("object with __getitem__", "$o.n_$k['n']", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __getitem__(self, name):\n        return self.hidden"),
    Place("object with __call__", "$o.n_$k()", set="$o.n_$k.hidden = $v", init="self.n_$k = Number_$k($v)",
          replace="$o.n_$k = Number_$k($v)", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __call__(self):\n        return self.hidden"),
    Place("object with __hash__", "{0.5: 0.5, 1.5: 1.5, 2.5: 2.5}[$o.n_$k]", set="$o.n_$k.hidden = $v",
          init="self.n_$k = Number_$k($v)", encoding="float", is_=flags("own"),
          module="class Number_$k:\n    def __init__(self, hidden):\n        self.hidden = hidden\n"
                 "    def __hash__(self):\n        return hash(self.hidden)\n"
                 "    def __eq__(self, other):\n        return self.hidden == other"),
    Place("state of an iterator that is copied", "next(copy.copy($o.n_$k))", set="$o.n_$k = iter([$v])",
          init="self.n_$k = iter([$v])", encoding="float", is_=flags("own")),
    Place("__dict__ of a class", "Owner_$k.__dict__['n_$k']", set="Owner_$k.n_$k = $v", body="n_$k = $v",
          is_=flags("own library")),
]
