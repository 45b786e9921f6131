"""scikit-learn's kernel names mean scikit-learn's kernels."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from orthodrome.kernels import as_kernel

rng = np.random.default_rng(0)
X, Y = np.abs(rng.normal(size=(30, 4))), np.abs(rng.normal(size=(12, 4)))


@pytest.mark.parametrize("name", sorted(PAIRWISE_KERNEL_FUNCTIONS))
def test_every_name_with_its_defaults(name):
    kernel = as_kernel(name)
    for others in (None, Y):
        expected = pairwise_kernels(X, others, metric=name)
        np.testing.assert_allclose(kernel(X, others), expected, rtol=1e-12, atol=1e-12)


def test_zero_rows_have_cosine_zero_as_in_scikit_learn():
    Z = np.array([[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(as_kernel("cosine")(Z), pairwise_kernels(Z, metric="cosine"))
    np.testing.assert_array_equal(as_kernel("cosine").diag(Z), [0.0, 1.0])
    for scale in (1e-300, 1e-30, 1e300):  # scikit-learn regards short rows as zero
        np.testing.assert_allclose(as_kernel("cosine")(scale * X), as_kernel("cosine")(X))
