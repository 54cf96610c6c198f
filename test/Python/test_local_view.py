"""view="local": the captured step is one rank's, gradients are averaged: what FSDP computes.

The oracle is written out here: each rank's loss and gradients on its rows, their mean, one optimizer step.
"""
from __future__ import annotations

import copy
import re
import subprocess

import pytest
import torch
import torch.nn.functional as F

import spmd
from spmd.tools import find_tool

RANKS = 2


class Net(torch.nn.Module):
    """Batch norm: every rank has statistics of its own, as FSDP leaves them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 10), torch.nn.Linear(10, 5)
        self.norm = torch.nn.LayerNorm(10)
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x):
        if self.training:
            self.seen.add_(x.mean(0))
        return self.second(torch.tanh(self.norm(self.first(x))))


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y, ignore_index=-100)  # a mean over the rank's own labels


def train_step(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def setup(optimizer=lambda p: torch.optim.AdamW(p, lr=0.05), dtype=torch.float32):
    torch.manual_seed(0)
    model = Net().to(dtype)
    return model, optimizer(model.parameters())


def batches(ranks: int, steps: int = 4, dtype=torch.float32):
    """Global batches: the rows of each rank are others, and so is how many of them have a label."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        x = torch.randn(4 * ranks, 6, generator=generator, dtype=dtype)
        y = torch.randint(0, 5, (4 * ranks,), generator=generator)
        y[1:4] = -100
        assert not torch.equal(x[:4], x[4:8])
        yield x, y


def fsdp_step(model, optimizer, x, y, ranks: int, clip: float | None = 0.05, divide_factor: float | None = None):
    """One step of FSDP on `ranks` ranks: mean of the ranks' gradients (or their sum divided by another factor), its norm
    clipped, one update."""
    losses, gradients, seen = [], [], model.seen.clone()
    for rank, (rows, labels) in enumerate(zip(x.chunk(ranks), y.chunk(ranks))):
        loss = loss_of(model, rows, labels)
        if rank == 0:
            first = model.seen.clone()
        model.seen.copy_(seen)
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
        losses.append(loss.detach())
    model.seen.copy_(first)  # a checkpoint has rank 0's
    for parameter, of_ranks in zip(model.parameters(), zip(*gradients)):
        parameter.grad = sum(of_ranks) / (divide_factor or ranks)
    if clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad()
    return sum(losses) / ranks


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    a, b = a.detach(), b.detach()
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


def assert_same(model, optimizer, twin, twin_optimizer, tolerance: float) -> None:
    for name, value in twin.state_dict().items():
        assert relative(model.state_dict()[name], value) < tolerance, name
    for p, q in zip(model.parameters(), twin.parameters()):
        for state, value in twin_optimizer.state[q].items():
            assert relative(optimizer.state[p][state], value) < tolerance, state


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def capture(reference_ranks: int = RANKS, dtype=torch.float32, step=None, **options):
    model, optimizer = setup(dtype=dtype, **options)
    x, y = next(batches(2, dtype=dtype))
    return spmd.capture(step or train_step, model, optimizer, x[:4], y[:4],
                        reference=list(batches(reference_ranks, dtype=dtype)),
                        reference_ranks=reference_ranks)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-13)])
@pytest.mark.parametrize("ranks", [2, 3])
def test_the_reference_is_fsdps(ranks, dtype, tolerance) -> None:
    """The package runs the unmodified step on every rank's rows; the batches it records are distinct."""
    package = capture(ranks, dtype)
    twin, optimizer = setup(dtype=dtype)
    for number, (x, y) in enumerate(batches(ranks, dtype=dtype)):
        loss = fsdp_step(twin, optimizer, x, y, ranks)
        assert abs(package.reference["loss"][number] - loss) < tolerance
        assert package.reference[f"batch/{number}/x"].shape == (4 * ranks, 6)
    for name, value in twin.state_dict().items():
        assert relative(package.reference[f"final/{name}"], value) < tolerance, name


