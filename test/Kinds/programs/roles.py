"""What the owner of a number is, and how the step reaches it.

    $h  the object that has the owner, where it is wired
    $p  the same, as the host sees it
"""
from __future__ import annotations

from .pieces import Role

FUNCTION = ("class Function_$k(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t, one):\n"
            "        scale = one.use_$k(torch.ones_like(t))\n        ctx.save_for_backward(scale)\n"
            "        return t * scale\n"
            "    @staticmethod\n    def backward(ctx, grad):\n        return grad * ctx.saved_tensors[0], None")
ROLES = [
    Role("step", host="self", style="method", can_move=False),
    Role("model", "module", host="self", can_move=False),
    Role("layer", "module", "forward", "model.layer_$k = own_$k", "self.layer_$k"),
    Role("layer that is called", "module", "forward", "model.layer_$k = own_$k", calls="t = self.layer_$k(t)"),
    Role("layer by index", "module", "forward", "model.layers_$k = torch.nn.ModuleList([own_$k])",
         "self.layers_$k[0]"),
    Role("layer by index, called", "module", "forward",
         "model.layers_$k = torch.nn.ModuleList([torch.nn.Identity(), own_$k])", calls="t = self.layers_$k[1](t)"),
    Role("layer by key", "module", "forward", "model.layers_$k = torch.nn.ModuleDict({'a': own_$k})",
         "self.layers_$k['a']"),
    Role("layer by a loop", "module", "forward", "model.layers_$k = torch.nn.ModuleList([own_$k])", "layer_$k",
         "for layer_$k in self.layers_$k:"),
    Role("layer by a loop, called", "module", "forward", "model.layers_$k = torch.nn.ModuleList([own_$k])",
         calls="for layer in self.layers_$k:\n    t = layer(t)"),
    Role("layer by values(), called", "module", "forward", "model.layers_$k = torch.nn.ModuleDict({'a': own_$k})",
         calls="for layer in self.layers_$k.values():\n    t = layer(t)"),
    Role("layer in a Sequential", "module", "forward",
         "model.layers_$k = torch.nn.Sequential(own_$k, torch.nn.Identity())", calls="t = self.layers_$k(t)"),
    Role("layer by children()", "module", "forward", "model.layers_$k = torch.nn.ModuleList([own_$k])",
         "next(self.layers_$k.children())"),
    Role("layer by get_submodule()", "module", "forward", "model.layers_$k = torch.nn.ModuleList([own_$k])",
         "self.get_submodule('layers_$k.0')"),
    Role("layer in a list", "module", "forward", "model.layers_$k = [own_$k]", "self.layers_$k[0]"),
    Role("config in an attribute", wire="$h.own_$k = own_$k", owner="$p.own_$k"),
    Role("config in an attribute of the model", host="forward", wire="$h.own_$k = own_$k", owner="$p.own_$k"),
    Role("config in a dict", wire="$h.parts_$k = {'own': own_$k}", owner="$p.parts_$k['own']"),
    Role("config in a dict that stays", wire="vars($h).setdefault('parts_$k', {})['own'] = own_$k",
         owner="$p.parts_$k['own']"),
    Role("config in a list", host="forward", wire="$h.parts_$k = [own_$k]", owner="$p.parts_$k[0]"),
    Role("config in a tuple", wire="$h.parts_$k = (1, own_$k)", owner="$p.parts_$k[1]"),
    Role("config in a namespace", host="forward",
         wire="$h.a_$k = types.SimpleNamespace(b=types.SimpleNamespace(own=own_$k))", owner="$p.a_$k.b.own"),
    Role("config in a class attribute", wire="type($h).own_$k = own_$k", owner="$p.own_$k"),
    Role("config in a global", wire="globals()['OWN_$k'] = own_$k", owner="OWN_$k"),
    Role("config in a global of the model", host="forward", wire="globals()['OWN_$k'] = own_$k", owner="OWN_$k"),
    Role("config in a module", wire="sys.modules.setdefault('kind_$k', types.ModuleType('kind_$k')).own = own_$k",
         owner="sys.modules['kind_$k'].own"),
    Role("config behind a weak reference", wire="$h.ref_$k = weakref.ref(own_$k)", owner="$p.ref_$k()"),
    Role("config behind a lambda", wire="$h.get_$k = lambda: own_$k", owner="$p.get_$k()"),
    Role("config by next(iter())", wire="$h.parts_$k = [own_$k]", owner="next(iter($p.parts_$k))"),
    Role("config in a closure", owner="own_$k", style="closure", can_move=False),
    Role("config in a default", owner="default_$k", style="closure", can_move=False),
    Role("config in an argument", owner="own_$k", style="function"),
    Role("criterion object", wire="$h.criterion_$k = own_$k", calls="t = $p.criterion_$k(t)"),
    Role("criterion module", "module", "forward", "$h.criterion_$k = own_$k", calls="t = $p.criterion_$k(t)"),
    Role("callback", wire="$h.callbacks_$k = [own_$k]",
         calls="for callback in $p.callbacks_$k:\n    t = callback.use_$k(t)"),
    Role("callback that is a bound method", wire="$h.bound_$k = own_$k.use_$k", calls="t = $p.bound_$k(t)"),
    Role("callback that is a lambda", wire="$h.apply_$k = lambda t: own_$k.use_$k(t)", calls="t = $p.apply_$k(t)"),
    Role("callback that is a partial", wire="$h.apply_$k = functools.partial(Owner_$k.use_$k, own_$k)",
         calls="t = $p.apply_$k(t)"),
    Role("hook that is a bound method", host="forward", wire="model.fc.register_forward_hook(own_$k.hook_$k)",
         calls="pass", can_move=False),
    Role("hook that is a lambda", host="forward",
         wire="model.fc.register_forward_hook(lambda module, inputs, output: own_$k.use_$k(output))", calls="pass",
         can_move=False),
    Role("hook before", host="forward",
         wire="model.fc.register_forward_pre_hook(lambda module, inputs: (own_$k.use_$k(inputs[0]),))", calls="pass",
         can_move=False),
    Role("hook of a tensor", host="forward", wire="$h.own_$k = own_$k", calls="t.register_hook($p.own_$k.use_$k)"),
    Role("autograd function", wire="$h.own_$k = own_$k", calls="t = Function_$k.apply(t, $p.own_$k)"),
    Role("optimizer", "optimizer", host="self", can_move=False),
    Role("optimizer over SGD", "sgd", host="self", can_move=False),
]
