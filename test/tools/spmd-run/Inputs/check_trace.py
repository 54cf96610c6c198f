"""Compares a trace of spmd-run --profile with the artifact's plan."""
import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("trace", type=Path)
parser.add_argument("artifact", type=Path)
parser.add_argument("--steps", type=int)
arguments = parser.parse_args()
plan = json.loads((arguments.artifact / "train_step.plan.json").read_text())
manifest = json.loads((arguments.artifact / "manifest.json").read_text())
ranks = manifest["ranks"]
required = {entry["kernel"]: entry["required_bytes"] for entry in manifest.get("kernel_table", [])}
events = json.loads(arguments.trace.read_text())["traceEvents"]
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert set(names) == {(rank, stream) for rank in range(ranks) for stream in range(len(plan["streams"]))}
assert all(name == plan["streams"][stream] for (_, stream), name in names.items())
spans = [e for e in events if e["ph"] == "X"]
used = 0
for track in names:
    ops = [c for c in plan["commands"] if c["stream"] == names[track]] * arguments.steps
    mine = [e for e in spans if (e["pid"], e["tid"]) == track]
    assert [e["cat"] for e in mine] == [c["op"] for c in ops], track
    assert [e["args"]["step"] for e in mine] == sorted(e["args"]["step"] for e in mine)
    for event, command in zip(mine, ops):
        if command.get("kernel") in required:
            assert event["args"]["bytes"] == required[command["kernel"]], (event, required[command["kernel"]])
    for before, after in zip(mine, mine[1:]):
        assert before["dur"] >= 0 and after["ts"] >= before["ts"] + before["dur"] - 2e-3, (before, after)
    used += bool(mine)
print(f"{len(spans)} events on {used} tracks of {ranks} ranks")