def test_a_failing_rank_ends_the_reference() -> None:
    """Nobody waits for ever for a rank whose step raises."""
    def failing(model, optimizer, x, y):
        if not isinstance(x, torch._subclasses.FakeTensor) and x[0, 0] < 0:
            raise ZeroDivisionError("rank 1")
        return train_step(model, optimizer, x, y)

    model, optimizer = setup()
    x, y = torch.ones(8, 6), torch.ones(8, dtype=torch.int64)
    x[4:] = -1
    with pytest.raises(ZeroDivisionError, match="rank 1"):
        spmd.capture(failing, model, optimizer, x[:4], y[:4], reference=[(x, y)], reference_ranks=2)
    with pytest.raises(spmd.CaptureError, match="'x' has 7 rows for 2 ranks"):
        spmd.capture(train_step, model, optimizer, x[:4], y[:4], reference=[(x[:7], y[:7])], reference_ranks=2)


@pytest.mark.parametrize("ranks, mode, policy", [(2, "fully_shard", "class:Linear"), (4, "replicate", "none")])
def test_trains_like_fsdp(ranks, mode, policy) -> None:
    model, optimizer = setup()
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    other, other_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(train_step, ranks=ranks, view="local", mode=mode, policy=policy, threads=2)
    for x, y in batches(ranks):
        loss = step(model, optimizer, x, y)
        assert abs(loss.item() - fsdp_step(twin, twin_optimizer, x, y, ranks).item()) < 1e-5
        train_step(other, other_optimizer, x, y)
    assert_same(model, optimizer, twin, twin_optimizer, 1e-4)
    # the mean of the ranks' gradients is not the gradient of the global batch
    assert relative(other.first.weight, twin.first.weight) > 1e-2
    kinds = [c.op for c in step.trainer.collectives]
    if mode == "replicate":
        assert kinds == ["all_reduce"]
    else:  # per unit a reduce-scatter and a gather in each direction, the norm; nothing else communicates
        assert kinds.count("reduce_scatter") == 3 and kinds.count("all_reduce") == 1 and set(kinds) <= {
            "all_gather", "reduce_scatter", "all_reduce"}


@pytest.mark.parametrize("how", [{"ranks": 1}, {"ranks": 2, "policy": "class:Linear"}, {"ranks": 3, "mode": "replicate"},
                                 {"ranks": 4, "mode": "shard_optimizer"}, {"mesh": "replicate:2,shard:2"}], ids=str)
@pytest.mark.parametrize("factor", [1.0, 8.0])
@pytest.mark.sample(3)
def test_gradients_are_divided_by_a_factor(how, factor: float, tmp_path) -> None:
    """FSDP2's set_gradient_divide_factor; SGD, which shows it, without clipping, which would hide it."""
    def sgd(model, optimizer, x, y):
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    ranks = how.get("ranks", 4)
    model, optimizer = setup(lambda p: torch.optim.SGD(p, lr=0.1))
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(sgd, view="local", gradient_divide_factor=factor, threads=1, **how)
    for x, y in batches(ranks):
        loss = step(model, optimizer, x, y)
        assert abs(loss.item() - fsdp_step(twin, twin_optimizer, x, y, ranks, None, factor).item()) < 1e-5
    assert_same(model, optimizer, twin, twin_optimizer, 1e-5)
    if "mesh" in how or ranks == 1:
        return
    x, y = next(batches(ranks))  # the reference is divided by it, too
    spmd.capture(sgd, *setup(lambda p: torch.optim.SGD(p, lr=0.1)), x[:4], y[:4], reference=list(batches(ranks)), reference_ranks=ranks,
                 reference_gradient_divide_factor=factor).save(tmp_path / "net.step")
    programs = find_tool("spmd-compile").parent
    words = ["--view=local", f"--ranks={ranks}", *([f"--mode={how['mode']}"] if "mode" in how else [])]
    for given, code in ((f"--gradient-divide-factor={factor}", 0), ("--gradient-divide-factor=2.5", 1)):
        run(programs / "spmd-compile", tmp_path / "net.step", *words, given, "--quiet", "-o", tmp_path / "net.spmd")
        run(programs / "spmd-run", tmp_path / "net.spmd", "--check", "--quiet", code=code)


