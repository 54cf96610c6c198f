"""What the kernels of whole steps do to memory, counted in their PTX and by ptxas: 16 bytes at a time wherever rows
allow it, enough loads in flight, nothing local, nothing spilled. Without ptxas a script stands in for it, and only the
PTX is looked at."""
import json
import os
import pathlib
import subprocess
import sys

import pytest
import torch

import spmd

SOURCE = pathlib.Path(os.environ["SPMD_SOURCE"])
sys.path[:0] = [str(SOURCE / "test" / "Models"), str(pathlib.Path(__file__).parent)]

import own  # noqa: E402
import ptx_accesses  # noqa: E402

#: Below this nothing is worth a wide access: row statistics, scalars, counters.
SMALL = 4096
#: Kernels that move less take as long as their launch.
TINY = 64 << 10
#: Bytes that an SM must have asked for to keep an H100's memory busy: 3.35 TB/s over 132 SMs, for 600 ns.
ENOUGH_IN_FLIGHT = 15_000
#: Of what stays narrower than 16 bytes, the reason.
NARROW = {
    ("attention", "st"): "a thread has two columns of the output's tile",
    ("attention_backward", "st"): "a thread has two columns of the gradients' tiles",
}


def is_tile(entry, launch):
    """Dims are turned in shared memory: a warp reads and writes 32 neighbours there, whatever the width of one thread's
    access."""
    return entry["kind"] == "elementwise" and launch["dynamic_shared_bytes"] > 0


def resident_threads(launch):
    """Threads on an SM at once: 65,536 registers, given out by 256 to warps; 228 KiB of shared memory, 1 KiB of it for
    each block."""
    threads = launch["threads"]
    registers = -(-launch["registers"] * 32 // 256) * 256 * -(-threads // 32)
    shared = launch["static_shared_bytes"] + launch["dynamic_shared_bytes"] + 1024
    return threads * min(32, 2048 // threads, 65536 // registers, (228 << 10) // shared)


def capture_llama(path):
    torch.manual_seed(5)
    model = own.Llama(fused=True, vocabulary=128, width=64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    tokens = torch.randint(0, 128, (4, 64))

    return spmd.capture(own.step, model, optimizer, tokens, tokens.roll(-1, 1)).save(path)


def compile_cuda(step, path, tmp_path, *options):
    ptxas = os.environ.get("SPMD_PTXAS")
    toolkit = pathlib.Path(ptxas).parents[1] if ptxas else tmp_path / "cuda"
    if not ptxas:
        (toolkit / "bin").mkdir(parents=True)
        (toolkit / "bin" / "ptxas").symlink_to(pathlib.Path(__file__).parent / "Inputs" / "ptxas")
    subprocess.run([pathlib.Path(os.environ["SPMD_BIN"]) / "spmd-compile", step, "-o", path, "--target=cuda:sm_90",
                    f"--cuda={toolkit}", "--kernel-cache=none", "--quiet", *options], check=True)
    return bool(ptxas)


@pytest.mark.parametrize("model, odd_rows", [("gpt2-nano", 512 * 96 * 4), ("llama-nano", None)])
def test_accesses(model, odd_rows, tmp_path):
    """`odd_rows`: bytes of a matrix whose rows are no multiple of 16 bytes, though they begin at one: 512 rows of logits
    over a vocabulary of 93, 96 elements apart."""
    if model == "gpt2-nano":
        step, options = SOURCE / "examples" / "gpt2-nano.step", ["--ranks=2", "--policy=class:Block"]
    else:
        step, options = capture_llama(tmp_path / "llama.step"), ["--ranks=2", "--policy=class:LlamaBlock"]
    artifact = tmp_path / "artifact.spmd"
    has_ptxas = compile_cuda(step, artifact, tmp_path, *options)
    manifest = json.loads((artifact / "manifest.json").read_text())
    table = {entry["kernel"]: entry for entry in manifest["kernel_table"]}
    launches = {launch["kernel"]: launch for launch in manifest["launches"]}
    arguments = ptx_accesses.argument_bytes(artifact)
    kernels = ptx_accesses.read_ptx((artifact / "kernels.sm_90.ptx").read_text())
    assert set(kernels) == set(table) == set(launches)

    problems, per_sm, wide, narrow = [], [], 0, 0
    for name, accesses in kernels.items():
        kind, sizes = table[name]["kind"], arguments[name]
        if accesses.local:
            problems.append(f"{name} ({kind}): {accesses.local} accesses to local memory")
        has_odd_rows = odd_rows in sizes
        for pointer, size in enumerate(sizes):
            for access in ("ld", "st"):
                widths = accesses.of(access, pointer)
                if not widths or size < max(SMALL, max(sizes) / 8):
                    continue
                wide += 16 in widths
                narrow += 16 not in widths
                if 16 not in widths and not has_odd_rows and (kind, access) not in NARROW and not is_tile(
                        table[name], launches[name]):
                    problems.append(f"{name} ({kind}): {access} of pointer {pointer}, {size} bytes, is {widths} bytes "
                                    "at a time")
        in_flight = accesses.in_flight * resident_threads(launches[name])
        if table[name]["required_bytes"] >= TINY:
            per_sm.append(in_flight)
            if in_flight < ENOUGH_IN_FLIGHT:
                problems.append(f"{name} ({kind}): {accesses.in_flight} bytes of loads in flight per thread, "
                                f"{in_flight} per SM")
        if has_ptxas and launches[name]["local_bytes"] + launches[name]["spill_store_bytes"]:
            problems.append(f"{name} ({kind}): {launches[name]['spill_store_bytes']} bytes spilled, "
                            f"{launches[name]['local_bytes']} local")
    per_sm.sort()
    print(f"counts: {model}, sm_90: {len(kernels)} kernels; {wide} operands and results moved 16 bytes at a time, "
          f"{narrow} fewer; KB of loads in flight per SM {per_sm[0] // 1000} to {per_sm[-1] // 1000}, median "
          f"{per_sm[len(per_sm) // 2] // 1000}; "
          + (f"{sum(k['spill_store_bytes'] for k in launches.values())} bytes spilled, at most "
             f"{max(k['registers'] for k in launches.values())} registers" if has_ptxas
             else "spills not known without ptxas"))
    assert not problems, "\n".join(problems)
