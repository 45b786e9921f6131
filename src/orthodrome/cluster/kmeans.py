"""k-means in feature space and on its sphere."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import KW_ONLY, replace
from typing import Any, Self

import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

from .._core.checks import check_choice
from .._core.parameters import choice, integer
from .._core.progress import tracked
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats
from ..base import (
    SOLVER_PARAMETERS,
    AnchorAttributes,
    KernelEstimator,
    canonical_of,
    expand_to_all_rows,
    in_given_order,
    last_fit_kept,
    nystroem_or,
    rows_of,
    with_parameters,
)
from ..gram.factory import prepared_points
from ..kernels import Kernel, Precomputed
from ..kernels.manifolds import has_profile, profile_of
from ..plan import plan_fit
from ..preimage.manifold import in_form_of
from ..rows import ArrayRows, DaskRows, Rows, as_rows
from ..sphere.lloyd import SEEDINGS
from . import centers as geometries
from .base import MAX_N_INIT, ClusterFitMixin, check_n_clusters


def _has_partial_fit(estimator: Any) -> bool:
    """Return True if the parameters allow coordinates; raise an AttributeError otherwise."""
    own = getattr(estimator._kernel_object(), "has_coordinates", False)
    own = own and estimator.n_anchors is None and estimator.solver == "auto"
    if own and getattr(estimator, "centers", "intrinsic") == "intrinsic":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has partial_fit only with a linear or cosine kernel, with "
        "solver='auto' and no n_anchors, and on the sphere with centers='intrinsic'."
    )


class _Attributes(AnchorAttributes):
    cluster_centers_: NDArray[Any]
    _centers_are_inputs_: bool
    _masses_: Floats | None = None
    _separation_: float = math.inf


@with_parameters
class CenterClustering(
    _Attributes,
    ClusterFitMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    KernelEstimator,
):
    """Base class of k-means in different geometries.

    A subclass defines the geometry, and the map from blocks of rows to distances.
    """

    n_clusters: int = 8
    kernel: Any = "gaussian"
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int = 10
    max_iter: int = 300
    solver: Any = "auto"
    n_anchors: int | None = None
    storage: str = "auto"
    random_state: Any = None

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_clusters": integer(),
        "n_init": integer(maximum=MAX_N_INIT),
        "max_iter": integer(),
        "solver": nystroem_or("exact"),
    }

    @abstractmethod
    def _geometry(self) -> Any:
        """Return the geometry, a class of :mod:`.centers`."""

    @abstractmethod
    def _distances(self, *, order_only: bool = False) -> Any:
        """Return the map from blocks of rows to squared distances from the centers.

        If `order_only`, a monotone function of them may be returned.
        """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        owner, names = type(self).__name__, (*SEEDINGS, *self._geometry().extra_inits)
        if isinstance(self.init, str):
            check_choice(self.init, names, "init", owner)
        elif isinstance(self._kernel_object(), Precomputed):
            raise ValueError(
                f"init of {owner} must be one of {', '.join(map(repr, names))} if the kernel is "
                "precomputed, because there are no inputs."
            )

    def _check_rows(self, kernel: Kernel, rows: Rows) -> None:
        """Raise if the kernel or its data are not supported."""

    def _fit(self, X: Any, sample_weight: ArrayLike | None, *, partial: bool = False) -> None:
        owner, kernel, geometry = type(self).__name__, self._kernel_object(), self._geometry()
        rows = as_rows(X, kernel, self).weighted(sample_weight, owner)
        self._check_rows(kernel, rows)
        in_blocks = geometries.reads_blocks(rows, kernel, self.memory_budget)
        canonical = in_given_order(rows) if in_blocks else canonical_of(rows, kernel)
        k = check_n_clusters(canonical, self.n_clusters, owner)
        request: dict[str, Any] = {"n_components": k, "eigenpairs": False}
        if not geometry.needs_gram:
            request |= {"solver": "dense", "storage": "recompute"}
        elif isinstance(self.solver, str) and self.solver == "exact":
            request["solver"] = "dense"
        if partial:
            plan = geometries.plan_of_coordinates(self, rows, k)
        else:
            plan = plan_fit(self, rows_of(canonical, kernel), kernel, **request)
        if in_blocks and plan.name == "coordinates" and self.storage == "auto":
            plan = replace(plan, storage="recompute")
        reseed = getattr(self, "reseed_empty", True)
        start = geometries.Start(
            self.n_clusters, self.init, reseed, self.n_init, self.random_state, owner
        )
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            attributes, labels = geometries.fit_centers(
                canonical, kernel, geometry, plan, start, self.max_iter, progress
            )
        self._masses_ = None
        self.__dict__.update(attributes)
        geometries.warn_if_close(self._separation_, rows.dtype, owner)
        nearest = self._distances(order_only=True).nearest
        labels = expand_to_all_rows(labels, canonical, lambda new: nearest(rows.take(new), 0))
        self.labels_ = rows.as_dask(labels) if isinstance(rows, DaskRows) else labels

    @available_if(_has_partial_fit)
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the centres with a batch of rows, as mini-batch k-means does.

        This method exists for linear and cosine kernels with ``solver="auto"`` and no `n_anchors`;
        on the sphere it needs intrinsic centres. The first batch is fitted as by :meth:`fit`; it
        should be large enough to contain all clusters. Every later batch moves each centre towards
        the mean of its new points, by the fraction of these among all its points so far. `labels_`
        and `inertia_` are those of the last batch. After a :meth:`fit` with coordinates, the
        centres are updated; after another one, an error is raised.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of a batch.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        self
            The estimator.
        """
        owner = type(self).__name__
        with last_fit_kept(self):
            self._check_parameters()
            if not hasattr(self, "cluster_centers_"):
                self._fit(X, sample_weight, partial=True)
            elif self._masses_ is None:
                raise ValueError(
                    f"partial_fit of {owner} cannot continue this fit, whose centres are not "
                    "stored as coordinates (few rows for the number of columns, anchors, or "
                    "another kernel). Pass the first rows to partial_fit of a new estimator."
                )
            else:
                rows = self._new_rows(X)
                batch = rows.weighted(sample_weight, owner)
                with single_threaded_blas():
                    self.__dict__.update(geometries.updated_centers(self, batch))
                geometries.warn_if_close(self._separation_, rows.dtype, owner)
                self.labels_ = rows.map(self._distances(order_only=True).nearest)
        return self

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the index of the nearest centre for each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples). The unknown k(x, x) is then replaced by the mean
            of the training diagonal. Distances in feature space depend on it, labels do not.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        rows = self._new_rows(X)
        geometries.warn_if_close(self._separation_, rows.dtype, type(self).__name__)
        return rows.map(self._distances(order_only=True).nearest)

    def transform(self, X: Data) -> NDArray[Any]:
        """Return the distance of each point from each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Distances.
        """
        rows = self._new_rows(X)
        return rows.map(self._distances().distances)

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return minus the weighted sum of squared distances from the nearest centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        float
            At most 0; ``-inertia_`` for the training data.
        """
        rows = self._new_rows(X, sample_weight)
        return -float(rows.reduce(self._distances().inertia)[0])

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class KernelKMeans(CenterClustering):
    r"""k-means in the feature space of any kernel.

    .. math:: \min \sum_c \sum_{i \in c} w_i \|\Phi(x_i) - m_c\|^2, \qquad
        m_c = \frac{\sum_{i \in c} w_i \Phi(x_i)}{\sum_{i \in c} w_i}

    Each centre is a linear combination of the points. An iteration computes one product of the
    Gram matrix with a matrix of memberships, for all clusters and all runs together. With the
    linear kernel this is ordinary k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block.
    init : {"k-means++", "farthest-first", "random"} or array-like of shape (n_clusters, \
n_features), default="k-means++"
        Initial centres. "k-means++": points drawn with probability proportional to the squared
        distance from the previous ones in feature space. "farthest-first": points farthest from the
        previous ones. "random": random points. An array gives the centres themselves.
    n_init : int, default=10
        Number of runs from different starts; the run with the smallest inertia is kept. With
        coordinates and many rows, the runs use a sample (see the notes).
    max_iter : int, default=300
        Maximum number of iterations of a run.
    solver : {"auto", "exact", "nystroem"} or Nystroem, default="auto"
        The representation of the points: the Gram matrix ("exact"), or features from a few anchors
        ("nystroem"), which are faster for many points and store only the anchors (options:
        :class:`orthodrome.eigen.Nystroem`). "auto" uses features if `n_anchors` is given, and
        beyond 200,000 distinct rows.
    n_anchors : int, optional
        For nystroem: maximum number of anchors. Default: 512, or twice the number of clusters
        if that is more.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. If it does not fit, tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix, or the features of nystroem, are stored; see
        :func:`orthodrome.gram.gram_operator`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initial centres and the anchors. An integer makes results reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training point. Clusters are numbered in the order of their
        first members in the sorted data, so the numbers depend neither on the seed nor on the order
        of rows.
    cluster_centers_ : ndarray of shape (n_clusters, n_fit)
        Coefficients of each centre over the rows of `X_fit_`. There are fewer clusters, and a
        warning, if the data have fewer distinct points than `n_clusters`.
    inertia_ : float
        Weighted sum of squared distances from the centres in feature space.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted; None for a precomputed kernel. With
        nystroem, the anchors. With a linear or cosine kernel and many more rows than columns, the
        standard basis of the input space; `cluster_centers_` are then points of that space.
    n_anchors_ : int or None
        With nystroem, the number of anchors.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether no label changed in the last iteration.
    history_ : list of dict
        Inertia and the number of changed labels in each iteration of the best run; with nystroem
        also `trace_error`, the fraction of the trace that the anchors leave out.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    HypersphericalKMeans : k-means with geodesic distances on the sphere.
    KernelSpectralClustering : Spectral relaxation of weighted kernel k-means.

    Notes
    -----
    Equal rows are first merged, adding their weights, and sorted. So a weight of 2 gives exactly
    the same result as repeating the row, and the order of rows does not matter.

    With nystroem the points are the rows of F, :math:`K \approx FF^\top`, not normalised. The
    centres lie in the span of the anchors. `inertia_`, :meth:`transform` and :meth:`score` measure
    distances from the exact feature vectors. With as many anchors as the rank of the Gram matrix,
    the result is exact.

    With a linear or cosine kernel and many more rows than columns, rows are their own coordinates,
    and an iteration is one pass over them with one matrix product; with nystroem, features take
    their place. Beyond 64 rows per cluster, and 4096 rows, the runs use a sample of that size. The
    best one is improved there, as long as merging two clusters and splitting another one helps.
    Then it continues with all rows. A memory map that exceeds a quarter of `memory_budget` is read
    in blocks, without merging or sorting rows. Clusters are then numbered in the order of the given
    rows, as for dask arrays and batches. :meth:`partial_fit` updates the centres with batches.

    If the kernel is not positive definite, squared distances may be negative and the iteration may
    not converge; it then stops at `max_iter`, with a warning.

    References
    ----------
    Schölkopf, Smola and Müller, "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation 10, 1998; Dhillon, Guan and Kulis, "Kernel k-means: spectral clustering and
    normalized cuts", KDD 2004.

    Examples
    --------
    >>> from orthodrome import KernelKMeans
    >>> X = [[0.0], [0.1], [0.2], [1.2], [5.0], [5.1], [5.2]]
    >>> model = KernelKMeans(2, kernel="laplacian", random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.cluster_centers_.round(2)  # coefficients over the points
    array([[0.25, 0.25, 0.25, 0.25, 0.  , 0.  , 0.  ],
           [0.  , 0.  , 0.  , 0.  , 0.33, 0.33, 0.33]])
    """

    def _geometry(self) -> type[geometries.Flat]:
        return geometries.Flat

    def _distances(self, *, order_only: bool = False) -> geometries.FlatDistances:
        return geometries.FlatDistances(
            self.kernel_,
            prepared_points(self.kernel_, self.X_fit_),
            self._columns_,
            self.cluster_centers_,
            self._center_squares_,
            self._mean_diagonal_,
        )


@with_parameters
class HypersphericalKMeans(CenterClustering):
    r"""k-means on the sphere in feature space, with distances along great circles.

    .. math:: \min \sum_c \sum_{i \in c} w_i \arccos^2 \langle \Phi(x_i), \mu_c \rangle

    A kernel with k(x, x) = 1 maps the data to a sphere. There are two kinds of centres μ_c:

    ``"preimage"``
        inputs, μ_c = Φ(x̃_c), each a stationary point of the objective of its cluster (Courty,
        Burger and Marteau, Algorithm 2); for radial kernels, and for Gaussian kernels of shapes and
        matrices. No Gram matrix is needed. If the kernel decreases with the distance, the clusters
        are Voronoi cells of the inputs, as in k-means, and σ sets the robustness: a large σ gives
        k-means; with a small σ, a centre moves to the densest part of its cluster.
    ``"intrinsic"``
        Karcher means, points of the sphere that need not have a pre-image; for every kernel with
        constant k(x, x). Clusters may have any shape, as with :class:`KernelKMeans`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), or, for intrinsic centres,
        ``"precomputed"`` or a ``callable(X, Y)``. k(x, x) must be the same for all data, which
        ``Normalized(kernel)`` ensures; intrinsic centres allow values other than 1.
    centers : {"preimage", "intrinsic"}, default="preimage"
        Kind of centres.
    init : {"k-means++", "farthest-first", "random", "bounding-box"} or array-like of shape \
