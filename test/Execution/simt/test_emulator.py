"""The emulator runs kernels written by hand: what they compute, and that every check finds what it is for."""
import re

import numpy as np
import pytest
from simt import CheckFailed, compile_emulated, emulate, read

RNG = np.random.default_rng(1)


def reduce_arrays():
    return [RNG.standard_normal((5, 300), np.float32)], [((5,), np.float32)]


def test_block_reduction():
    inputs, outputs = reduce_arrays()
    library = compile_emulated(read("reduce.mlir"))
    (got,) = emulate(library, inputs, outputs, 5)
    assert np.allclose(got, inputs[0].astype(np.float64).sum(1), rtol=1e-5)
    counts = library.counts()
    assert (counts.kernels, counts.launches, counts.blocks, counts.threads) == (1, 1, 5, 5 * 64)


def test_elementwise_in_place():
    x = RNG.standard_normal(266, np.float32)
    library = compile_emulated(read("elementwise.mlir"))
    for options in ({}, {"alias": [(0, 0)]}):
        (got,) = emulate(library, [x], [((266,), np.float32)], 3, coords=(2,), **options)
        assert np.allclose(got, np.exp(x.astype(np.float64)) * 3 + 2, rtol=1e-6)


def test_transpose():
    x = RNG.standard_normal((64, 32), np.float32)
    (got,) = emulate(compile_emulated(read("transpose.mlir")), [x], [((32, 64), np.float32)], 2)
    assert (got == x.T).all()


def changed(name, before, after):
    """A kernel with a mistake in it."""
    ir = read(name)
    assert before in ir
    return ir.replace(before, after)


def failure(ir, arrays, blocks, schedule="forward", checked=True):
    library = compile_emulated(ir)
    with pytest.raises(CheckFailed) as caught:
        library.run(*arrays, blocks, schedule, checked=checked)
    # The first error stays, and kernels do nothing after it.
    before = library.counts().blocks
    library.library.k0(None, None, 0, blocks)
    assert library.library.spmd_emulation_error().decode() == str(caught.value)
    assert library.counts().blocks == before
    return str(caught.value)


TRANSPOSE = [RNG.standard_normal((64, 32), np.float32)], [((32, 64), np.float32)]
ELEMENTWISE = [RNG.standard_normal(266, np.float32)], [((266,), np.float32)]


@pytest.mark.parametrize("schedule", ["forward", "reverse", "random", "warp-greedy"])
def test_missing_barrier_is_a_race_in_every_schedule(schedule):
    ir = changed("reduce.mlir", "    gpu.barrier\n", "")
    message = failure(ir, reduce_arrays(), 5, schedule)
    # Whether the read or the write comes first, and so which of the two checks finds it, is the schedule's choice.
    assert re.match(r"kernel k0, block 0, thread \d+: (data race: \w+ byte \d of shared memory, which thread \d+ "
                    r"(wrote|read) with no barrier between|reads byte \d of shared memory, which nobody wrote)",
                    message)


def test_race_in_shared_memory():
    # Both warps write the same place.
    ir = changed("reduce.mlir", "%shared[%warp]", "%shared[%c0]")
    assert failure(ir, reduce_arrays(), 5) == (
        "kernel k0, block 0, thread 32: data race: writes byte 0 of shared memory, which thread 0 wrote with no "
        "barrier between; at llvm.store of f32 (<stdin>:49)")


def test_unwritten_shared_memory():
    ir = changed("reduce.mlir", "arith.cmpi eq, %lane, %c0", "arith.cmpi eq, %t, %c0")
    assert "thread 0: reads byte 4 of shared memory, which nobody wrote; at llvm.load of f32" in \
        failure(ir, reduce_arrays(), 5)
    # Without checks it holds NaN.
    results = compile_emulated(ir).run(*reduce_arrays(), 5, checked=False)
    assert np.isnan(results[0]).all()


def test_shared_memory_too_small():
    ir = changed("reduce.mlir", "spmd.shared_bytes = 8", "spmd.shared_bytes = 4")
    assert "out of bounds: writes bytes 4 to 7 of shared memory, which has 4 bytes" in failure(ir, reduce_arrays(), 5)


def test_global_memory_out_of_bounds():
    ir = changed("elementwise.mlir", "arith.cmpi sle, %end, %c266", "arith.cmpi sle, %i, %c266")
    message = failure(ir, ELEMENTWISE, 3)
    assert message.startswith("kernel k0, block 2, thread 2: out of bounds: reads bytes 1056 to 1071 of operand 0, "
                              "which has 1064 bytes; at llvm.load of vector<4xf32>")
    ir = changed("transpose.mlir", "%start = arith.muli %c, %c64", "%start = arith.subi %c0, %c64")
    assert "thread 0: out of bounds: writes bytes -256 to -253 of result 0" in failure(ir, TRANSPOSE, 2)


def test_code_without_checks_may_be_left_out():
    library = compile_emulated(read("transpose.mlir"), checked_only=True)
    (got,) = library.run(*TRANSPOSE, 2, checked=False)
    assert (got == TRANSPOSE[0][0].T).all()
    library = compile_emulated(changed("transpose.mlir", "%start = arith.muli %c, %c64",
                                       "%start = arith.subi %c0, %c64"),
                               checked_only=True)
    with pytest.raises(CheckFailed, match="out of bounds"):
        library.run(*TRANSPOSE, 2, checked=False)


def test_misaligned_vector():
    ir = changed("elementwise.mlir", "%start = arith.muli", "%start = arith.addi")
    assert "misaligned: " not in failure(ir, ELEMENTWISE, 3)  # only a race: several threads have the same elements
    ir = changed("elementwise.mlir", "%i = arith.muli %number, %c4", "%i0 = arith.muli %number, %c4 : i64\n"
                 "    %i = arith.addi %i0, %c1")
    assert "block 0, thread 0: misaligned: reads bytes 4 to 19 of operand 0" in failure(ir, ELEMENTWISE, 3)