@pytest.mark.parametrize("factor", [None, 1.0, 3.0])
def test_the_gradient_of_a_penalty_alone(factor: float | None) -> None:
    """Each rank has all of it, and FSDP adds up as many as there are ranks."""
    def penalized(model, optimizer, x, y):
        loss = loss_of(model, x, y) + model.free.square().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def made():
        model, _ = setup(lambda p: torch.optim.SGD(p, lr=0.1))
        model.free = torch.nn.Parameter(torch.arange(5.0))
        return model, torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = made()
    spmd.compile(penalized, ranks=4, view="local", gradient_divide_factor=factor)(model, optimizer, *next(batches(4)))
    expected = torch.arange(5.0) - 0.1 * 2 * torch.arange(5.0) * 4 / (factor or 4)
    torch.testing.assert_close(model.free.detach(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("factor", [None, 1.0, 3.0])
def test_a_second_gradient_is_divided_once(factor: float | None) -> None:
    """Of two losses that are kept apart: the unit's one reduction takes the first, and the other is added up alone."""
    def gradients(model, x, y):
        losses = loss_of(model, x, y), model(x).square().mean()
        return [torch.autograd.grad(loss, [model.first.weight], retain_graph=True)[0] for loss in losses]

    def apart(model, optimizer, x, y):
        both = gradients(model, x, y)
        for gradient in both:
            model.first.weight.grad = gradient
            optimizer.step()
        optimizer.zero_grad()
        return both[0].new_zeros(())
    model, optimizer = setup(lambda p: torch.optim.SGD(p, lr=0.1))
    twin = copy.deepcopy(model)
    x, y = next(batches(4))
    spmd.compile(apart, ranks=4, view="local", gradient_divide_factor=factor)(model, optimizer, x, y)
    one, other = (sum(each) / (factor or 4) for each in zip(*(gradients(twin, *rows) for rows in zip(x.chunk(4), y.chunk(4)))))
    torch.testing.assert_close(model.first.weight, twin.first.weight - 0.1 * (one + other), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("words, why", [
    (["--gradient-divide-factor=2"], "is for view=local; with view=global gradients are those of the loss"),
    (["--view=local", "--gradient-divide-factor=0"], "gradient-divide-factor=0: expected a number above 0"),
    (["--view=local", "--gradient-divide-factor=inf"], "expected a number above 0"),
    (["--view=local", "--gradient-divide-factor=x"], "expected a number above 0")])
def test_factors_that_cannot_be(words, why: str, tmp_path) -> None:
    capture().save(tmp_path / "net.step")
    assert why in run(find_tool("spmd-compile"), tmp_path / "net.step", *words, "--ranks=2", "-o", tmp_path / "net.spmd", code=2)
    with pytest.raises(ValueError, match="gradient_divide_factor is for view='local'"):
        spmd.compile(train_step, gradient_divide_factor=2.0)


class Largest(torch.nn.Module):
    """Divides by the largest value that it has seen, of its own rows."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(6, 5)
        self.register_buffer("largest", torch.zeros(()))
        self.register_buffer("seen", torch.full((6,), float("nan")))

    def forward(self, x):
        self.largest.copy_(torch.maximum(self.largest, x.abs().max()))
        self.seen.copy_(x.mean(0))
        return self.linear(x / self.largest)


def test_reading_leaves_ranks_their_buffers() -> None:
    """What is read is rank 0's, and must not go back to the others; what is written goes to all."""
    torch.manual_seed(0)
    model = Largest()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    ranks = [copy.deepcopy((model, optimizer)) for _ in range(RANKS)]
    step = spmd.compile(plain_step, ranks=RANKS, view="local", threads=2)
    apart, kept = False, {}
    for number, (x, y) in enumerate(batches(RANKS, steps=6)):
        loss = step(model, optimizer, x, y)
        expected = []
        for (own, _), rows, labels in zip(ranks, x.chunk(RANKS), y.chunk(RANKS)):
            expected.append(loss_of(own, rows, labels))
            expected[-1].backward()
        for parameters in zip(*(own.parameters() for own, _ in ranks)):
            mean = sum(p.grad for p in parameters) / RANKS
            for p in parameters:
                p.grad = mean.clone()
        for _, own in ranks:
            own.step()
            own.zero_grad()
        assert abs(loss.item() - sum(loss.item() for loss in expected) / RANKS) < 1e-5, number
        assert relative(model.largest, ranks[0][0].largest) < 1e-6
        apart |= relative(ranks[1][0].largest, ranks[0][0].largest) > 1e-2
        if number == 1:
            kept = model.state_dict()  # what stays here over the next step
        if number == 3:
            kept.clear()
            for module in (model, *(own for own, _ in ranks)):
                module.largest.fill_(0.5)
    assert apart


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=0.5, momentum=0.9)


def accumulating(model, optimizer, x, y):
    """Two microbatches, handmade clipping by the norm of the averaged gradients, a metric of every kind."""
    total = 0.0
    for rows, labels in zip(x.chunk(2), y.chunk(2)):
        loss = F.mse_loss(model(rows), F.one_hot(labels.clamp_min(0), 5).float())
        loss.backward()
        total = total + loss.detach()
    norm = torch.stack([p.grad.pow(2).sum() for p in model.parameters()]).sum().sqrt()
    for p in model.parameters():
        p.grad.mul_(0.1 / norm)
    optimizer.step()
    optimizer.zero_grad()
    return {"loss": total, "rows": x[:, 0], "count": (y >= 0).sum()}


def test_accumulation_handmade_clipping_and_results() -> None:
    model, optimizer = setup(sgd)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    step = spmd.compile(accumulating, ranks=RANKS, view="local", threads=2)
    for x, y in batches(RANKS, steps=3):
        result = step(model, optimizer, x, y)
        losses, gradients, seen = [], [], twin.seen.clone()
        for rank in range(RANKS):
            copy_of = copy.deepcopy(twin)
            rows, labels = x[4 * rank:4 * rank + 4], y[4 * rank:4 * rank + 4]
            parts = [F.mse_loss(copy_of(r), F.one_hot(t.clamp_min(0), 5).float())
                     for r, t in zip(rows.chunk(2), labels.chunk(2))]
            gradients.append(torch.autograd.grad(sum(parts), list(copy_of.parameters())))
            losses.append(sum(parts).item())
            seen = copy_of.seen if rank == 0 else seen
        twin.seen.copy_(seen)
        means = [sum(of_ranks) / RANKS for of_ranks in zip(*gradients)]
        norm = torch.stack([g.pow(2).sum() for g in means]).sum().sqrt()
        for p, mean in zip(twin.parameters(), means):
            p.grad = mean * (0.1 / norm)
        twin_optimizer.step()
        assert result["loss"].item() == pytest.approx(sum(losses) / RANKS, abs=1e-5)  # the mean
        torch.testing.assert_close(result["rows"], x[:4, 0])  # rank 0's
        assert result["count"].item() == 1
    assert_same(model, optimizer, twin, twin_optimizer, 1e-4)


def test_rows_that_do_not_divide_are_refused() -> None:
    model, optimizer = setup()
    step = spmd.compile(train_step, ranks=RANKS, view="local")
    with pytest.raises(spmd.CaptureError, match=r"'x' has 7 rows for 2 ranks\n  hint: .*view='global'"):
        step(model, optimizer, torch.randn(7, 6), torch.zeros(7, dtype=torch.int64))
    with pytest.raises(ValueError, match="view is 'sideways'; allowed: global, local"):
        spmd.compile(train_step, view="sideways")


def scaled_by_the_loss(model, optimizer, x, y):
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1 - 0.01 * loss.detach())
    return loss


def test_an_update_by_a_ranks_own_value_is_refused() -> None:
    model, optimizer = setup()
    step = spmd.compile(scaled_by_the_loss, ranks=RANKS, view="local")
    x, y = next(batches(RANKS))
    with pytest.raises(spmd.CompileError,
                       match="differs from rank to rank .*test_local_view.py:.*only gradients are averaged"):
        step(model, optimizer, x, y)


def run(*command, code: int = 0) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == code, f"{command} exited with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.parametrize("ranks, policy", [(2, "always"), (3, "none")])
def test_in_double_precision_every_phase_is_the_reference(tmp_path, ranks, policy) -> None:
    """N ranks' programs with averaged gradients, interpreted in f64, against PyTorch in f64."""
    capture(ranks, torch.float64).save(tmp_path / "net.step")
    programs = find_tool("spmd-compile").parent
    for phase in ("partition", "decompose", "collectives", "kernels"):
        ir = tmp_path / f"{phase}.mlir"
        run(programs / "spmd-compile", tmp_path / "net.step", "--view=local", f"--ranks={ranks}", f"--policy={policy}",
            f"--compile-to={phase}", "-o", ir)
        text = run(programs / "spmd-interpret", ir, f"--weights={tmp_path / 'net.step'}", "--reference", "--rtol=1e-12")
        assert "parameters" in text and "exp_avg" in text


class Dropped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 10), torch.nn.Linear(10, 5)
        self.register_buffer("largest", torch.zeros(()))  # 0-dim as a loss, but no mean over the ranks

    def forward(self, x):
        self.largest.copy_(torch.maximum(self.largest, x.abs().max()))
        x = F.dropout(self.first(x), 0.3)
        return self.second(x + 0.1 * torch.rand_like(x) + 0.1 * torch.rand((), dtype=x.dtype))


