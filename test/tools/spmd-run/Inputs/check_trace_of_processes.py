"""check_trace_of_processes.py FILE RANKS: every rank has events, and those of one collective end close together on all ranks."""
import json
import sys
from collections import defaultdict

events = json.load(open(sys.argv[1]))["traceEvents"]
timed = [event for event in events if event["ph"] == "X"]
ranks = set(range(int(sys.argv[2])))
assert {event["pid"] for event in timed} == ranks, "a rank has no events"
assert {event["pid"] for event in events if event["name"] == "process_name"} == ranks
assert min(event["ts"] for event in timed) == 0
collectives = defaultdict(list)
for rank in ranks:
    seen = defaultdict(int)  # a unit is gathered several times in a step
    for event in timed:
        if event["pid"] == rank and event["cat"] in ("all_gather", "reduce_scatter", "all_reduce"):
            seen[event["name"]] += 1
            collectives[event["name"], seen[event["name"]]].append(event)
assert collectives
for name, of in collectives.items():
    assert {event["pid"] for event in of} == ranks, name
    # None ends before all have begun.
    assert min(event["ts"] + event["dur"] for event in of) >= max(event["ts"] for event in of) - 1, name
