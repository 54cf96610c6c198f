"""The kernels of make_artifact.py for GPUs: the same C, compiled for the GPU and, for the stand-ins, for the CPU.

A block has one thread, which does one iteration. The archive holds one cubin with all kernels; beside it lies what runs
where the stand-ins launch them, which has the descriptors that the emulator's objects have
(lib/Kernels/Emulate/Runtime/Descriptors.h), for the bytes that each launch reads and writes.
"""
import os
import subprocess
import tempfile

CHIP = "sm_90"
CLANG = ["-O2", "-ffp-contract=off", "-fno-math-errno", "-ffreestanding", "-nostdlib", "-x", "c", "-"]

# A kernel takes its operands, then its results, where one that is both is given twice; the C takes each once.
WRAPPER_GPU = r"""
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define EXPORT __attribute__((device_kernel)) void
"""
WRAPPER_CPU = r"""
int32_t spmd_emulation_configure(int32_t checked, int32_t schedule, uint64_t seed) { return 0; }
const char *spmd_emulation_error(void) { return 0; }
struct Memory { int64_t bytes; const void *table; };
struct Kernel {
  const char *name; void *plain, *checked;
  int64_t blockSize, gridSize, sharedBytes, numOperands, numArguments, numMemories, granule;
  const struct Memory *memories; const void *ops; int64_t launches, blocks;
};
"""


def split(refs):
    """References by operands, then results, and where the C finds each of its own among them."""
    reads = [ref for ref in refs if "r" in ref["access"]]
    writes = [ref for ref in refs if "w" in ref["access"]]
    order = [{**ref, "access": "r"} for ref in reads] + [{**ref, "access": "w"} for ref in writes]
    place = [len(reads) + writes.index(ref) if "w" in ref["access"] else reads.index(ref) for ref in refs]
    return order, place


def launched(plan):
    """The kernels of a plan: {name: the command that launches it}."""
    return {command["kernel"]: command for command in plan.commands if command["op"] == "kernel"}


def for_gpu(source, plan):
    text = source + WRAPPER_GPU
    for name, command in launched(plan).items():
        names = [f"a{i}" for i in range(len(command["args"]))]
        text += (f"EXPORT {name}({''.join(f'void *{a}, ' for a in names)}int64_t coord) {{\n"
                 f"  void *args[] = {{{', '.join(names[at] for at in plan.places[name])}}};\n"
                 f"  c_{name}(args, &coord, BLOCK, BLOCK + 1);\n}}\n")
    return text


def for_standins(source, plan):
    text, entries = source + WRAPPER_CPU, ""
    for name, command in launched(plan).items():
        memories = ", ".join(f"{{{ref['bytes']}, 0}}" for ref in command["args"])
        count, operands = len(command["args"]), sum(ref["access"] == "r" for ref in command["args"])
        places = ", ".join(f"all[{at}]" for at in plan.places[name])
        text += (f"static const struct Memory memories_{name}[] = {{{memories}}};\n"
                 f"void {name}(void *const *all, const int64_t *coords, int64_t begin, int64_t end) {{\n"
                 f"  void *args[] = {{{places}}};\n  c_{name}(args, coords, begin, end);\n}}\n")
        entries += (f'  {{"{name}", 0, 0, 1, {command["parallel"]}, 0, {operands}, {count}, {count}, 1, '
                    f"memories_{name}, 0, 0, 0}},\n")
    return text + f'__attribute__((section("spmd_kernels"), used)) struct Kernel kernels[] = {{\n{entries}}};\n'


def member(name, data):
    """Of an archive (ar(5)), with what it is filled up to an even number of bytes with."""
    head = f"{name + '/':16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n"
    return head.encode() + data + b"\n" * (len(data) % 2)


def make_files(folder, source, plan, table, cc, ptxas):
    """Writes archive and stand-ins' object; gives the manifest's `kernels` and `launches`."""
    archive = f"kernels.{CHIP}.a"
    with tempfile.TemporaryDirectory() as work:
        ptx, cubin = os.path.join(work, "kernels.ptx"), os.path.join(work, "kernels.cubin")
        subprocess.run([cc, "--target=nvptx64-nvidia-cuda", f"-march={CHIP}", "-S", *CLANG, "-o", ptx],
                       input=for_gpu(source, plan).encode(), check=True)
        subprocess.run([ptxas, f"-arch={CHIP}", ptx, "-o", cubin], check=True)
        with open(cubin, "rb") as file:
            code = file.read()
    launches = [{"kernel": name, "chip": CHIP, "blocks": command["parallel"], "threads": 1, "dynamic_shared_bytes": 0,
                 "pointers": len(command["args"]), "coordinates": 1, "moved_bytes": 0, "static_shared_bytes": 0,
                 "registers": 32, "local_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0, "barriers": 0,
                 "offset": 68, "bytes": len(code)} for name, command in launched(plan).items()]
    keys = ("kernel", "blocks", "threads", "dynamic_shared_bytes", "pointers", "coordinates", "offset", "bytes")
    lines = "".join("! " + " ".join(str(launch[key]) for key in keys) + "\n" for launch in launches)
    with open(os.path.join(folder, archive), "wb") as file:
        file.write(b"!<arch>\n" + member("kernels.cubin", code) + member("kernel_table", (table + lines).encode()))
    subprocess.run([cc, "-march=x86-64-v3", "-fPIC", "-shared", *CLANG, "-o",
                    os.path.join(folder, f"kernels.{CHIP}.emulated.so")],
                   input=for_standins(source, plan).encode(), check=True)
    return [{"chip": CHIP, "file": archive}], launches
