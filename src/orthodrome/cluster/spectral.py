"""Spectral clustering with any kernel and any eigensolver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClusterMixin, clone
from sklearn.metrics import pairwise_distances_argmin

from .._core.canonical import Canonical, canonical_rows
from .._core.checks import rows_renumbered
from .._core.kinds import is_dask_array
from .._core.parameters import choice, integer, optional, positive
from .._core.progress import SILENT, Progress, tracked
from .._core.random import draw_seeds
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats
from .._core.warn import warn_user
from ..base import (
    SOLVER_PARAMETERS,
    AnchorAttributes,
    KernelEstimator,
    canonical_of,
    expand_to_all_rows,
    rows_of,
    with_parameters,
)
from ..coordinates import Anchors
from ..coordinates.blocks import AnchorMap
from ..decomposition.view import View, fitted_view
from ..eigen import Eigenpairs, Nystroem, choose_solver, leading
from ..eigen.components import warn_unless_solved
from ..eigen.inverse import leading_by_inverse
from ..gram import Degree, SparseGram, cross_operator
from ..kernels import Gaussian, Kernel, NeighborGraph, Precomputed
from ..plan import Plan, plan_fit
from ..rows import ArrayRows, DaskRows, Rows, as_rows
from ..rows.dask import over_rows
from ..sphere.lloyd import numbered_by_first
from .base import (
    GRAM_FRACTION,
    MAX_N_INIT,
    ClusterFitMixin,
    check_n_clusters,
    warn_if_fewer,
)
from .laplacians import LAPLACIANS, Graph, Principal, SpectralEmbedding

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

# Rule for kernel="auto", chosen on the tables of benchmarks/defaults/clustering.py: maximum ratio
# of the normalised cuts, and minimum size of a cluster as a fraction of the average size.
_MAX_CUT_RATIO, _MIN_SIZE = 0.5, 0.4
# A smaller cut shows separate clusters, whatever their sizes.
_ZERO_CUT = 1e-3
_GRAPH = "shared_neighbors"
# kernel="auto" compares the kernels if there are at least _MIN_COMPARED rows; with fewer rows, most
# of them would be neighbours. If there are more than _MAX_COMPARED rows, it compares a sample.
_MIN_COMPARED, _MAX_COMPARED = 40, 2000


class _Attributes(AnchorAttributes):
    kernel_choice_: dict[str, Any] | None = None


@with_parameters
class KernelSpectralClustering(_Attributes, ClusterFitMixin, ClusterMixin, KernelEstimator):
    r"""Spectral clustering with any kernel, for large data and new points.

    Kernel values are the edge weights of a graph of the points, with the degrees
    :math:`\Delta_i = \sum_{j \ne i} K_{ij}`. Its normalised matrix

    .. math:: N = \Delta^{-1/2} (K - \operatorname{diag} K) \Delta^{-1/2}, \qquad
        N v_q = \lambda_q v_q

    has eigenvectors v that are nearly constant within each connected group of points. The points
    are embedded by their rows in the leading eigenvectors, and clustered with k-means. The matrix N
    is not stored: products with N are computed from products with K.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of eigenvectors.
    kernel : Kernel, str or callable, default="auto"
        The similarities. ``"auto"`` chooses between two kernels, see the notes: ``Gaussian()``,
        with the root mean square distance of all pairs as σ, finds round clusters;
        ``NeighborGraph(10, "shared")`` also finds curved ones. Other values: a kernel object, a
        name (``orthodrome.kernels.KERNELS``), ``"nearest_neighbors"``, ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. For ``"njw"`` and ``"ncut"`` the sums of
        similarities must not be negative. A precomputed matrix may be a SciPy sparse array,
        symmetric and without negative entries.
    laplacian : {"njw", "kernel-pca", "ncut"}, default="njw"
        The embedding. ``"njw"``: eigenvectors of N with normalised rows (Ng, Jordan and Weiss);
        ``"ncut"``: eigenvectors of N divided by the square roots of the degrees (normalised cuts,
        Shi and Malik); ``"kernel-pca"``: eigenvectors of the centred Gram matrix with normalised
        rows (Schraudolph, Günter and Vishwanathan, §5.3).
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver; :func:`orthodrome.eigen.choose_solver` returns what "auto" uses, and why.
        "nystroem" uses the graph of features from a few anchors, see the notes (options:
        :class:`orthodrome.eigen.Nystroem`).
    tol : float, optional
        For iterative solvers, as in :func:`orthodrome.eigen.leading`; default: the solver's value.
        For nystroem: add anchors until the error of the trace of the Gram matrix is at most tol
        times the trace. By default, nystroem uses `n_anchors` anchors.
    max_iter : int, optional
        Maximum number of products with the Gram matrix (krylov), of passes over its rows (hebbian)
        or of products with the matrix of features (nystroem). Default: chosen by the solver.
    n_anchors : int, optional
        Maximum number of anchors for nystroem. If it is given, solver "auto" means nystroem.
        Default: 512, or twice the number of clusters if that is more.
    n_init : int, default=10
        Number of runs of k-means; the best is kept.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. If it does not fit, tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix, or the features of nystroem, are stored; see
        :func:`orthodrome.gram.gram_operator`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of k-means and of iterative solvers. An integer makes results reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training point. Clusters are numbered in the order of their first
        members in the sorted data, so the numbers depend neither on the seed nor on the order of
        rows. If X is a dask array, its rows are not sorted, and `labels_` is a dask array.
    embedding_ : ndarray of shape (n_samples, n_clusters)
        Embedding of the training points.
    eigenvalues_ : ndarray of shape (n_clusters,)
        Eigenvalues of N or of the centred Gram matrix, descending. For a graph the first is 1, and
        the number of eigenvalues near 1 is the number of separate clusters; eigenvalues of 0 or
        less carry no information.
    cluster_centers_ : ndarray of shape (n_clusters, n_clusters)
        Centres of the clusters in the embedding. There are fewer clusters, and a warning, if
        the data have fewer distinct points than `n_clusters`.
    X_fit_ : ndarray, sparse array or None
        The distinct training rows of positive weight, sorted. With nystroem, the anchors. None for
        a precomputed kernel.
    n_anchors_ : int or None
        With nystroem, the number of anchors.
    anchor_indices_ : ndarray of shape (n_anchors_,) or None
        The training rows that are anchors; None if points were given as anchors.
    kernel_ : Kernel
        The fitted kernel.
    kernel_choice_ : dict or None
        With ``kernel="auto"``, the choice and the reason for it. ``kernel`` is ``"gaussian"`` or
        ``"shared_neighbors"``. ``cuts`` holds the normalised cut for the clusters of each kernel.
        ``smallest_cluster`` is the size of the smallest cluster of ``"shared_neighbors"``, as a
        fraction of the average size. ``n_compared`` is the number of rows compared. ``reason`` is a
        sentence. None if a kernel was given.
    extension_ : callable object
        The map that embeds new points; see :meth:`embed`.
    solver_ : str
        Name of the solver used.
    n_iter_ : int
        Number of products with the Gram matrix, with the matrix of features (nystroem), or with the
        inverse (shift-invert).
    converged_ : bool
        Whether the solver reached `tol`.
    residuals_ : ndarray of shape (n_clusters,)
        ‖Nv - λv‖ of each eigenvector; with nystroem, for the graph of the features.
    history_ : list of dict
        The solver's iterations.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.cluster.SpectralClustering : In memory, without `predict`.
    orthodrome.metrics.variation_of_information : Distance between two clusterings.

    Notes
    -----
    Equal rows are first merged into weights and sorted, so a weight of 2 gives exactly the same
    result as repeating the row, and the order of rows does not matter. (With a precomputed kernel,
    points are equal if their rows are equal to the last bit.) Since the similarity of a point to
    itself is excluded, weights below 1 may make a degree negative, which is an error: ``"njw"`` and
    ``"ncut"`` need weights that are counts.

    ``kernel="auto"`` compares the clusters of the Gaussian kernel with those of the graph of 10
    nearest neighbours, with edges weighted by the number of shared neighbours. The criterion for
    both is the normalised cut in that graph: for each cluster, the weight of the edges that leave
    it, divided by the weight of all its edges; then the mean over clusters. The graph is chosen if
    its clusters have less than half the normalised cut of the Gaussian clusters. If one of its
    clusters is smaller than 0.4 times the average size, it is often a group of outliers; then the
    cut must also be below 0.001. If there are more than 2000 distinct rows, a sample is compared.
    The Gaussian kernel is used without comparison for ``laplacian="kernel-pca"``, with anchors, for
    rows read in blocks and for fewer than 40 distinct rows.
    :doc:`/guide/defaults` has the measurements behind this rule.

    With nystroem the similarities are approximated by inner products of features F, which are not
    normalised: :math:`K \approx F F^\top`. With as many anchors as the rank of K the
    result is exact. N is a matrix of low rank minus a diagonal matrix; a product with it needs two
    passes over the features, and new points are compared with the anchors only. The approximation
    may make a degree slightly negative. Such a point counts as isolated.

    Sparse graphs stay sparse, except that ``solver="auto"`` uses LAPACK on the whole matrix for up
    to 1000 points. For more points it uses krylov. If that does not converge, as for long thin
    clusters, it uses the inverse of the shifted sparse matrix ("shift-invert"). The rows of a
    sparse precomputed graph are neither merged nor sorted, so cluster numbers follow the order of
    rows.

    References
    ----------
    Ng, Jordan and Weiss, "On spectral clustering: analysis and an algorithm", NIPS 14, 2002; Shi
    and Malik, "Normalized cuts and image segmentation", IEEE TPAMI 22, 2000; Bengio et al.,
    "Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps, and spectral clustering", NIPS 16,
    2004;
    Schraudolph, Günter and Vishwanathan, "Fast Iterative Kernel PCA", NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from orthodrome import KernelSpectralClustering
    >>> from orthodrome.metrics import variation_of_information
    >>> X, y = make_moons(300, noise=0.05, random_state=0)
    >>> model = KernelSpectralClustering(2, random_state=0).fit(X)
    >>> variation_of_information(y, model.labels_)
    0.0
    >>> model.kernel_choice_["kernel"]
    'shared_neighbors'
    >>> model.predict([[0.0, 1.0], [1.0, -0.5]]) == model.labels_[[y.argmin(), y.argmax()]]
    array([ True,  True])
    """

    n_clusters: int = 8
    kernel: Any = "auto"
    _: KW_ONLY
    laplacian: str = "njw"
    solver: Any = "auto"
    tol: float | None = None
    max_iter: int | None = None
    n_anchors: int | None = None
    n_init: int = 10
    storage: str = "auto"
    random_state: Any = None

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_clusters": integer(),
        "laplacian": choice(*LAPLACIANS),
        "tol": optional(positive(or_zero=True)),
        "n_init": integer(maximum=MAX_N_INIT),
    }
    _accepts_graphs = True
    _chooses_kernel = True

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        owner, kernel = type(self).__name__, self._kernel_object()
        seeds = draw_seeds(self.random_state, 2, owner)
        rows = as_rows(X, kernel, self)
        rows = rows.weighted(sample_weight, owner, rows.dtype)
        canonical = canonical_of(rows, kernel)
        if not np.all(canonical.weights > 0):
            raise ValueError(
                f"{owner} accepts rows of weight 0 only in memory or in a dask array. Remove them "
                "from batches and zarr arrays."
            )
        k = check_n_clusters(canonical, self.n_clusters, owner)
        with tracked(self, bool(self.verbose)) as progress:
            fit: SpectralFit | None = None
            self.kernel_choice_ = None
            if self._automatic:
                kernel, fit = self._choose_kernel(rows, canonical, k, seeds)
            if fit is None:
                fit = self._fit_kernel(rows, canonical, kernel, k, seeds, progress)
            progress.advance(1.0, "k-means")
        fit.warn()
        self.__dict__.update(fit.attributes)
        embed = self._embedding(rows.dtype)
        embedding = expand_to_all_rows(fit.points, canonical, lambda new: embed(rows.take(new)))
        nearest = partial(_nearest, self.cluster_centers_)
        labels = expand_to_all_rows(fit.labels, canonical, lambda new: nearest(embedding[new]))
        if isinstance(rows, DaskRows):
            labels, embedding = rows.as_dask(labels), rows.as_dask(embedding)
        self.labels_, self.embedding_ = labels, embedding

    def _fit_kernel(
        self,
        rows: Rows,
        canonical: Canonical,
        kernel: Kernel,
        k: int,
        seeds: list[int],
        progress: Progress,
    ) -> SpectralFit:
        """Embed and cluster the canonical rows with one kernel."""
        request = {"n_components": k, "random_state": seeds[0]}
        is_sparse = scipy.sparse.issparse(canonical.data)
        if isinstance(kernel, NeighborGraph) or (is_sparse and isinstance(kernel, Precomputed)):
            self._check_graph_input(rows)
            request["exact"] = True  # without anchors
        plan = plan_fit(self, rows_of(canonical, kernel), kernel, **request)
        from sklearn.cluster import KMeans  # not above: this import takes 0.03 s

        kmeans = KMeans(self.n_clusters, tol=0.0, n_init=self.n_init, random_state=seeds[1])
        return fit_spectral(canonical, kernel, LAPLACIANS[self.laplacian], plan, kmeans, progress)

    def _choose_kernel(
        self, rows: Rows, canonical: Canonical, k: int, seeds: list[int]
    ) -> tuple[Kernel, SpectralFit | None]:
        """Return the kernel to use, and its fit if all rows were compared."""
        n = len(canonical.weights)
        uses_anchors = self._asks_for_anchors() or choose_solver(n, k).solver == "nystroem"
        if self.laplacian == "kernel-pca" or uses_anchors or not isinstance(rows, ArrayRows):
            reason = (
                "the graph of neighbours needs rows in memory, a solver without anchors, and "
                "laplacian 'njw' or 'ncut'"
            )
        elif n < _MIN_COMPARED or k < 2:
            reason = (
                f"at least {_MIN_COMPARED} distinct rows and 2 clusters are needed to compare "
                f"kernels; there are {n} and {k}"
            )
        else:
            return self._compare_kernels(rows, canonical, k, seeds)
        self.kernel_choice_ = {"kernel": "gaussian", "reason": reason}
        return Gaussian(), None

    def _compare_kernels(
        self, rows: Rows, canonical: Canonical, k: int, seeds: list[int]
    ) -> tuple[Kernel, SpectralFit | None]:
        """Fit both kernels to all rows or a sample, and choose one of them."""
        sample = canonical
        if len(canonical.weights) > _MAX_COMPARED:
            data = rows_of(canonical, Gaussian())
            chosen, counts = data.spread(_MAX_COMPARED, canonical.weights)
            sample = canonical_rows(data.take(chosen), counts)
        kernels = {"gaussian": Gaussian(), _GRAPH: NeighborGraph(weights="shared")}
        fits = {
            name: self._fit_kernel(rows, sample, kernel, k, seeds, SILENT)
            for name, kernel in kernels.items()
        }
        labels = {name: fit.labels for name, fit in fits.items()}
        graph = fits[_GRAPH].attributes["kernel_"].graph()
        self.kernel_choice_ = compare_clusters(graph, sample.weights, labels, k)
        name = self.kernel_choice_["kernel"]
        return kernels[name], fits[name] if sample is canonical else None

    def _asks_for_anchors(self) -> bool:
        """Return whether the parameters ask for anchors."""
        is_nystroem = isinstance(self.solver, Nystroem) or self.solver == "nystroem"
        return is_nystroem or self.n_anchors is not None

    def _check_graph_input(self, rows: Rows) -> None:
        """Raise if rows or parameters cannot be used with a sparse graph."""
        owner = type(self).__name__
        if not isinstance(rows, ArrayRows):
            raise ValueError(
                f"{owner} searches for neighbours only among rows in memory, but X is read in "
                "blocks. If it fits, pass it as one array; otherwise choose another kernel."
            )
        if self._asks_for_anchors():
            raise ValueError(
                f"{owner} cannot use anchors for a sparse graph. Omit n_anchors and "
                "solver='nystroem'."
            )

    # ------------------------------------------------------------------ new data

    def embed(self, X: Data) -> NDArray[Any]:
        r"""Return the embedding of points.

        For a graph this is a Nyström extension: with
        :math:`f_q(x) = \sum_j k(x, x_j) \sqrt{w_j / \Delta_j}\, v_{jq}` and the sum Δ(x) of the
        similarities to the training points,

        .. math:: u_q(x) = \frac{f_q(x)}{\sqrt{\Delta(x)}} \cdot
            \frac{\Delta_-(x) + k(x, x)}{\lambda_q \Delta_-(x) + k(x, x)}, \qquad
            \Delta_-(x) = \max(\Delta(x) - k(x, x), 0),

        normalised for ``"njw"``, divided by :math:`\sqrt{\Delta(x)}` for ``"ncut"``. The plain
        extension has 1/λ_q as the second factor, the limit for large degrees. The factor used here
        maps training points exactly to their embedding, because the graph excludes the similarity
        of a point to itself. For ``"kernel-pca"`` the coordinates are those of kernel PCA, divided
        by the square roots of the eigenvalues and normalised.

        Points with zero similarity to all training points are mapped to the origin.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples), dense or, for a sparse graph, sparse. The unknown
            k(x, x) is then replaced by the mean of the training diagonal (with nystroem, of its
            approximation).

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            The embedding.
        """
        rows = self._new_rows(X)
        if is_dask_array(self.X_fit_) and rows.lazy:
            raise ValueError(
                f"{type(self).__name__} compares new rows with all training rows, which are a "
                "dask array. Pass the new rows in memory, or fit with solver='nystroem'."
            )
        return rows.map(self._embedding(rows.dtype))

    def _embedding(self, dtype: np.dtype[Any]) -> _Embedding:
        """Return the map from blocks of rows to the embedding."""
        anchors = Anchors(self.X_fit_, self._columns_, self._decoder_)  # type: ignore[arg-type]
        return _Embedding(self.kernel_, anchors, self.extension_, self._mean_diagonal_, dtype)

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the index of the nearest centre in the embedding for each point.

        Training points keep their labels, except for ties between centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`embed`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        embedded = self.embed(X)
        return over_rows(partial(_nearest, self.cluster_centers_), embedded)


@dataclass(frozen=True)
class _Embedding:
    """The map from blocks of rows to the embedding."""

    kernel: Kernel
    fitted: Anchors  # the fitted points; without anchors, the decoder is None
    extension: Any
    mean_diagonal: float
    dtype: np.dtype[Any]

    @cached_property
    def to_features(self) -> AnchorMap:
        kernel, fitted = self.kernel, self.fitted
        return AnchorMap(kernel, fitted.prepared(kernel), fitted.decoder, self.dtype)

    @property
    def rows_at_once(self) -> int:
        return 2048 if self.fitted.decoder is None else self.to_features.rows_at_once

    def __call__(self, rows: Any, start: int = 0) -> NDArray[Any]:
        kernel, fitted = self.kernel, self.fitted
        if fitted.decoder is not None:
            block = self.to_features.block(rows)
            return self.extension(block, block.captured).astype(rows.dtype, copy=False)
        if fitted.points is None:
            rows = rows[:, fitted.indices]
            diagonal = np.full(rows.shape[0], self.mean_diagonal)
        else:
            diagonal = kernel.diagonal(kernel.prepare(rows)).astype(np.float64)
        return np.asarray(self.extension(cross_operator(kernel, rows, fitted.points), diagonal))


def _nearest(centers: NDArray[Any], embedding: NDArray[Any]) -> NDArray[np.int32]:
    """Return the index of the nearest centre for each row of an embedding."""
    return pairwise_distances_argmin(embedding, centers).astype(np.int32)


@dataclass(frozen=True)
class SpectralFit:
    """Result of spectral clustering.

    Attributes
    ----------
    attributes : dict
        Fitted attributes, keyed by name.
    points : ndarray of shape (m, k)
        Embedding of the distinct rows.
    labels : ndarray of shape (m,)
        Their clusters.
    warn : callable
        Warns about problems of the fit.
    """

    attributes: dict[str, Any]
    points: NDArray[Any]
    labels: NDArray[np.int32]
    warn: Callable[[], None]


def compare_clusters(
    graph: Any, weights: Floats, labels: dict[str, NDArray[np.int32]], k: int
) -> dict[str, Any]:
    """Choose between the Gaussian kernel and the graph; return the value of ``kernel_choice_``.

    The normalised cuts of their clusters are compared.
    """
    cuts = {name: normalized_cut(graph, weights, found) for name, found in labels.items()}
    sizes = np.bincount(labels[_GRAPH], weights, minlength=k)
    smallest = float(sizes.min() * k / sizes.sum())
    name = "gaussian"
    if cuts[_GRAPH] >= _MAX_CUT_RATIO * cuts["gaussian"]:
        reason = "the clusters of the Gaussian kernel have a normalised cut of similar size"
    elif smallest < _MIN_SIZE and cuts[_GRAPH] > _ZERO_CUT:
        reason = "the graph of neighbours only separates a small group"
    else:
        name, reason = _GRAPH, "the clusters of the graph have a much smaller normalised cut"
    return {
        "kernel": name,
        "reason": reason,
        "cuts": cuts,
        "smallest_cluster": smallest,
        "n_compared": len(weights),
    }


def normalized_cut(graph: Any, weights: Floats, labels: NDArray[np.integer[Any]]) -> float:
    """Return the mean over clusters of the fraction of edge weight that leaves the cluster.

    A row of weight w stands for w points. For a cluster without edges, the fraction is 1.
    """
    members = scipy.sparse.csr_array((weights, (np.arange(len(labels)), labels)))
    to_cluster = (graph @ members).toarray()  # (n, k): weight of the edges into each cluster
    within = np.bincount(labels, weights * to_cluster[np.arange(len(labels)), labels])
    volumes = np.bincount(labels, weights * to_cluster.sum(axis=1))
    return float(
        1 - np.divide(within, volumes, out=np.zeros_like(within), where=volumes > 0).mean()
    )


def fit_spectral(
    canonical: Canonical,
    kernel: Kernel,
    laplacian: Graph | Principal,
    plan: Plan,
    kmeans: KMeans,
    progress: Progress,
) -> SpectralFit:
    """Embed the points with leading eigenvectors, and cluster the embedding."""
    solver, tol = plan.eigensolver()
    with single_threaded_blas(), rows_renumbered(canonical.index):
        view = fitted_view(canonical, kernel, plan)
    on_features = view.points is not None
    progress.advance(GRAM_FRACTION, "features" if on_features else "Gram matrix")
    operator, problem = laplacian.wrap(view)
    pairs = leading(
        problem,
        plan.k,
        solver=solver,
        random_state=plan.request.random_state,
        callback=progress.residual_callback(tol, GRAM_FRACTION),
    )
    if _needs_inverse(problem, pairs, plan):
        upper_bound = 1.0 + problem.shift  # of the eigenvalues, because weights are not negative
        pairs = leading_by_inverse(
            problem.tosparse(), upper_bound, plan.k, tol=tol, random_state=plan.request.random_state
        )
    found = laplacian.embedding(view, operator, pairs)
    labels, centers = _cluster(found.points, canonical.weights, kmeans)
    attributes = view.attributes() | {
        "eigenvalues_": found.eigenvalues,
        "extension_": found.extension,
        "cluster_centers_": centers,
        "solver_": pairs.solver,
        "n_iter_": pairs.n_iter,
        "converged_": pairs.converged and view.status.converged,
        "residuals_": pairs.residuals,
        "history_": list(pairs.history),
        # k(x, x) of new rows if the kernel is precomputed
        "_mean_diagonal_": float(np.average(view.gram.diagonal(), weights=view.weights)),
    }
    if on_features:
        attributes["extension_"] = found.extension.over_features(view.points)
        attributes["solver_"] = plan.name
        trace = {"n_anchors": attributes["n_anchors_"], "trace_error": view.trace_error}
        attributes["history_"][0] = attributes["history_"][0] | trace
    warn = partial(_warn, found, pairs, view, (len(centers), kmeans.n_clusters), tol)
    return SpectralFit(attributes, found.points, labels, warn)


def _needs_inverse(problem: Any, pairs: Eigenpairs, plan: Plan) -> bool:
    """Return whether to use shift-invert: krylov, chosen by "auto", failed on a sparse graph."""
    is_sparse = isinstance(problem, Degree) and isinstance(problem.operator, SparseGram)
    by_default = plan.request.solver == "auto" and plan.request.max_iter is None
    return is_sparse and not pairs.converged and by_default


def _cluster(
    points: NDArray[Any], weights: Floats, kmeans: KMeans
) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return labels and centres of k-means, numbered in the order of their first points.

    The number of clusters is at most the number of points that differ by more than rounding errors.
    """
    unit = np.abs(points).max(initial=0.0) * np.finfo(points.dtype).eps * 2**12
    rounded = np.round(points / unit) if unit > 0 else points
    k = min(kmeans.n_clusters, len(canonical_rows(rounded).weights))
    found = clone(kmeans).set_params(n_clusters=k)
    found.fit(points, sample_weight=weights / weights.mean())
    labels, order = numbered_by_first(found.labels_)
    order = np.concatenate([order, np.setdiff1d(np.arange(k), order)])
    return labels, found.cluster_centers_[order]