def test_race_between_blocks():
    ir = changed("transpose.mlir", "%within = arith.addi %base, %lane", "%within = arith.addi %c0, %lane")
    message = failure(ir, TRANSPOSE, 2)
    assert re.match(r"kernel k0, block 1, thread 0: data race: writes byte 0 of result 0, which block 0, thread 0 "
                    r"wrote "
                    r"with no barrier between; at llvm.store of f32", message)


def test_unwritten_result_and_written_operand():
    ir = changed("elementwise.mlir", "%v = llvm.load %p {alignment = 16", "%v = llvm.load %p2 {alignment = 16")
    ir = ir.replace("%v = llvm.load %p2", "%p2 = llvm.getelementptr %y[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n"
                    "      %v = llvm.load %p2")
    assert "thread 0: reads byte 0 of result 0, which nobody wrote" in failure(ir, ELEMENTWISE, 3)
    # In place the same read is one of the operand.
    emulate(compile_emulated(ir), *ELEMENTWISE, 3, alias=[(0, 0)])
    ir = changed("elementwise.mlir", "llvm.store %r, %q {alignment = 16", "llvm.store %r, %p {alignment = 16")
    assert "writes what it may only read: writes bytes 0 to 15 of operand 0" in failure(ir, ELEMENTWISE, 3)


def test_in_place_read_of_what_another_thread_writes():
    # The thread of the last elements reads the first.
    ir = changed("elementwise.mlir", "%v = llvm.load %p {alignment = 4", "%v = llvm.load %further {alignment = 4")
    ir = ir.replace("%v = llvm.load %further", "%first = arith.constant 0 : i64\n      %further = llvm.getelementptr "
                    "%x[%first] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32\n      %v = llvm.load %further")
    library = compile_emulated(ir)
    library.run(*ELEMENTWISE, 3, coords=(0,))
    with pytest.raises(CheckFailed, match="kernel k0, block 2, thread 2: data race: reads byte 0 of operand 0, "
                                          "which block 0, thread 0 wrote with no barrier between"):
        library.run(*ELEMENTWISE, 3, coords=(0,), alias=[(0, 0)])


@pytest.mark.parametrize("checked", [True, False])
def test_divergent_barrier(checked):
    ir = changed("reduce.mlir", "    gpu.barrier\n", "    scf.if %first {\n      gpu.barrier\n    }\n")
    # With checks, the threads that do not wait are told first that they read too early.
    assert ("thread 1: data race: reads byte 0 of shared memory" if checked else
            "kernel k0, block 0, thread 0: divergent barrier: it waits, and thread 1 has ended; at gpu.barrier") in \
        failure(ir, reduce_arrays(), 5, checked=checked)
    ir = changed("reduce.mlir", "    gpu.barrier\n",
                 "    scf.if %first {\n      gpu.barrier\n    } else {\n      gpu.barrier\n    }\n")
    assert "divergent barrier: it waits at gpu.barrier, thread 63 at another barrier" in \
        failure(ir, reduce_arrays(), 5, checked=checked)


@pytest.mark.parametrize("checked", [True, False])
def test_divergent_shuffle(checked):
    shuffle = "    %s16, %v16 = gpu.shuffle xor %mine, %m16, %width : f32\n"
    condition = "    %c7 = arith.constant 7 : i64\n    %low = arith.cmpi slt, %t, %c7 : i64\n"
    some = shuffle.replace("%s16, %v16", "%z, %w")
    ir = changed("reduce.mlir", "%low =", "%low1 =").replace("%low,", "%low1,").replace(
        shuffle, condition + "    %s16 = scf.if %low -> f32 {\n  " + some + "      scf.yield %z : f32\n    } else {\n"
        "      scf.yield %mine : f32\n    }\n")
    assert "divergent shuffle: thread 0 of the same warp is at another one (gpu.shuffle xor)" in \
        failure(ir, reduce_arrays(), 5, checked=checked)


@pytest.mark.parametrize("before,after,message", [
    ("%m16 = arith.constant 16", "%m16 = arith.constant 32", "shuffles by an offset out of [0, 32): 32"),
    ("%width = arith.constant 32", "%width = arith.constant 16", "shuffles over a width other than 32: 16"),
    ("shuffle xor %mine, %m16", "shuffle idx %mine, %m16x", "shuffles from a lane out of [0, 32): -1"),
    ("array<i32: 64, 1, 1>", "array<i32: 40, 1, 1>", "reads lane 16 of a warp of 8 threads"),
])
def test_shuffle_operands(before, after, message):
    ir = changed("reduce.mlir", before, after).replace("    %m16 =", "    %m16x = arith.constant -1 : i32\n    %m16 =")
    assert message in failure(ir, reduce_arrays(), 5)


def test_missing_barrier_after_a_read_fails_warp_greedy_without_checks():
    # Rows one after the other through the same places of shared memory: the next row must wait for the readers of this.
    ir = read("reduce.mlir")
    loop = ir.replace("    %zero = arith.constant",
                      "    %c2 = arith.constant 2 : i64\n    %zero = arith.constant").replace(
        "    %mine =", "    scf.for %again = %c0 to %c2 step %c1 : i64 {\n    %mine =").replace("    gpu.return",
                                                                                                "    }\n    gpu.return")
    inputs, outputs = reduce_arrays()
    assert "data race: writes byte" in failure(loop, (inputs, outputs), 5)
    mended = loop.replace("    }\n    gpu.return", "    gpu.barrier\n    }\n    gpu.return")
    emulate(compile_emulated(mended), inputs, outputs, 5)
