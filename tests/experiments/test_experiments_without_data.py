"""Without data and without network: each experiment says what it needs, the rest makes its page."""

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from real_data import REPOSITORY

NEEDING_DATA = {
    "kpga/faces": "orl_faces",
    "kpga/clustering": "iris",
    "kha/usps": "usps",
    "kha/clustering": "usps",
    "kha/motion": "cmu_walk",
    "kha/denoising": "cmu_walk",
    "rkpns/variance": "concrete_slump",
    "rkpns/neighborhoods": "fertility",
    "rkpns/classification": "pendigits",
    "rkhs_geo/clustering": "iris",
    "rkhs_geo/classification": "iris",
    "krrc/passiflora": "passiflora",
}


@pytest.fixture
def copied(tmp_path):
    """The scripts and what is published, without any result of an earlier run."""
    return shutil.copytree(
        REPOSITORY / "experiments",
        tmp_path / "experiments",
        ignore=shutil.ignore_patterns(
            "*.csv", "*.md", "*.png", "*.gif", "*.json", "scratch", "__*"
        ),
    )


def run(copied, script, *arguments):
    empty = copied.parent / "empty"
    empty.mkdir(exist_ok=True)
    nowhere = "http://127.0.0.1:9"  # nothing leaves the machine: there is no proxy
    places = dict.fromkeys(("ORTHODROME_DATA", "HOME", "XDG_CACHE_HOME"), str(empty))
    return subprocess.run(
        [sys.executable, str(copied / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | places | {"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere},
    )


@pytest.mark.slow
def test_page_is_built_of_what_needs_no_data(copied):
    out = copied.parent / "out"
    keys = ("rkhs_geo/preimages", "rkhs_geo/classification")
    finished = run(copied, "reproduce.py", "--only", *keys, "--out", str(out))
    assert finished.returncode == 0, finished.stderr
    said = tomllib.loads((copied / "rkhs_geo/published.toml").read_text(encoding="utf-8"))
    text = (out / "index.html").read_text(encoding="utf-8")
    for name in ("preimages", "classification"):
        assert said[name]["title"] in text
    # the last of its places is the heading of its section; others list the contents
    present, missing = text.rsplit(f"{said['classification']['title']} (rkhs_geo/", 1)
    assert "Indicative: " in present
    assert "data:image/png" in present
    assert "Not run. The data set" in missing
    assert "iris.csv" in missing
    assert "Indicative: " not in missing


@pytest.mark.slow
@pytest.mark.parametrize("key", NEEDING_DATA)
def test_a_script_says_which_data_it_needs(copied, key):
    finished = run(copied, f"{key}.py", "--quick")
    assert finished.returncode == 3
    assert NEEDING_DATA[key] in finished.stderr.strip().split("\n")[-1]
    assert "Traceback" not in finished.stderr
    assert not list((copied / key).parent.glob("*.csv"))
