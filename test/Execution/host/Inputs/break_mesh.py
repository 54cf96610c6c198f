"""break_mesh.py FROM TO CHANGE: a copy of an artifact for a mesh of two axes whose communicators connect other ranks."""
import json
import shutil
import sys
from pathlib import Path

source, target, change = sys.argv[1:]
shutil.rmtree(target, ignore_errors=True)
shutil.copytree(source, target)
plan_file, manifest_file = Path(target) / "train_step.plan.json", Path(target) / "manifest.json"
plan, manifest = json.loads(plan_file.read_text()), json.loads(manifest_file.read_text())
if change == "twice":
    plan["axes"]["reduce.replicate"] = ["shard"]
elif change == "no-axis":
    plan["axes"]["reduce.replicate"] = ["data"]
elif change == "tensor":
    plan["axes"]["reduce.shard"] = ["tensor"]
elif change == "loss":  # the plan and what it is to compute alike
    plan["axes"]["scalar"] = ["shard"]
    for entry in manifest["values"]:
        if entry.get("compute") == "all_reduce" and not entry["unit"] and "axes" not in entry:
            entry["axes"] = ["shard"]
elif change == "group":  # pieces of one group, gathered along the other axis; the plan and what it is to compute alike
    plan["axes"]["gather.inner"] = ["outer"]
    for entry in manifest["values"]:
        if entry.get("compute") == "all_gather" and entry.get("axes") == ["inner"]:
            entry["axes"] = ["outer"]
elif change == "cut":
    for unit in manifest["units"]:
        unit.pop("axes")
else:
    sys.exit(f"unknown change {change}")

lines = [f"{name} {','.join(axes)}" for name, axes in sorted(plan["axes"].items())]
for command in plan["commands"]:
    if "comm" in command:
        counts = ",".join(map(str, command.get("counts", [command.get("count")])))
        kinds = ",".join(command.get("kinds", [command["kind"]] if "kind" in command else [])) or "-"
        lines.append(f"{command['comm']} {command['op']} {command['dtype']} {counts} {kinds} {command.get('unit') or '-'}")
trace_hash = 0xcbf29ce484222325
for byte in "".join(line + "\n" for line in lines).encode():
    trace_hash = (trace_hash ^ byte) * 0x100000001b3 % 2**64
for program in manifest["programs"]:
    program["trace_hash"] = f"{trace_hash:016x}"
    program.pop("hash", None)
plan_file.write_text(json.dumps(plan))
manifest_file.write_text(json.dumps(manifest))
