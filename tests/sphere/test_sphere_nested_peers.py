"""Principal nested spheres compared with scikit-pns."""

import numpy as np
import pytest

from laws_sphere import rotation, unit
from orthodrome.sphere import nested_spheres

peer = pytest.importorskip("skpns.pns")

# The peer stops when the axis moves by less, in radians.
TOLERANCE = 1e-6


def bent(n, d, seed=0):
    """Three groups on an arc of a small circle of S^d, with noise of falling spread."""
    rng = np.random.default_rng(seed)
    angles = np.array([-0.7, 0.1, 0.8])[rng.integers(3, size=n)] + 0.2 * rng.standard_normal(n)
    points = rng.standard_normal((n, d + 1)) * np.geomspace(0.2, 0.02, d + 1)
    points[:, :3] *= 0.1
    points[:, 0] += np.cos(0.8)
    points[:, 1] += np.sin(0.8) * np.cos(angles)
    points[:, 2] += np.sin(0.8) * np.sin(angles)
    return unit(points) @ rotation(d + 1, seed)


def of_peer(points):
    """Radii up to π/2, axes in the coordinates of the data, and variances, the outermost first."""
    radii, axes, variances = [], [], []
    frame = np.eye(points.shape[1])
    levels = list(peer.pns(points, tol=TOLERANCE, residual="scaled", maxiter=500))
    for axis, radius, _, residuals in levels[:-1]:
        turn = -1.0 if radius > np.pi / 2 else 1.0
        radii.append(min(radius, np.pi - radius))
        axes.append(turn * axis @ frame)
        variances.append(np.mean(residuals**2))
        # of a great subsphere, where its coordinates lie in those of the level
        frame = peer.reconstruct(np.eye(len(axis) - 1), axis, np.pi / 2) @ frame
    return np.array(radii), np.array(axes), np.array(variances)


@pytest.mark.parametrize(("d", "seed"), [(2, 0), (5, 1), (11, 0)])
def test_radii_axes_and_variances_equal_scikit_pns(d, seed):
    points = bent(150, d, seed)
    chain = nested_spheres(points, sphere="small", negligible=0.0)
    radii, axes, variances = of_peer(points)
    assert radii.min() < 1.3  # small spheres, not only great ones
    np.testing.assert_allclose(chain.radii, radii, atol=3e-4)
    np.testing.assert_allclose(np.sum(chain.axes * axes, axis=1), 1, atol=1e-7)
    ours = np.mean(chain.scores(points)[:, :0:-1] ** 2, axis=0)
    np.testing.assert_allclose(ours, variances, rtol=1e-5)
