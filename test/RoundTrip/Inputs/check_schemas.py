"""check_schemas.py ARTIFACT...: compares manifests and plans with docs/manifest.schema.json and docs/plan.schema.json."""
from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Python"))
from json_schema import violations  # noqa: E402


def main(folders: list[str]) -> int:
    files = differences = 0
    for folder in map(Path, folders):
        manifest = folder / "manifest.json"
        plans = [folder / program["plan"] for program in json.loads(manifest.read_text())["programs"]]
        for path, name in [(manifest, "manifest.schema.json"), *((plan, "plan.schema.json") for plan in plans)]:
            schema = json.loads((ROOT / "docs" / name).read_text())
            files += 1
            for problem in violations(json.loads(path.read_text()), schema, schema):
                differences += 1
                print(f"{path.parent.name}: {name}: {problem}")
    print(f"{files} files, {differences} differences")
    return differences != 0


sys.exit(main(sys.argv[1:]))
