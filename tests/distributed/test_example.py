"""The example that starts a cluster runs, and says what it did."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "scaling" / "dask_cluster.py"


@pytest.mark.slow
@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not with these tests")
def test_the_example_runs():
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "3000"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert "A cluster of 2 worker processes." in done.stdout
    assert "3,000 x 32 points in 1 blocks" in done.stdout
    assert done.stdout.rstrip().endswith("The cluster has stopped.")
