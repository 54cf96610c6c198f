"""Random trees and policies: the units are those of torch.distributed.fsdp.wrap, and every parameter is in one of them.

Where modules are shared, or a tied parameter lies in two units of which none contains the other, PyTorch counts twice
or fails; there a plain walk that counts once is the oracle.
"""
from __future__ import annotations

import collections
import copy
import random
import warnings

import pytest
from torch.distributed.fsdp import _wrap_utils as upstream
from torch.distributed.fsdp import wrap as fsdp

import spmd
from random_models import RandomModel, plain_walk, random_policy

CASES = 640


def units_of_pytorch(model, policy, ignored_modules, ignored_parameters) -> list:
    found = []
    upstream._auto_wrap(model, policy, ignored_modules, ignored_parameters,
                        {"mixed_precision": None, "use_orig_params": True},
                        lambda module, **options: found.append(module) or module)
    return found + [model]


def is_counted_twice(units: list, ignored: set) -> bool:
    """A parameter is in two units, none of which contains the other."""
    held = [(set(u.modules()), set(u.parameters()) - ignored) for u in units]
    return any(p & q and not m <= n and not n <= m for m, p in held for n, q in held)


def parameters_of_pytorch(units: list, names: dict, ignored: set) -> list[set[str]]:
    """The parameters that FSDP would put into each unit."""
    visited: set = set()
    return [set(upstream._get_managed_param_to_fqn(u, ignored, visited, names[u]).values()) for u in units]


def check_parameters(units, model, ignored) -> None:
    """Each parameter that is not ignored is in exactly one unit, whole, and no two overlap."""
    names = [p.name for u in units for p in u.parameters]
    expected = {name for name, p in model.named_parameters() if p not in ignored}
    assert len(names) == len(set(names)) and set(names) == expected
    assert (set() if units.ignored is None else {p.name for p in units.ignored.parameters}) == {
        name for name, p in model.named_parameters() if p in ignored}
    for unit in units:
        ends: collections.Counter = collections.Counter()
        for parameter in unit.parameters:
            assert parameter.offset % 128 == 0 and parameter.offset >= ends[parameter.buffer]
            ends[parameter.buffer] = parameter.offset + parameter.numel
            if parameter.slices is not None:
                assert sum(stop - start for _, start, stop in parameter.slices) == parameter.numel


def one_case(seed: int, counts: collections.Counter) -> None:
    rng = random.Random(seed)
    case = RandomModel(rng)
    model, names = case.model, {m: path for path, m in case.model.named_modules()}
    ignored_modules, ignored = case.all_ignored()
    kind, policy = random_policy(rng, model)
    counts[kind] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        units = spmd.shard_units(model, policy, ignored_modules=case.ignored_modules,
                                 ignored_states=case.ignored_parameters, ranks=rng.choice([1, 3, 8]))
        expected = plain_walk(model, policy, ignored_modules, ignored)
        ours, walked = [u.name for u in units], [names[m] for m in expected]
        # A shared module that one of its parents hides has its place in post-order all the same.
        assert (sorted(ours), ours[-1]) == (sorted(walked), "") if case.shared else ours == walked, kind
        check_parameters(units, model, ignored)
        if not case.shared and not is_counted_twice(expected[:-1], ignored):
            counts["compared with PyTorch"] += 1
            assert [u.name for u in units] == [names[m] for m in
                                               units_of_pytorch(model, policy, ignored_modules, ignored)], kind
            if not case.tied:
                assert [{p.name for p in u.parameters} for u in units] == parameters_of_pytorch(expected,
                                                                                                names, ignored)
    counts["shared modules"] += case.shared
    counts["tied parameters"] += case.tied
    counts["frozen parameters"] += case.frozen
    counts["ignored parameters"] += bool(ignored)
    if isinstance(policy, fsdp.CustomPolicy):
        check_options(units, policy, names, counts)


def check_options(units, policy, names, counts) -> None:
    by_name = {path: m for m, path in names.items()}
    has_dict = False
    for unit in units:
        result = policy._lambda_fn(by_name[unit.name])
        given = result if isinstance(result, dict) else {}
        assert unit.given_options == given
        expected = {"mode": "fully_shard", "reshard_after_forward": True, "precision": None}
        assert unit.options == {**expected, **given}
        has_dict |= bool(given)
    counts["dict results"] += has_dict


def annotated_case(seed: int, counts: collections.Counter) -> None:
    """fully_shard on random modules, children first; a unit holds what no earlier one has."""
    rng = random.Random(seed)
    case = RandomModel(rng)
    if case.shared or case.tied:
        return
    model, names = case.model, {m: path for path, m in case.model.named_modules()}
    parameters = {p: name for name, p in model.named_parameters()}
    taken: set = set()
    expected = {}
    for module in reversed(list(model.modules())):
        if rng.random() < 0.5 and (module is model or type(module).__name__ not in ("ModuleList", "ModuleDict")):
            out = {p for p in module.parameters() if rng.random() < 0.1}
            reshard = rng.choice([None, True, False])
            assert spmd.fully_shard(module, reshard_after_forward=reshard, ignored_params=out) is module
            expected[names[module]] = ({parameters[p] for p in module.parameters() if p not in taken and p not in out},
                                       reshard, out - taken)
            taken |= set(module.parameters())
    if not expected:
        return
    expected.setdefault("", ({n for p, n in parameters.items() if p not in taken}, None, set()))
    for units in (spmd.shard_units(model), spmd.shard_units(copy.deepcopy(model))):
        assert {u.name: {p.name for p in u.parameters} for u in units} == {n: e[0] for n, e in expected.items()}
        for unit in units:
            reshard = expected[unit.name][1]
            assert unit.options["reshard_after_forward"] == (unit.name != "" if reshard is None else reshard)
        ignored = {parameters[p] for e in expected.values() for p in e[2]}
        assert (set() if units.ignored is None else {p.name for p in units.ignored.parameters}) == ignored
    counts["annotations"] += 1


@pytest.mark.filterwarnings("ignore")
def test_units_are_pytorchs(capsys) -> None:
    counts: collections.Counter = collections.Counter()
    for seed in range(CASES):
        one_case(seed, counts)
    for seed in range(CASES // 4):
        annotated_case(seed, counts)
    with capsys.disabled():
        print(f"{CASES} random models: {dict(counts)}")
    for what in ("shared modules", "tied parameters", "frozen parameters", "ignored parameters", "dict results",
                 "annotations"):
        assert counts[what] >= 50, (what, counts)
    assert counts["compared with PyTorch"] >= 500
    assert all(counts[kind] >= 20 for kind in ("always", "class", "transformer", "lambda", "size", "callable", "custom",
                                               "user", "or"))


def test_callables_are_asked_what_pytorch_asks() -> None:
    """Not only the units: the calls, in their order, with their numbers."""
    for seed in range(100):
        rng = random.Random(seed)
        case = RandomModel(rng)
        if case.shared or case.tied:
            continue
        calls: list = []
        limit = rng.randint(1, 60)

        def policy(module, recurse, nonwrapped_numel):
            calls.append((id(module), recurse, nonwrapped_numel))
            return nonwrapped_numel >= limit

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spmd.shard_units(case.model, policy, ignored_modules=case.ignored_modules,
                             ignored_states=case.ignored_parameters)
            ours, calls = calls, []
            units_of_pytorch(case.model, policy, *case.all_ignored())
        assert ours == calls
