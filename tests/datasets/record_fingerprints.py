"""Record the SHA-256 of each set's arrays in registry.json, from the files of an offline folder.

    python tests/datasets/record_fingerprints.py [folder]

The folder is the one that ORTHODROME_DATA names if none is given. A set whose file is not there
keeps what is recorded. Run it when the format of the fingerprint changes or a set is added, and
look at the difference: a changed hash of an unchanged file means other arrays.
"""

import argparse
import json
import os
from pathlib import Path

from orthodrome.datasets import _registry
from orthodrome.datasets._fingerprint import arrays_sha256
from orthodrome.datasets._readers import read_fields

REGISTRY = Path(_registry.__file__).with_name("registry.json")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("ORTHODROME_DATA"))
    folder = parser.parse_args().folder
    if not folder:
        parser.error("name the offline folder, or set ORTHODROME_DATA")
    facts = json.loads(REGISTRY.read_text(encoding="utf-8"))
    for name, entry in _registry.registry().items():
        file = Path(folder) / entry.path
        if not file.is_file():
            print(f"{name}: {file} is absent, left as recorded")
            continue
        found = arrays_sha256(read_fields(file.read_bytes(), entry))
        if found != entry.arrays_sha256:
            print(f"{name}: {entry.arrays_sha256 or 'nothing'} -> {found}")
        facts[name]["arrays_sha256"] = found
    text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    REGISTRY.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