def plain_loss(model, optimizer, x, y):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def labelled(ranks: int, dtype=torch.float32):
    """Every rank has as many labels, so that the mean of the ranks' losses is that of all rows."""
    return [(x, y.clamp_min(0)) for x, y in batches(ranks, dtype=dtype)]


@pytest.mark.parametrize("ranks", [2, 3])
def test_draws_of_ranks_in_every_phase(tmp_path, ranks) -> None:
    """Each rank draws for its own rows, as the reference does."""
    torch.manual_seed(0)
    model = Dropped().double()
    data = labelled(ranks, torch.float64)
    package = spmd.capture(plain_loss, model, sgd(model.parameters()), data[0][0][:4], data[0][1][:4], reference=data,
                           reference_ranks=ranks)
    package.save(tmp_path / "net.step")
    programs = find_tool("spmd-compile").parent
    for phase in ("partition", "decompose", "collectives", "kernels"):
        ir = tmp_path / f"{phase}.mlir"
        run(programs / "spmd-compile", tmp_path / "net.step", "--view=local", f"--ranks={ranks}", f"--compile-to={phase}",
            "-o", ir)
        run(programs / "spmd-interpret", ir, f"--weights={tmp_path / 'net.step'}", "--reference", "--rtol=1e-12")
    run(programs / "spmd-compile", tmp_path / "net.step", "--view=local", f"--ranks={ranks}", "-o", tmp_path / "net.spmd",
        "--quiet")
    assert "passed" in run(programs / "spmd-run", tmp_path / "net.spmd", "--check")