def _warn(
    found: SpectralEmbedding, pairs: Eigenpairs, view: View, clusters: tuple[int, int], tol: float
) -> None:
    owner, n, on_features = view.plan.request.owner, len(found.points), view.points is not None
    warn_if_fewer(*clusters, owner)
    if isinstance(view.gram, SparseGram):
        _warn_if_in_parts(view.gram.matrix, found.n_isolated, clusters[1], owner)
    if found.n_isolated and n > 1:
        advice = ", raise n_anchors" if on_features else ""
        warn_user(
            f"{found.n_isolated} of the {n} distinct points have no similarity to any other point"
            f"{' in the approximation by the anchors' if on_features else ''}; {owner} maps them "
            f"to the origin. Raise sigma of the kernel{advice}, or remove these points.",
            UserWarning,
        )
    warn_unless_solved(pairs, owner, tol)
    view.warn()


def _warn_if_in_parts(graph: Any, n_isolated: int, n_clusters: int, owner: str) -> None:
    n_parts = scipy.sparse.csgraph.connected_components(graph, directed=False)[0] - n_isolated
    if n_parts > n_clusters:
        warn_user(
            f"The graph has {n_parts} separate parts, more than n_clusters={n_clusters} of "
            f"{owner}: which parts share a cluster is arbitrary. Raise n_neighbors or n_clusters.",
            UserWarning,
        )
