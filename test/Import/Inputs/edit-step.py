"""edit-step.py IN.step OUT.step STATEMENT: copies a step package, with a Python statement done to its JSON `d`."""
import json
import os
import shutil
import sys

source, target, statement = sys.argv[1:]
shutil.rmtree(target, ignore_errors=True)
shutil.copytree(source, target)
path = os.path.join(target, "step.json")
with open(path) as file:
    d = json.load(file)
exec(statement)
os.chmod(path, 0o644)
with open(path, "w") as file:
    json.dump(d, file)
