"""Holds the flight records of a run against its plan: check_flight.py FOLDER ARTIFACT [--ranks=0,1]. Prints a line for each
rank: in which command each stream is, and which collectives run."""
import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("artifact", type=Path)
parser.add_argument("--ranks", help="those that are there; default: all")
arguments = parser.parse_args()

plan = json.loads((arguments.artifact / "train_step.plan.json").read_text())
ranks = json.loads((arguments.artifact / "manifest.json").read_text())["ranks"]
there = list(range(ranks)) if arguments.ranks is None else [int(rank) for rank in arguments.ranks.split(",")]
assert sorted(path.name for path in arguments.folder.iterdir()) == sorted(f"rank-{rank}.json" for rank in there)
errors = set()
for rank in there:
    record = json.loads((arguments.folder / f"rank-{rank}.json").read_text())
    assert (record["format"], record["version"]) == ("spmd-flight-record", 1)
    assert (record["rank"], record["ranks"]) == (rank, ranks)
    errors.add(json.dumps(record["error"], sort_keys=True))
    places = []
    for stream in record["streams"]:
        own = [i for i, command in enumerate(plan["commands"]) if command["stream"] == stream["stream"]]
        assert stream["commands"] == len(own)
        finished, issued = stream["finished"], stream["issued"]
        assert 0 <= finished <= issued <= len(own)
        assert [entry["command"] for entry in stream["last_finished"]] == own[max(0, finished - 8):finished]
        assert [entry["command"] for entry in stream["unfinished"]] == own[finished:min(issued, finished + 8)]
        place = stream["unfinished"][0]["what"] if stream["unfinished"] and stream["is_exact"] else \
            "done" if finished == len(own) else "somewhere"
        places.append(f"{stream['stream']}: {place}")
    for entry in record["collectives"]:
        command = plan["commands"][entry["command"]]
        assert (entry["op"], entry["unit"], entry["communicator"]) == (command["op"], command.get("unit", ""), command["comm"])
        assert entry["state"] in ("finished", "running", "issued", "not issued")
    running = [f"{entry['op']} {entry['command']}" for entry in record["collectives"] if entry["state"] == "running"]
    print(f"rank {rank}: step {record['step']}; {'; '.join(places)}; running: {', '.join(running)}")
assert len(errors) == 1, errors
print("error:", json.loads(errors.pop())["message"])