@pytest.mark.parametrize("ranks", [2, 4])
def test_rows_draw_what_they_draw_in_the_global_view(ranks) -> None:
    """So the ranks' draws differ, and are the same in every run."""
    class Rows(Dropped):
        def forward(self, x):
            return self.second(F.dropout(self.first(x), 0.5))

    def losses(view):
        torch.manual_seed(0)
        model = Rows()
        optimizer = sgd(model.parameters())
        step = spmd.compile(plain_loss, ranks=ranks, view=view)
        return [step(model, optimizer, x, y).item() for x, y in labelled(ranks)]

    local = losses("local")
    assert local == losses("local")
    assert local == pytest.approx(losses("global"), rel=1e-6)


def plain_step(model, optimizer, x, y):
    """Nothing that would hide a gradient of another scale: neither clipping nor Adam."""
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


def test_check_finds_a_missing_reduction(tmp_path) -> None:
    capture(step=plain_step, optimizer=sgd).save(tmp_path / "net.step")
    programs = find_tool("spmd-compile").parent
    options = ["--ranks=2", "--cpu=x86-64-v3", "--quiet"]
    check = ["--check", "--threads=2", "--quiet"]
    run(programs / "spmd-compile", tmp_path / "net.step", "-o", tmp_path / "net.spmd", "--view=local", *options)
    assert "passed" in run(programs / "spmd-run", tmp_path / "net.spmd", *check)
    # As a global step it takes other batches than those that were recorded.
    run(programs / "spmd-compile", tmp_path / "net.step", "-o", tmp_path / "global.spmd", *options)
    assert "expected f32[4, 6], found f32[8, 6]" in run(programs / "spmd-run", tmp_path / "global.spmd", *check, code=2)

    ir = tmp_path / "partition.mlir"
    run(programs / "spmd-compile", tmp_path / "net.step", "--view=local", "--compile-to=partition", "-o", ir, *options)
    text = ir.read_text()

    def broken(pattern: str, by: str, text: str = text) -> list:
        """The command that goes on from the IR with one mistake in it."""
        changed, count = re.subn(pattern, by, text)
        assert count == 1
        ir.write_text(changed)
        return [programs / "spmd-compile", ir, "--compile-from=partition", "-o", tmp_path / "broken.spmd", *options]

    def check_fails() -> None:
        # the artifact takes the batches of the package that it was made from
        (tmp_path / "broken.spmd/reference.safetensors").write_bytes((tmp_path
                                                                      / "net.step/reference.safetensors").read_bytes())
        failed = run(programs / "spmd-run", tmp_path / "broken.spmd",
                     f"--weights={tmp_path / 'net.step/weights.safetensors'}",
                     *check, code=1)
        assert "the check failed" in failed

    own_part = (r"spmd\.reduce_scatter sum (%\S+ on @mesh \[\"data\"\]) unit @unit0 ", r"spmd.slice \1 ")
    assert "makes owned from varying" in run(*broken(*own_part), code=2)
    sum_of_gradients = (r"(aten\.div\.Scalar %\S+ \{other = )2( : i64[^\n]*\[owned\])", r"\g<1>1\2")
    assert "another value than the one that was recorded" in run(*broken(*sum_of_gradients), code=2)
    text = re.sub(r"spmd\.recorded_values = \{.*?\}, results = .*?\}", "", text)
    run(*broken(*sum_of_gradients, text))  # as one who means it would write it
    check_fails()


