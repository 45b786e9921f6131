"""Comparison with other packages: ktch for landmarks, pyRiemann for matrices."""

from pathlib import Path

import numpy as np
import pytest

from laws_shapes import PLAIN, matrices
from orthodrome.spaces import log_euclidean_distance, log_euclidean_mean, read_tps, spd_exp, spd_log

TEXTS = {
    "plain": PLAIN,
    "curves": "LM=1\n1 2\nCURVES=2\nPOINTS=2\n3 4\n5 6\nPOINTS=1\n7 8\nID=a\nSCALE=10\n",
    "in space": "LM3=2\n1 2 3\n4 5 6\nID=a\nLM3=2\n7 8 9\n1 1 1\nID=b\nCOMMENTS=c d\n",
    "negative": "LM=2\n-1 2\n-3 -4\nID=a\n",
}


def close(found, expected, tolerance=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def assert_reads_alike(path):
    """Compare our reader with that of ktch."""
    theirs = pytest.importorskip("ktch.io").read_tps(path)
    theirs = theirs if isinstance(theirs, list) else [theirs]
    ours = read_tps(path, missing="nan", negative="keep")
    np.testing.assert_array_equal(ours.landmarks, [one.landmarks for one in theirs])
    assert ours.ids == [one.specimen_name for one in theirs]
    assert ours.images == [one.image_path for one in theirs]
    # ktch reads COMMENTS, and not the COMMENT of tpsDig
    if "COMMENT=" not in Path(path).read_text(encoding="utf-8"):
        assert ours.comments == [one.comments for one in theirs]
    scales = [np.nan if one.scale is None else one.scale for one in theirs]
    np.testing.assert_array_equal(ours.scales, scales)
    for own, one in zip(ours.curves, theirs, strict=True):
        assert len(own) == len(one.curves or [])
        for curve, expected in zip(own, one.curves or [], strict=True):
            np.testing.assert_array_equal(curve, expected)
    return ours


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_both_readers_agree(tmp_path, text):
    path = tmp_path / "a.tps"
    path.write_bytes(text.encode())
    assert_reads_alike(path)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_logarithms_means_and_distances_are_those_of_pyriemann(d):
    base = pytest.importorskip("pyriemann.geometry.base")
    mean = pytest.importorskip("pyriemann.geometry.mean").mean_logeuclid
    pairs = pytest.importorskip("pyriemann.geometry.distance").pairwise_distance
    A, B = matrices(10, d), matrices(6, d, seed=1)
    weights = np.arange(1.0, 11)
    close(spd_log(A), base.logm(A))
    close(spd_exp(spd_log(A) / 4), base.expm(spd_log(A) / 4))
    close(log_euclidean_mean(A), mean(A), 1e-11)
    close(log_euclidean_mean(A, weights), mean(A, sample_weight=weights), 1e-11)
    close(log_euclidean_distance(A, B), pairs(A, B, metric="logeuclid"))
    close(log_euclidean_distance(A), pairs(A, metric="logeuclid"))
