"""Map coordinates back to inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from .._core.checks import check_numbers
from .._core.kinds import is_dask_array
from .._core.types import Floats
from ..kernels import Kernel
from ..preimage.manifold import fixed_point_preimages, has_fixed_point
from ..preimage.ridge import RidgeMap, decode_components


def training_inputs(X_fit: Any, inputs: ArrayLike | None, n: int) -> NDArray[Any]:
    """Return the n training inputs as a dense array.

    They are `X_fit`, or `inputs` if the kernel is precomputed and `X_fit` is None.
    """
    if X_fit is not None:
        if inputs is not None:
            raise ValueError(
                "inputs is only for kernel='precomputed'; this estimator stores its training data. "
                "Omit inputs."
            )
        if is_dask_array(X_fit):
            raise ValueError(
                "inverse_transform needs all training rows in memory, but they are a dask array. "
                "Fit with solver='nystroem', which needs only the anchors."
            )
        return X_fit.toarray() if scipy.sparse.issparse(X_fit) else X_fit
    if inputs is None:
        raise ValueError(
            "inverse_transform with a precomputed kernel needs the inputs. Pass the training data: "
            "inverse_transform(Z, inputs=X_train)."
        )
    array = check_numbers(inputs, "inputs", "inverse_transform", dtype=[np.float64, np.float32])
    if len(array) != n:
        raise ValueError(f"inputs must have one row per training sample, {n}; got {len(array)}.")
    return array


def inputs_of(
    coordinates: NDArray[Any],
    kernel: Kernel,
    training: NDArray[Any],
    *,
    expansion: Callable[[NDArray[Any]], NDArray[Any]],
    features: Callable[[NDArray[Any]], NDArray[Any]],
    embedding: NDArray[Any],
    weights: Floats | None,
    alpha: float,
    fixed_point: bool = True,
    decode: RidgeMap | None = None,
) -> NDArray[Any]:
    """Return inputs whose feature vectors are near the points with given coordinates.

    A fixed-point iteration is used for radial kernels, and for kernels of shapes or matrices that
    are functions of a distance. Ridge regression is used for other kernels.

    Parameters
    ----------
    coordinates : ndarray of shape (n, k)
        Coordinates.
    kernel : Kernel
        The fitted kernel.
    training : ndarray of shape (n_training, ...)
        The training inputs.
    expansion : callable
        Maps the coordinates of n points to an array of shape (n, n_training). Row i holds the
        coefficients of point i as a linear combination of the training feature vectors.
    features : callable
        Maps coordinates to the variables from which ridge regression predicts inputs.
    embedding : ndarray of shape (n_training, k)
        Coordinates of the training inputs.
    weights : ndarray of shape (n_training,) or None
        Weights of the training inputs.
    alpha : float
        The relative penalty of the ridge regression.
    fixed_point : bool, default=True
        Whether the fixed-point iteration may be used.
    decode : RidgeMap, optional
        A fitted ridge regression. Default: fit one to `training`.

    Returns
    -------
    ndarray of shape (n, ...)
        Inputs.
    """
    if fixed_point and has_fixed_point(kernel, training):
        return fixed_point_preimages(
            kernel,
            training,
            lambda rows: image_of(coordinates[rows], expansion, rows.start),
            len(coordinates),
        ).points
    vectors, from_vectors = kernel.as_vectors(training)
    if decode is None:
        ones = np.ones(len(training))
        decode = decode_components(
            features(embedding), vectors, ones if weights is None else weights, alpha
        )
    ridge, dtype = decode, coordinates.dtype
    vectors = image_of(coordinates, lambda Z: ridge(features(Z)).astype(dtype, copy=False))
    return from_vectors(vectors)


def image_of(
    coordinates: NDArray[Any], function: Callable[[NDArray[Any]], NDArray[Any]], first: int = 0
) -> NDArray[Any]:
    """Apply a function to coordinates; raise if the result overflows.

    `first` is the number of the first row in the whole array, for error messages.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        image = function(coordinates)
    finite = np.isfinite(image).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"The coordinates in row {first + int(np.argmin(finite))} of X are so large that "
            f"the result overflows in {image.dtype}. Use smaller coordinates."
        )
    return image
