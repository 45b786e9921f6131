"""Without data and without network: each experiment says what it needs, the rest makes its page."""

import os
import shutil
import subprocess
import sys

import pytest

from real_data import REPOSITORY

NEEDING_DATA = {
    "kpga/sphere": "wine",
    "kpga/faces": "orl_faces",
    "kpga/clustering": "iris",
    "kha/usps": "usps",
    "kha/patches": "camera_256",
    "kha/clustering": "usps",
    "kha/motion": "cmu_walk",
    "kha/denoising": "cmu_walk",
    "rkpns/neighborhoods": "fertility",
    "rkpns/classification": "pendigits",
    "rkhs_geo/clustering": "iris",
    "rkhs_geo/classification": "iris",
    "krrc/passiflora": "passiflora",
}


@pytest.mark.slow
def test_page_is_built_of_what_needs_no_data(tmp_path):
    copied = shutil.copytree(
        REPOSITORY / "experiments",
        tmp_path / "experiments",
        ignore=shutil.ignore_patterns("*.json", "*.png", "*.gif", "scratch", "__*"),
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    nowhere = "http://127.0.0.1:9"  # nothing leaves the machine: there is no proxy
    places = dict.fromkeys(("ORTHODROME_DATA", "HOME", "XDG_CACHE_HOME"), str(empty))
    keys = [key for key in NEEDING_DATA if key not in ("kpga/sphere", "kha/patches")]
    finished = subprocess.run(
        [
            sys.executable,
            str(copied / "reproduce.py"),
            "--only",
            *keys,
            "rkhs_geo/preimages",
            "--out",
            str(tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | places | {"HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere},
    )
    assert finished.returncode == 0, finished.stderr
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert "data:image/png" in text
    assert text.count("Not run. ") == len(keys)
    for key in keys:
        assert NEEDING_DATA[key] in text