def test_synchronized_batch_norm_is_refused_where_it_would_not_be() -> None:
    def build(norm):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), norm(8), torch.nn.Linear(8, 2))
        return model, torch.optim.SGD(model.parameters(), lr=0.1)

    def step(model, optimizer, x, y):
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    x, y = torch.randn(8, 4), torch.randn(8, 2)
    for options in ({}, {"track_running_stats": False}):
        model, optimizer = build(lambda n: torch.nn.SyncBatchNorm(n, **options))
        with pytest.raises(spmd.CompileError, match="module '1' is a SyncBatchNorm[^\0]*or view=global"):
            spmd.compile(step, ranks=2, view="local")(model, optimizer, x, y)
    twin, twin_optimizer = build(torch.nn.BatchNorm1d)
    model, optimizer = build(torch.nn.SyncBatchNorm)
    torch.testing.assert_close(spmd.compile(step, ranks=2)(model, optimizer, x, y), step(twin, twin_optimizer, x, y))
    model, optimizer = build(torch.nn.SyncBatchNorm)
    model.eval()
    assert spmd.compile(step, ranks=2, view="local")(model, optimizer, x, y).isfinite()


PENALTIES = {"square": lambda p: p.square().sum(), "norm": torch.Tensor.norm, "product": lambda p: (p * p.detach().cos()).sum(),
             "number": lambda p: p.sum() if p.dim() else p * p}


@pytest.mark.parametrize("shape", [(2,), ()])
@pytest.mark.parametrize("factor", [None, 1.0, 6.0])
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.sample(4)
def test_gradients_that_no_row_is_in_are_summed_and_divided_as_all_are(name: str, factor: float | None, shape) -> None:
    """Three ranks have the same one, however it comes about: of parameters and numbers, on chunks or not."""
    model = torch.nn.Linear(4, 4)
    model.alone = torch.nn.Parameter(torch.full(shape, 3.0))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def with_penalty(model, optimizer, x, y):
        (F.mse_loss(model(x), y) + PENALTIES[name](model.alone)).backward()
        optimizer.step()
        optimizer.zero_grad()

    alone = model.alone.detach().clone().requires_grad_()
    PENALTIES[name](alone).backward()
    spmd.compile(with_penalty, ranks=3, view="local", gradient_divide_factor=factor)(
        model, optimizer, torch.randn(6, 4), torch.randn(6, 4))
    torch.testing.assert_close(model.alone.detach(), alone.detach() - 0.1 * alone.grad * 3 / (factor or 3))