(n_clusters, n_features), default="k-means++"
        Initial centres. "k-means++": points drawn with probability proportional to the squared
        geodesic distance from the previous ones. "farthest-first": points farthest from the
        previous ones. "random": random points. "bounding-box": points drawn uniformly from the
        bounding box of the data (for pre-images of vectors; this reproduces the figures of the
        paper). An array gives the centres themselves.
    reseed_empty : bool, default=True
        Whether a cluster that loses all its points restarts at another cluster's point, the one
        that is farthest from the centre of its cluster. With False, as in the paper's
        Algorithm 2, a pre-image centre stays where it is, and clusters that end empty are dropped,
        with a warning.
    n_init : int, default=10
        Number of runs from different starts; the run with the smallest inertia is kept. With
        coordinates and many rows, the runs use a sample (see the notes).
    max_iter : int, default=300
        Maximum number of iterations of a run.
    solver : {"auto", "exact", "nystroem"} or Nystroem, default="auto"
        The representation of the points for intrinsic centres: the Gram matrix ("exact"), or
        features from a few anchors ("nystroem"), which store only the anchors (options:
        :class:`orthodrome.eigen.Nystroem`). "auto" uses features if `n_anchors` is given, and
        beyond 200,000 distinct rows. Pre-images need neither.
    n_anchors : int, optional
        For nystroem: maximum number of anchors. Default: 512, or twice the number of clusters
        if that is more.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix of intrinsic centres. If it does not fit, tiles are recomputed;
        results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix, or the features of nystroem, are stored; see
        :func:`orthodrome.gram.gram_operator`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initial centres and the anchors. An integer makes results reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training point. Clusters are numbered in the order of their
        first members in the sorted data, so the numbers depend neither on the seed nor on the order
        of rows.
    cluster_centers_ : ndarray of shape (n_clusters, n_features) or (n_clusters, n_fit)
        The inputs x̃_c, in the form of the training data (landmarks of centroid size 1, or
        matrices); for intrinsic centres the coefficients of each mean over the normalised rows of
        `X_fit_`. There are fewer clusters, and a warning, if the data have fewer distinct points
        than `n_clusters`.
    inertia_ : float
        Weighted sum of squared geodesic distances from the centres.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted; None for a precomputed kernel. With
        nystroem, the anchors. With a linear or cosine kernel and many more rows than columns, the
        standard basis of the input space; `cluster_centers_` are then points of that space.
    n_anchors_ : int or None
        With nystroem, the number of anchors.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether no label changed and no centre moved in the last iteration.
    history_ : list of dict
        Inertia and the number of changed labels in each iteration of the best run; with nystroem
        also `trace_error`, the fraction of the trace that the anchors leave out.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    KernelKMeans : k-means with Euclidean distances in feature space.
    orthodrome.preimage.karcher_mean_preimage : The pre-image of a single mean.
    KernelSpectralClustering : For clusters that are not round.

    Notes
    -----
    A run ends when no label changes and no centre moves. Intrinsic means have converged
    when the gradient is at most 1e-10, or no longer decreases because of rounding errors.
    Pre-images have converged when a step is at most 1e-12 times the extent of the cluster.

    Equal rows are first merged, adding their weights, and sorted. So a weight of 2 gives exactly
    the same result as repeating the row, and the order of rows does not matter.

    With a linear or cosine kernel and many more rows than columns, rows are their own coordinates,
    and an iteration is one pass over them with one matrix product; with nystroem, features take
    their place. Beyond 64 rows per cluster, and 4096 rows, the runs use a sample of that size. The
    best one is improved there, as long as merging two clusters and splitting another one helps.
    Then it continues with all rows. A memory map that exceeds a quarter of `memory_budget` is read
    in blocks, without merging or sorting rows. Clusters are then numbered in the order of the given
    rows, as for dask arrays and batches. :meth:`partial_fit` updates the centres with batches.

    With nystroem, the features of training and new points are normalised.

    References
    ----------
    Courty, Burger and Marteau, "Geodesic Analysis on the Gaussian RKHS Hypersphere", ECML PKDD
    2012, §3.3, Algorithm 2.

    Examples
    --------
    >>> from orthodrome import HypersphericalKMeans
    >>> from orthodrome.kernels import Gaussian
    >>> X = [[0.0], [0.1], [0.2], [1.2], [5.0], [5.1], [5.2]]
    >>> model = HypersphericalKMeans(2, kernel=Gaussian(sigma=0.3), random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.cluster_centers_.round(2).ravel()  # the means are 0.38 and 5.1
    array([0.1, 5.1])
    """

    _: KW_ONLY
    centers: str = "preimage"
    reseed_empty: bool = True

    _PARAMETERS = CenterClustering._PARAMETERS | {
        "centers": choice("preimage", "intrinsic"),
        "reseed_empty": choice(True, False),
    }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        anchors = self.n_anchors is not None or self.solver not in ("auto", "exact")
        if anchors and self.centers == "preimage":
            raise ValueError(
                f"{type(self).__name__} accepts anchors (n_anchors, solver='nystroem') only for "
                "centers='intrinsic', because pre-images need neither a Gram matrix nor features. "
                "Omit them, or use centers='intrinsic'."
            )

    def _geometry(self) -> type[geometries.Inputs | geometries.Sphere]:
        return geometries.Inputs if self.centers == "preimage" else geometries.Sphere

    def _fit(self, X: Any, sample_weight: ArrayLike | None, *, partial: bool = False) -> None:
        super()._fit(X, sample_weight, partial=partial)
        if self._centers_are_inputs_:
            self.cluster_centers_ = in_form_of(self.cluster_centers_, X)

    def _check_rows(self, kernel: Kernel, rows: Rows) -> None:
        if self.centers == "intrinsic":
            return
        owner, name = type(self).__name__, type(kernel).__name__
        if not isinstance(rows, ArrayRows) or scipy.sparse.issparse(rows.array):
            raise ValueError(
                f"{owner} needs a dense array in memory for centers='preimage'. Call X.toarray() "
                "if X is sparse, or use centers='intrinsic', which also reads rows in blocks."
            )
        if not (has_profile(kernel) and kernel.unit_norm):
            raise ValueError(
                f"centers='preimage' of {owner} needs a radial kernel with k(x, x) = 1, such as "
                "Gaussian, or a positive definite Gaussian kernel of shapes or matrices; got "
                f"{name}. Use centers='intrinsic', which needs only a constant k(x, x)."
            )
        if isinstance(self.init, str) and self.init == "bounding-box" and rows.array.ndim != 2:
            raise ValueError(
                f"init='bounding-box' of {owner} needs vectors, but {name} is a kernel of "
                "landmarks or matrices. Choose another init."
            )

    def _distances(
        self, *, order_only: bool = False
    ) -> geometries.InputDistances | geometries.SphereDistances:
        kernel = self.kernel_
        if self._centers_are_inputs_:
            # centers have the format of X, which may differ from that of validated data
            centers = kernel.validate(self.cluster_centers_, reset=False)
            monotone = order_only and profile_of(kernel).decreasing
            return geometries.InputDistances(kernel, kernel.prepare(centers), monotone)
        return geometries.SphereDistances(
            kernel,
            prepared_points(kernel, self.X_fit_),
            self._columns_,
            self.cluster_centers_,
            self._squared_radius_,
            self._decoder_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.sparse and self.centers != "preimage"
        return tags
