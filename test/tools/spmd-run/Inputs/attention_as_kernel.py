"""attention_as_kernel.py FROM TO: the artifact as compilers wrote it before attentions were commands, as kernels."""
import json
import shutil
import sys
from pathlib import Path

ATTENTIONS = ("attention", "attention_backward")


def main(source: Path, target: Path) -> None:
    shutil.copytree(source, target)
    plan, manifest = target / "train_step.plan.json", target / "manifest.json"
    root = json.loads(plan.read_text())
    root["commands"] = [as_kernel(command) if command["op"] in ATTENTIONS else command for command in root["commands"]]
    plan.write_text(json.dumps(root))
    root = json.loads(manifest.read_text())
    for value in root["values"]:
        if value.get("compute") in ATTENTIONS:
            kept = {key: value[key] for key in ("kernel", "args", "of", "bytes")}
            value.clear()
            value.update(compute="kernel", **kept)
    manifest.write_text(json.dumps(root))


def as_kernel(command):
    members = [value if isinstance(value, list) else [value] for value in command.values()]
    arguments = [ref for values in members for ref in values if isinstance(ref, dict) and "buffer" in ref]
    return {"op": "kernel", "args": arguments, **{key: command[key] for key in ("stream", "kernel", "parallel", "grain", "loc")}}


main(*map(Path, sys.argv[1:]))
