"""Operators and functions pass through the handlers of the one dispatch mode and the one function mode, in the order of their phases."""
from __future__ import annotations

import pytest
import torch

from spmd.capture.observe.dispatch_mode import DispatchMode, Handler, Phase
from spmd.capture.observe.function_mode import FunctionMode, FunctionPhase

ADD, MUL, NEG = torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor, torch.ops.aten.neg.default


class Logged(Handler):
    """Writes down what it sees."""

    def __init__(self, name: str, phase: Phase, log: list, operators=None):
        self.name, self.phase, self.log, self.operators = name, phase, log, operators

    def answer(self, call):
        self.log.append(f"{self.name} {call.func._opname}")
        return NotImplemented

    def note(self, call, result):
        self.log.append(f"{self.name} noted {len(call.made)}")

    def failed(self, call, error):
        self.log.append(f"{self.name} failed")


def test_handlers_come_in_the_order_of_phases():
    log = []
    with DispatchMode([Logged("record", Phase.RECORD, log), Logged("draw", Phase.DRAW, log), Logged("check", Phase.CHECK, log)]):
        torch.ones(2) + 1
    assert log[-6:] == ["draw add", "check add", "record add", "record noted 1", "check noted 1", "draw noted 1"]


def test_a_handler_sees_its_operators_only():
    log = []
    with DispatchMode([Logged("mul", Phase.CHECK, log, {MUL})]):
        (torch.ones(2) * 2).neg()
    assert log == ["mul mul", "mul noted 1"]


def test_a_handler_is_asked_once_which_operators_it_sees():
    log, asked = [], []

    class Choosing(Logged):
        def sees(self, func):
            asked.append(func)
            return func is NEG

    with DispatchMode([Choosing("neg", Phase.CHECK, log)]):
        for _ in range(3):
            torch.ones(2).neg()
    assert log == ["neg neg", "neg noted 1"] * 3 and asked.count(NEG) == 1 and len(asked) == len(set(asked))


def test_the_first_answer_is_the_result_and_nothing_is_noted():
    log = []

    class Answer(Logged):
        def answer(self, call):
            super().answer(call)
            return call.args[0]

    x = torch.ones(2)
    with DispatchMode([Logged("check", Phase.CHECK, log), Answer("replace", Phase.REPLACE, log, {NEG}), Logged("record", Phase.RECORD, log)]):
        assert torch.equal(-x, x) and log[:2] == ["check neg", "replace neg"]
    assert "record neg" not in log


def test_operators_of_a_handler_pass_through_later_phases():
    log = []

    class Twice(Logged):
        def answer(self, call):
            with call.mode.from_phase(Phase.RECORD):
                return call.args[0] + call.args[0]

    with DispatchMode([Logged("check", Phase.CHECK, log), Twice("replace", Phase.REPLACE, log, {MUL}), Logged("record", Phase.RECORD, log)]):
        assert (torch.ones(2) * 2).tolist() == [2, 2]
    at = log.index("check mul")
    assert log[at:at + 3] == ["check mul", "record add", "record noted 1"]


def test_changed_arguments_go_to_later_phases_and_to_the_operator():
    class Cut(Handler):
        phase = Phase.VALUE

        def answer(self, call):
            call.args = (call.args[0][:1],)
            return NotImplemented

    seen = []

    class Sizes(Handler):
        phase = Phase.RECORD

        def answer(self, call):
            seen.append(call.args[0].shape[0])
            return NotImplemented

    Cut.operators = Sizes.operators = {NEG}
    with DispatchMode([Cut(), Sizes()]):
        assert torch.neg(torch.ones(3)).shape == (1,)
    assert seen == [1]


def test_handlers_that_have_seen_an_operator_are_told_that_it_failed():
    log = []

    class Refuse(Logged):
        def answer(self, call):
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"), DispatchMode(
            [Logged("check", Phase.CHECK, log), Refuse("value", Phase.VALUE, log), Logged("record", Phase.RECORD, log)]):
        torch.ones(2).neg()
    assert log[-2:] == ["value failed", "check failed"]


def test_written_tensors_and_leaves():
    found = {}

    class Look(Handler):
        phase = Phase.CHECK

        def answer(self, call):
            found[call.func._opname] = len(call.leaves), len(call.written)
            return NotImplemented

    x = torch.ones(2)
    with DispatchMode([Look()]):
        x.add_(x)
        x.mul(2)
    assert found["add_"] == (2, 1) and found["mul"] == (1, 0)


def test_functions_pass_through_handlers():
    log = []

    class Functions:
        def __init__(self, name, phase):
            self.name, self.function_phase = name, phase

        def call(self, func, args, kwargs, below):
            log.append(f"{self.name} {func.__name__}")
            return below(torch.mul, args, kwargs) if func is torch.add and self.function_phase is FunctionPhase.NUMBER else below(func, args, kwargs)

    numbers = torch.tensor(3.0), torch.tensor(4.0)
    with FunctionMode([Functions("iteration", FunctionPhase.ITERATION), Functions("number", FunctionPhase.NUMBER)]):
        product = torch.add(*numbers)
    assert product == 12 and log == ["number add", "iteration mul"]
