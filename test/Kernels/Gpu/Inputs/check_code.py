"""check_code.py ARTIFACT PTXAS: what the manifest says of each kernel, against ptxas run again on the PTX that was
shipped."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def assemble(ptxas: str, ptx: pathlib.Path, chip: str) -> dict[str, dict[str, int]]:
    """What `ptxas -v` says of each kernel."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as output:
        done = subprocess.run([ptxas, "-v", f"-arch={chip}", "-o", output.name, ptx], capture_output=True,
                              text=True, check=True)
    told = {}
    for text in (done.stdout + done.stderr).split("Compiling entry function ")[1:]:
        def number(pattern):
            found = re.search(pattern, text)
            return int(found[1]) if found else 0
        told[text.split("'")[1]] = {
            "registers": number(r"Used (\d+) registers"), "barriers": number(r"used (\d+) barriers"),
            "static_shared_bytes": number(r"(\d+) bytes smem"), "local_bytes": number(r"(\d+) bytes stack frame"),
            "spill_store_bytes": number(r"(\d+) bytes spill stores"),
            "spill_load_bytes": number(r"(\d+) bytes spill loads")}
    return told


def main() -> None:
    folder, ptxas = pathlib.Path(sys.argv[1]), sys.argv[2]
    manifest = json.loads((folder / "manifest.json").read_text())
    kinds = {entry["kernel"]: entry["kind"] for entry in manifest["kernel_table"]}
    problems = []
    for file in manifest["kernels"]:
        chip = file["chip"]
        code = (folder / file["file"]).read_bytes()
        launches = {l["kernel"]: l for l in manifest["launches"] if l["chip"] == chip}
        assert set(launches) == set(kinds), "every kernel of the table has a launch, and no other"
        told = assemble(ptxas, folder / file["ptx"], chip)
        assert set(told) == set(kinds), "every kernel of the table is in the PTX, and no other"
        bodies = dict(re.findall(r"\.visible \.entry (\w+)\((.*?)\n}\n", (folder / file["ptx"]).read_text(), re.S))
        print(f"{chip}: {len(told)} kernels")
        for name, launch in launches.items():
            for key, value in told[name].items():
                if launch[key] != value:
                    problems.append(f"{chip} {name}: manifest has {key} {launch[key]}, ptxas says {value}")
            cubin = code[launch["offset"]:launch["offset"] + launch["bytes"]]
            if cubin[:4] != b"\x7fELF" or f".text.{name}\0".encode() not in cubin:
                problems.append(f"{chip} {name}: no cubin of it at offset {launch['offset']}")
            body = bodies[name]
            accesses = {kind: (len(re.findall(rf"\b{kind}\.global\S*\.v[24]\.", body)),
                               len(re.findall(rf"\b{kind}\.global", body)))
                        for kind in ("ld", "st")}
            maxntid = int(re.search(r"\.maxntid (\d+)", body)[1])
            if maxntid != launch["threads"]:
                problems.append(f"{chip} {name}: .maxntid {maxntid}, but {launch['threads']} threads are launched")
            print(f"  {name:4} {kinds[name]:24} {launch['registers']:3} registers, {launch['local_bytes']} bytes "
                  f"local; vector of all loads {accesses['ld'][0]}/{accesses['ld'][1]}, stores "
                  f"{accesses['st'][0]}/{accesses['st'][1]}")
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
