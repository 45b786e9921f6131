"""Gaussian mixtures on the sphere in feature space."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
import scipy.special
from numpy.typing import ArrayLike, NDArray
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._core.canonical import Canonical, canonical_rows
from .._core.checks import check_choice, check_integer, check_sample_weight, rows_renumbered
from .._core.kinds import is_dask_array
from .._core.parameters import choice, count_or_fraction, integer, or_word, positive
from .._core.progress import SILENT, Progress, tracked
from .._core.random import as_random_state, draw_seeds
from .._core.status import Status, warn_unless_converged
from .._core.threads import single_threaded_blas
from .._core.types import Data, Floats, Indices
from .._core.warn import warn_user
from ..base import (
    SOLVER_PARAMETERS,
    KernelEstimator,
    canonical_of,
    expand_to_all_rows,
    in_given_order,
    last_fit_kept,
    rows_of,
    with_parameters,
)
from ..coordinates import anchor_coordinates, choose_anchors
from ..coordinates.blocks import AnchorMap
from ..coordinates.gram import CoordinateGram
from ..decomposition import KernelPGA
from ..decomposition.fits import table_fits
from ..decomposition.new_points import attach_products
from ..decomposition.view import fitted_view
from ..eigen import Nystroem
from ..gram import GramOperator, gram_operator
from ..gram.factory import prepared_points
from ..kernels import Kernel, Precomputed
from ..rows import ArrayRows, DaskRows, Rows, as_rows
from ..rows.base import spread_rows
from ..rows.dask import in_memory, over_rows, persisted
from ..sphere import exp_at_pole, log_at_pole
from ..sphere.lloyd import SEEDINGS, FlatCenters, lloyd, numbered_by_first
from ..sphere.mixture import (
    COVARIANCES,
    Cloud,
    Mixture,
    MixtureFit,
    expectation_maximization,
    first_mixture,
)
from ..sphere.vector_lloyd import Assignment
from ..sphere.von_mises_fisher import (
    DirectionMixture,
    concentrations_of,
    fit_directions,
    max_resultant_length,
    mixture_of,
    updated_mixture,
)
from .base import MAX_N_INIT, ClusterFitMixin, check_n_clusters
from .centers import (
    Start,
    best_run,
    plan_of_coordinates,
    reads_blocks,
    separation_of,
    warn_if_close,
)

# Fraction of the progress bar for kernel PGA and the initial labels.
_PGA_FRACTION = 0.5
# Maximum size of the sample for initial labels.
_SAMPLE_SIZE = 8192
# Maximum number of iterations of kernel k-means for initial labels.
_MAX_LLOYD_ITER = 100
# Smallest variance by which division does not overflow.
_MIN_FLOOR = 1e-140
# "auto" compares these numbers of modes, and 2 to _MAX_COMPONENTS components. It fits each mixture
# to at most _MAX_COMPARED points from _N_COMPARED_STARTS starts.
_MODES, _MAX_COMPONENTS = (1, 2, 3, 4, 5, 6, 8, 10), 10
_MAX_COMPARED, _N_COMPARED_STARTS = 1000, 2
# Number of modes that "auto" uses for a single component, where there is nothing to compare.
_ONE_COMPONENT_MODES = 5


def _has_partial_fit(estimator: Any) -> bool:
    """Return True if the parameters allow directions; raise an AttributeError otherwise."""
    own = getattr(estimator._kernel_object(), "has_coordinates", False)
    if own and estimator.density == "von-mises-fisher":
        return True
    raise AttributeError(
        f"{type(estimator).__name__} has partial_fit only with density='von-mises-fisher' and a "
        "linear or cosine kernel."
    )


class _Attributes:
    n_components_: int
    n_modes_: int
    covariance_type_: str
    selection_: list[dict[str, Any]] | None
    pga_: Any
    _mixture_: Any
    _columns_: Indices | None
    _mass_: float | None = None


@with_parameters
class GeodesicMixture(_Attributes, ClusterFitMixin, DensityMixin, KernelEstimator):
    r"""Gaussian mixture on the sphere in feature space, with a tangent space per component.

    Kernel principal geodesic analysis maps the data to a sphere of `n_modes` dimensions. On this
    sphere, the mixture

    .. math:: P(y) = \sum_l w_l\, P(y \mid \mu_l, C_l), \qquad
        P(y \mid \mu, C) = \frac{\exp\left(-\tfrac12\, t^\top C^{-1} t\right)}
        {(2\pi)^{q/2} |C|^{1/2}}, \quad t = \operatorname{Log}_\mu y

    is fitted by EM. :math:`\sqrt{t^\top C^{-1} t}` is the geodesic Mahalanobis distance. As every
    component has its own tangent space, clusters may be 90° or more apart, which a single tangent
    space, or the linear space of kernel PCA, would distort.

    Parameters
    ----------
    n_components : int or "auto", default=1
        Number of components; "auto" chooses 2 to 10 by the criterion of the notes.
    n_modes : int, float in (0, 1) or "auto", default="auto"
        Number of modes of kernel principal geodesic analysis (kPGA), the paper's Q; a fraction is
        the part of the variance to explain; "auto" chooses up to 10 by the criterion of the notes
        (5 for a single component). Modes without variance are dropped. With many modes the
        components hardly overlap, memberships become 0 and 1, and EM returns its initial labels.
    kernel : Kernel, str or callable, default="gaussian"
        A kernel object, a name (``orthodrome.kernels.KERNELS``), ``"precomputed"``, or a
        ``callable(X, Y)`` that returns a block. k(x, x) must be the same for all data, which
        ``Normalized(kernel)`` ensures for any kernel.
    density : {"normal", "von-mises-fisher"}, default="normal"
        The density of a component: normal in the tangent space, as above; or the von Mises-Fisher
        density, :math:`c_d(\kappa)\, e^{\kappa \langle \mu, y \rangle}`, for unit vectors of many
        dimensions such as embeddings. It needs ``kernel="cosine"`` or ``"linear"``, a number of
        components and ``n_modes="auto"``: it uses all dimensions, without kPGA. It is normalised,
        so that `bic` and `aic` compare numbers of components. `covariance_type`, `mean_update`,
        `shrink_init` and `solver` are not used. `n_init` counts the starts of k-means.
    covariance_type : {"full", "tied", "diag", "spherical", "auto"}, default="full"
        "full": one full covariance per component; "tied": one covariance for all components;
        "diag": diagonal covariances; "spherical": one variance per component; "auto": the best of
        these by the criterion of the notes. "tied" and "diag" need the same axes in all tangent
        spaces: the axes at the mean of all data, transported along great circles.
    mean_update : {"karcher", "likelihood"}, default="karcher"
        Means in the M step: Karcher means weighted by the memberships, so that a single component
        is the result of kPGA; or maximum-likelihood means (step 6 of the paper, with the exact
        gradient). The two are close unless components are wide. If a step to Karcher means
        decreases the mean log-likelihood by more than `tol`, it is undone, and all later steps use
        maximum-likelihood means. With ``"likelihood"``, the likelihood never decreases.
    assignment : {"posterior", "density"}, default="posterior"
        Criterion that labels maximise: the posterior probability, proportional to
        w_l P(y | μ_l, C_l), or, as in the paper, the density P(y | μ_l, C_l).
    init_params : {"kernel-k-means", "k-means", "random"}, default="kernel-k-means"
        How to find initial clusters. "kernel-k-means": kernel k-means from farthest-first points,
        as in the paper. "k-means": the same with k-means of the coordinates on the sphere, which is
        faster for large data. "random": draw random points, and assign each row to the nearest.
    shrink_init : bool, default=True
        Whether initial covariances are shrunk towards the pooled covariance, so that small initial
        clusters do not start nearly singular. The paper does not shrink them.
    n_init : int, default=5
        Number of runs from different starts; the run with the largest likelihood is kept.
    reg_covar : float, default=1e-6
        Lower bound of the eigenvalues of covariances, as a fraction of the mean variance of all
        data along the modes. Without it, a component of one point would make the likelihood
        infinite.
    tol : float, default=1e-3
        Stop when an iteration increases the mean log-likelihood per point by less than `tol`.
    max_iter : int, default=100
        Maximum number of iterations of EM.
    solver : {"auto", "dense", "krylov", "hebbian", "nystroem"} or solver object, default="auto"
        The eigensolver of kPGA. "nystroem" uses normalised features from a few anchors for kPGA and
        kernel k-means: time and memory grow linearly with the rows, and only the anchors are stored
        (options: :class:`orthodrome.eigen.Nystroem`).
    n_anchors : int, optional
        Maximum number of anchors for nystroem. If it is given, solver "auto" means nystroem.
        Default: 512, or twice the number of modes if that is more.
    memory_budget : str or number, default="2GiB"
        Memory for the Gram matrix. If it does not fit, tiles are recomputed; results do not change.
    storage : {"auto", "memory", "disk", "recompute"}, default="auto"
        Where the tiles of the Gram matrix, or the features of nystroem, are stored; see
        :func:`orthodrome.gram.gram_operator`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the initial clusters and of iterative solvers. An integer makes results
        reproducible.
    verbose : bool or int, default=False
        Show scikit-learn's progress bar (needs rich).

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Probabilities of the components.
    means_ : ndarray of shape (n_components, n_modes + 1)
        Means of the components, unit vectors in the frame (μ, v_1, v_2, …) of kPGA; for von
        Mises-Fisher densities, unit vectors of the input space.
    concentrations_ : ndarray of shape (n_components,)
        Only for von Mises-Fisher densities: the κ of each component. There are no covariances.
    covariances_ : ndarray
        Covariances in the tangent spaces of the means, with scikit-learn's shapes: (n_components,
        n_modes, n_modes), (n_modes, n_modes), (n_components, n_modes), (n_components,).
    labels_ : ndarray of shape (n_samples,)
        The cluster of each training point. Components are numbered in the order of their first
        members in the sorted data, so the numbers depend neither on the seed nor on the order of
        rows. A lazy dask array if X is a dask array.
    lower_bound_ : float
        Mean log-likelihood of the training points.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the best run reached `tol`.
    history_ : list of dict
        For each iteration of the best run: the log-likelihood before and after it, and the
        components that it restarted.
    n_components_, n_modes_, covariance_type_ : int, int, str
        Number of components, number of modes and covariance type, given or chosen.
    selection_ : list of dict or None
        The mixtures that were compared, best first: `n_components`, `n_modes`, `covariance_type`
        and `criterion`. None if all of these were given.
    pga_ : KernelPGA
        The fitted kPGA. Its training data are the distinct rows of positive weight, sorted. With
        nystroem, its `X_fit_` holds the anchors. None for von Mises-Fisher densities.
    kernel_ : Kernel
        The fitted kernel.
    n_features_in_, feature_names_in_ :
        As in scikit-learn.

    See Also
    --------
    sklearn.mixture.GaussianMixture : The Euclidean analogue, with the same parameter names.
    HypersphericalKMeans : Hard clusters, without covariances.

    Notes
    -----
    As in the paper, the density is normalised for the flat tangent space. Its integral over the
    sphere is not exactly 1, but close to 1 if covariances are small. `score`, `bic` and `aic`
    compare only mixtures with the same kernel and the same modes.

    "auto" fits all candidate mixtures and compares their clusters by the ratio of the variances
    between and within clusters (Caliński and Harabasz) in the feature space of the kernel,

    .. math:: \frac{(T - W) / (k - 1)}{W / (n - k)}, \qquad
        W = \sum_c \sum_{i \in c} \|\Phi(x_i) - m_c\|^2, \quad T = \sum_i \|\Phi(x_i) - m\|^2 .

    The ratio uses all modes of the feature space, so it can be compared between numbers of modes.
    Likelihoods and `bic` cannot. In trials, a Bayesian information criterion nearly always chose
    the most modes. Candidates are fitted to at most 1000 points from two starts.
    :doc:`/guide/defaults` has the measurements.

    A component that loses all its points restarts at the point with the smallest likelihood. A
    warning names such components. It also names components whose variances in all directions shrink
    to the lower bound given by `reg_covar`.

    Equal rows are first merged into weights and sorted, so a weight of 2 gives exactly the same
    result as repeating the row, and the order of rows does not matter.

    With von Mises-Fisher densities, :meth:`partial_fit` continues a fit with batches of rows. Each
    batch makes one E step with the present mixture. The mean memberships and points of the
    components, from which the mixture follows by the M step, move towards those of the batch by the
    fraction :math:`\rho = (m_\text{batch} / m)^{0.8}`, where :math:`m` is the weight of all rows so
    far. This gives early batches less weight than plain sums would (:math:`\rho = m_\text{batch} /
    m`), because their memberships came from worse parameters. `labels_` and `lower_bound_` are then
    those of the last batch (`lower_bound_` before the update), `n_iter_` counts the batches as
    well, and `converged_` and `history_` remain those of the first fit.

    References
    ----------
    Awate, Yu and Whitaker, "Kernel Principal Geodesic Analysis", ECML PKDD 2014, §5.2; Pennec,
    "Intrinsic statistics on Riemannian manifolds", 2006; Caliński and Harabasz, "A dendrite
    method for cluster analysis", 1974; Banerjee, Dhillon, Ghosh and Sra, "Clustering on the unit
    hypersphere using von Mises-Fisher distributions", 2005; Cappé and Moulines, "On-line
    expectation-maximization algorithm for latent data models", 2009.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from orthodrome import GeodesicMixture
    >>> from orthodrome.metrics import clustering_error
    >>> X, y = make_blobs(200, centers=3, random_state=0)
    >>> model = GeodesicMixture(3, random_state=0).fit(X)
    >>> clustering_error(y, model.labels_) < 0.1
    True
    >>> model.predict_proba(X[:2]).sum(axis=1).round(6)
    array([1., 1.])

    Directions in batches:

    >>> from orthodrome.datasets import make_von_mises_fisher
    >>> X = make_von_mises_fisher(900, n_dimensions=8, random_state=0)
    >>> model = GeodesicMixture(2, kernel="cosine", density="von-mises-fisher", random_state=0)
    >>> for batch in (X[:300], X[300:600], X[600:]):
    ...     model = model.partial_fit(batch)
    >>> model.means_.shape, model.labels_.shape
    ((2, 8), (300,))
    """

    n_components: int | str = 1
    n_modes: int | float | str = "auto"
    kernel: Any = "gaussian"
    _: KW_ONLY
    density: str = "normal"
    covariance_type: str = "full"
    mean_update: str = "karcher"
    assignment: str = "posterior"
    init_params: str = "kernel-k-means"
    shrink_init: bool = True
    n_init: int = 5
    reg_covar: float = 1e-6
    tol: float = 1e-3
    max_iter: int = 100
    solver: Any = "auto"
    n_anchors: int | None = None
    storage: str = "auto"
    random_state: Any = None

    _PARAMETERS = SOLVER_PARAMETERS | {
        "n_components": or_word("auto", integer()),
        "n_init": integer(maximum=MAX_N_INIT),
        "max_iter": integer(),
        "tol": positive(or_zero=True),
        "reg_covar": positive(),
        "density": choice("normal", "von-mises-fisher"),
        "covariance_type": choice(*COVARIANCES, "auto"),
        "mean_update": choice("karcher", "likelihood"),
        "assignment": choice("posterior", "density"),
        "init_params": choice("kernel-k-means", "k-means", "random"),
        "n_modes": or_word("auto", count_or_fraction),
        "shrink_init": choice(True, False),
    }

    # ------------------------------------------------------------------ fitting

    def _fit(self, X: Any, sample_weight: ArrayLike | None) -> None:
        kernel = self._kernel_object()
        rows = as_rows(X, kernel, self)
        rows = rows.weighted(sample_weight, type(self).__name__, rows.dtype)
        self._check_dense(rows)
        self._assignment_, self._columns_, self.selection_ = self.assignment, None, None
        self._mass_ = None
        if self.density == "von-mises-fisher":
            self._fit_directions(rows, kernel)
        else:
            self._fit_normal(rows, kernel)

    def _fit_normal(self, rows: Rows, kernel: Kernel) -> None:
        """Fit a mixture of normal distributions to the coordinates of kPGA."""
        pga_seed, *seeds = draw_seeds(self.random_state, 1 + self.n_init, type(self).__name__)
        canonical = canonical_of(rows, kernel) if isinstance(rows, ArrayRows) else None
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            pga = self.pga_ = self._analysis(rows, kernel, canonical, pga_seed)
            weights, sample = rows.columns.get("weights"), canonical
            if sample is None:  # EM reads the rows in blocks; initial labels come from a sample
                chosen, counts = rows.spread(_SAMPLE_SIZE, weights)
                sample = canonical_rows(rows.take(chosen), counts)
                self._check_n_components(sample)
                coordinates = pga._new_points()(sample.data)
            else:
                weights, coordinates = sample.weights, pga.embedding_
            modes = max(1, int(np.count_nonzero(pga.eigenvalues_ > 0)))
            gram = self._gram_of(sample) if self._needs_gram() else None
            start = partial(initial_labels, self.init_params, sample.weights, gram, seeds)
            self._select(coordinates[:, :modes], sample.weights, gram, start)
            to_sphere = partial(unit_points, self.n_modes_)
            points, all_points = to_sphere(coordinates), over_rows(to_sphere, pga.embedding_)
            lazy = is_dask_array(all_points)  # the points then stay on the workers
            point_rows = DaskRows.of(persisted(all_points)) if lazy else ArrayRows.of(all_points)
            starts = start(points, min(self.n_components_, len(points)))
            progress.advance(_PGA_FRACTION, "kPGA")
            cloud = Cloud(point_rows.zip(weights=weights))
            best = self._best_mixture(cloud, points, sample.weights, starts, progress)
        self.kernel_ = pga.kernel_
        labels = self._set_fitted(best, self._evaluation("labels", best.mixture)(points))
        self.covariances_ = self._mixture_.covariances
        embed, evaluate = self._coordinate_map(), self._evaluation("labels").of_coordinates
        if canonical is None:
            self.labels_ = over_rows(evaluate, pga.embedding_)
        else:
            self.labels_ = expand_to_all_rows(
                labels, canonical, lambda new: evaluate(embed(rows.take(new), 0))
            )
        restarted = sorted({number for entry in self.history_ for number in entry["reseeded"]})
        largest = self._mixture_.spectra()[0].max(axis=1)
        shrunk = np.flatnonzero(largest <= self._floor_ * (1 + 1e-9))
        self._warn(best.status, restarted, shrunk)

    def _best_mixture(
        self,
        cloud: Cloud,
        points: Floats,
        weights: Floats,
        starts: list[Indices],
        progress: Progress,
    ) -> MixtureFit:
        """Run EM from each start, initial labels of a sample of points; return the best result."""
        self._floor_ = _floor(cloud, self.reg_covar)
        options: Any = {name: getattr(self, name) for name in ("tol", "max_iter", "mean_update")}
        shape = (self.n_components_, self.covariance_type_, self._floor_, self.shrink_init)
        fits = []
        for number, first in enumerate(_first_mixtures(points, weights, starts, *shape)):
            fits.append(expectation_maximization(cloud, first, floor=self._floor_, **options))
            done = (number + 1) / len(starts)
            progress.advance(_PGA_FRACTION + (1 - _PGA_FRACTION) * done, "EM")
        return max(fits, key=lambda fit: fit.log_likelihood)

    def _fit_directions(self, rows: Rows, kernel: Kernel) -> None:
        """Fit a mixture of von Mises-Fisher distributions to the coordinates of the rows."""
        self._check_directions(kernel)
        owner = type(self).__name__
        in_blocks = reads_blocks(rows, kernel, self.memory_budget)
        canonical = in_given_order(rows) if in_blocks else canonical_of(rows, kernel)
        k = check_n_clusters(canonical, int(self.n_components), owner, "n_components")
        plan = plan_of_coordinates(self, rows, k)
        init = "random" if self.init_params == "random" else "k-means++"
        start = Start(k, init, True, self.n_init, self.random_state, owner)
        with tracked(self, bool(self.verbose)) as progress, single_threaded_blas():
            with rows_renumbered(canonical.index):
                view = fitted_view(canonical, kernel, plan, on_sphere=True)
            points = view.points
            # chords, because antipodal points have no mean on the sphere
            options = {"sphere": False, "max_iter": 1 if init == "random" else _MAX_LLOYD_ITER}
            run = best_run(view, start, options)
            masses, sums, *_ = points.rows.reduce(Assignment(points.by, run.centers, sphere=False))
            progress.advance(_PGA_FRACTION, "k-means")
            bound = max_resultant_length(masses, sums, self.reg_covar)
            first = mixture_of(masses, sums, bound, run.centers)
            best = fit_directions(
                points, first, max_length=bound, tol=self.tol, max_iter=self.max_iter
            )
        self.kernel_, self._squared_radius_, self.pga_ = view.kernel, view.radius, None
        self.n_components_, self.n_modes_ = k, points.shape[1] - 1
        self.covariance_type_, self._mass_ = "spherical", float(masses.sum())
        evaluate = self._evaluation("labels", best.mixture)
        found = in_memory(points.rows.map(partial(evaluate.of_rows, points.by)))
        labels = self._set_fitted(best, found)
        # rounding errors may let EM start from wrong clusters, or from wrong concentrations
        several = (np.bincount(run.labels, minlength=k) > 1) & (run.masses > 0)
        spread = np.min(run.scatters[several] / run.masses[several], initial=np.inf)
        # a diameter is twice as long as a distance from the center
        warn_if_close(min(separation_of(run), 4 * float(spread)), rows.dtype, owner)
        self.concentrations_ = self._mixture_.concentrations
        new_labels = self._direction_map("labels")
        found = expand_to_all_rows(labels, canonical, lambda new: new_labels(rows.take(new), 0))
        self.labels_ = rows.as_dask(found) if isinstance(rows, DaskRows) else found
        largest = concentrations_of(np.array([bound]), points.shape[1])[0]
        shrunk = np.flatnonzero(self.concentrations_ >= (1 - 1e-6) * largest)
        self._warn(best.status, [], shrunk)

    @available_if(_has_partial_fit)
    def partial_fit(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update a von Mises-Fisher mixture with a batch of rows, by a step of online EM.

        This method exists for ``density="von-mises-fisher"`` with a linear or cosine kernel. The
        first batch is fitted as by :meth:`fit`; it should be large enough to contain all clusters.
        After a :meth:`fit` with this density, the mixture is updated as well. The notes of the
        class describe the step.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of a batch; at least `n_components` in the first one.
        y : ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        self
            The estimator.
        """
        with last_fit_kept(self):
            self._check_parameters()
            if not hasattr(self, "means_"):
                self._fit(X, sample_weight)
            elif self._mass_ is None:
                raise ValueError(
                    f"partial_fit of {type(self).__name__} cannot continue this fit, which has "
                    "another density or comes from an older version. Pass the first rows to "
                    "partial_fit of a new estimator."
                )
            else:
                rows = self._new_rows(X)
                self._check_dense(rows)
                by = replace(self._direction_vectors(), dtype=rows.dtype)
                batch = rows.weighted(sample_weight, type(self).__name__)
                with single_threaded_blas():
                    mixture, self._mass_, self.lower_bound_ = updated_mixture(
                        batch, by, self._mixture_, self._mass_, self.reg_covar
                    )
                self._set_mixture(mixture)
                self.concentrations_ = mixture.concentrations
                self.labels_ = rows.map(self._direction_map("labels"))
                self.n_iter_ += 1
        return self

    def _set_mixture(self, mixture: Any) -> None:
        self._mixture_, self.weights_, self.means_ = mixture, mixture.weights, mixture.means

    def _check_directions(self, kernel: Kernel) -> None:
        """Raise if parameters do not allow von Mises-Fisher densities."""
        owner = type(self).__name__
        if not kernel.has_coordinates:
            raise ValueError(
                f"density='von-mises-fisher' of {owner} needs kernel='cosine' or 'linear', whose "
                f"points are the rows themselves; got {type(kernel).__name__}."
            )
        for name in ("n_components", "n_modes"):
            if (getattr(self, name) == "auto") == (name == "n_components"):
                raise ValueError(
                    f"density='von-mises-fisher' of {owner} needs a number as n_components, and "
                    f"n_modes='auto', because it uses all dimensions; got {name}="
                    f"{getattr(self, name)!r}."
                )

    def _set_fitted(self, best: MixtureFit, labels: Any) -> NDArray[np.int32]:
        """Set attributes, with components in the order of their first members; return labels."""
        labels, order = numbered_by_first(labels)
        order = np.concatenate([order, np.setdiff1d(np.arange(len(best.mixture.weights)), order)])
        self._set_mixture(best.mixture.reordered(order))
        number_of = np.argsort(order)
        self.lower_bound_, self.n_iter_ = best.log_likelihood, best.n_iter
        self.converged_, self.history_ = best.status.converged, [*map(dict, best.history)]
        for entry in self.history_:
            if "reseeded" in entry:
                entry["reseeded"] = tuple(number_of[list(entry["reseeded"])].tolist())
        return labels

    def _check_n_components(self, canonical: Canonical) -> None:
        if self.n_components != "auto":
            check_n_clusters(canonical, int(self.n_components), type(self).__name__, "n_components")

    def _needs_gram(self) -> bool:
        automatic = "auto" in (self.n_components, self.n_modes, self.covariance_type)
        return self.n_components != 1 and (automatic or self.init_params == "kernel-k-means")

    def _select(
        self,
        coordinates: NDArray[Any],
        weights: Floats,
        gram: GramOperator | None,
        start: Callable[..., Any],
    ) -> None:
        """Choose the numbers of components and modes and the covariance type, if "auto"."""
        n, available = coordinates.shape
        kinds, modes = [self.covariance_type], [available]
        components: Any = [self.n_components]
        if self.covariance_type == "auto":
            kinds = list(COVARIANCES)
        if self.n_components == "auto":
            components = range(min(2, n), min(_MAX_COMPONENTS, n) + 1)
        if self.n_modes == "auto":
            modes = [q for q in _MODES if q <= available]
        if gram is not None and len(components) * len(modes) * len(kinds) > 1:
            self.selection_ = compare_mixtures(
                coordinates,
                weights,
                gram,
                start,
                (components, modes, kinds),
                reg_covar=self.reg_covar,
                shrink_init=self.shrink_init,
            )
        given = {"n_components": components[0], "n_modes": modes[-1], "covariance_type": kinds[0]}
        best = self.selection_[0] if self.selection_ else given
        self.n_components_, self.n_modes_ = int(best["n_components"]), int(best["n_modes"])
        self.covariance_type_ = best["covariance_type"]

    def _analysis(
        self, rows: Rows, kernel: Kernel, canonical: Canonical | None, seed: int
    ) -> KernelPGA:
        """Fit kPGA. If the rows are in memory, equal rows are merged first."""
        owner, solver, modes = type(self).__name__, self.solver, self.n_modes
        if modes == "auto":
            modes = _ONE_COMPONENT_MODES if self.n_components == 1 else _MODES[-1]
        if canonical is not None:
            self._check_n_components(canonical)
            if isinstance(modes, numbers.Integral):
                modes = min(int(modes), len(canonical.weights))
            if isinstance(kernel, Precomputed):
                self._columns_ = canonical.index
            if isinstance(solver, Nystroem):
                solver = solver.with_row_numbers(canonical.inverse)
        pga = KernelPGA(
            modes,
            kernel=self.kernel,
            solver=solver,
            n_anchors=self.n_anchors,
            memory_budget=self.memory_budget,
            storage=self.storage,
            random_state=seed,
            verbose=bool(self.verbose),
        )
        if canonical is not None:
            with rows_renumbered(canonical.index):
                pga._fit_rows(rows_of(canonical, kernel), kernel, owner, SILENT)
        else:
            n, budget = rows.shape[0], self.memory_budget
            if isinstance(modes, numbers.Integral) and not rows.lazy:
                self._check_memory(table_fits(n, int(modes), rows.dtype, budget), n, int(modes))
            pga._fit_rows(rows, kernel, owner, SILENT)
            self._check_memory(rows.lazy or hasattr(pga, "embedding_"), n, pga.n_components_)
        columns = self._columns_
        pga.n_features_in_ = self.n_features_in_ if columns is None else len(columns)
        return pga

    def _gram_of(self, sample: Canonical) -> GramOperator:
        """Return the Gram matrix of rows, or of their normalised features if kPGA has anchors."""
        pga, data = self.pga_, sample.data
        kernel = pga.kernel_
        options: dict[str, Any] = {"memory_budget": pga.memory_budget, "storage": pga.storage}
        if pga.n_anchors_ is None:
            return gram_operator(kernel, data, **options)
        # prefer points to row numbers: `data` may be a sample that does not contain the anchors
        chosen = pga.anchor_indices_ if pga.X_fit_ is None else pga.X_fit_
        scale = 1.0 / pga._squared_radius
        anchors = choose_anchors(kernel, data, pga.n_anchors_, anchors=chosen, scale=scale)
        points = anchor_coordinates(kernel, data, anchors, unit=True, scale=scale, **options)
        return CoordinateGram(points)

    def _check_memory(self, fits: bool, n: int, modes: int) -> None:
        """Raise if the coordinates of all rows, which EM needs, exceed the memory budget."""
        if not fits:
            raise ValueError(
                f"{type(self).__name__} needs the coordinates of all {n:,} rows in {modes} modes, "
                f"which do not fit in a quarter of memory_budget={self.memory_budget!r}. Raise it, "
                "reduce n_modes, or pass a dask array, whose coordinates stay on its workers."
            )

    def _warn(self, status: Status, restarted: Any, shrunk: Any) -> None:
        """Warn about components that restarted or shrank, and if EM did not converge."""
        owner = type(self).__name__
        lost = "lost all points and restarted at the point with the smallest likelihood"
        floor = (
            f"shrank to the floor of reg_covar={self.reg_covar:g} in all directions, as happens "
            "with a single point or with equal points"
        )
        for components, problem in ((restarted, lost), (shrunk, floor)):
            if len(components):
                plural = "s" if len(components) > 1 else ""
                warn_user(
                    f"{owner}: component{plural} {', '.join(map(str, components))} {problem}. "
                    "Reduce n_components, or raise reg_covar.",
                    ConvergenceWarning,
                )
        warn_unless_converged(
            status,
            owner,
            f"mean log-likelihood {self.lower_bound_:.6g} after {self.n_iter_} iterations, "
            f"tol={self.tol:g}",
        )

    # ------------------------------------------------------------------ new data

    def predict(self, X: Data) -> NDArray[Any]:
        """Return the component of each point, chosen by the criterion of `assignment`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data; for a precomputed kernel the matrix of kernel values with the training data,
            shape (n_samples, n_training_samples).

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        return self._evaluated(X, "labels")

    def predict_proba(self, X: Data) -> Floats:
        """Return the posterior probability of each component.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Probabilities; rows sum to 1.
        """
        return self._evaluated(X, "posterior")

    def score_samples(self, X: Data) -> Floats:
        """Return the log-density log P(y) of each point; the notes describe its normalisation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities of the images of X on the sphere of kPGA.
        """
        return self._evaluated(X, "evidence")

    def score(self, X: Data, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Return the weighted mean of :meth:`score_samples`.

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
            The mean log-density.
        """
        logs = self.score_samples(X)
        weights = check_sample_weight(sample_weight, len(logs), type(self).__name__)
        return float(np.average(logs, weights=weights))

    def bic(self, X: Data) -> float:
        """Return the Bayesian information criterion on X; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        float
            -2 log-likelihood + (number of parameters) log n.
        """
        logs = self.score_samples(X)
        return float(-2 * logs.sum() + self._mixture_.n_parameters * np.log(len(logs)))

    def aic(self, X: Data) -> float:
        """Return Akaike's information criterion on X; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, as in :meth:`predict`.

        Returns
        -------
        float
            -2 log-likelihood + 2 (number of parameters).
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._mixture_.n_parameters)

    def sample(
        self, n_samples: int = 1, *, space: str = "input", random_state: Any = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw points from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        space : {"input", "embedding", "sphere"}, default="input"
            Space of the points. "input": approximate pre-images, not available for a precomputed
            kernel; "embedding": coordinates of kPGA; "sphere": unit vectors, as in `means_`.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws; default: `random_state` of the estimator.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The points; (n_samples, n_modes) or (n_samples, n_modes + 1) in the other spaces.
        y : ndarray of shape (n_samples,)
            The component of each point.
        """
        check_is_fitted(self)
        owner = type(self).__name__
        check_integer(n_samples, "n_samples", f"{owner}.sample")
        check_choice(space, ("input", "embedding", "sphere"), "space", f"{owner}.sample")
        if space == "input" and self._columns_ is not None:
            raise ValueError(
                f"space='input' of {owner}.sample needs inputs, which a precomputed kernel does "
                "not have. Use space='embedding' or 'sphere'."
            )
        source = self.random_state if random_state is None else random_state
        points, labels = self._mixture_.sample(n_samples, as_random_state(source, owner))
        directions = isinstance(self._mixture_, DirectionMixture)
        if directions and space == "embedding":
            raise ValueError(
                f"space='embedding' of {owner}.sample needs density='normal'. Use 'sphere' or "
                "'input', which are the same for density='von-mises-fisher'."
            )
        if directions or space == "sphere":
            return points, labels
        coordinates = log_at_pole(points)
        if space == "embedding":
            return coordinates, labels
        unused = self.pga_.n_components_ - self.n_modes_
        return self.pga_.inverse_transform(np.pad(coordinates, [(0, 0), (0, unused)])), labels

    def _check_dense(self, rows: Rows) -> None:
        # scikit-learn's checks treat an estimator with predict_proba and sparse input as a
        # classifier
        if isinstance(rows, ArrayRows) and scipy.sparse.issparse(rows.array):
            raise TypeError(  # as scikit-learn's check_array
                f"{type(self).__name__} does not accept sparse X. Call X.toarray(), or pass the "
                "Gram matrix, kernel(X), with kernel='precomputed'."
            )

    def _evaluation(self, output: str, mixture: Any = None) -> _Evaluation:
        """Return the map from unit vectors to a result."""
        mixture = self._mixture_ if mixture is None else mixture
        return _Evaluation(mixture, output, self._assignment_ == "posterior")

    def _coordinate_map(self) -> Any:
        """Return the map from rows to coordinates of kPGA."""
        function, columns = self.pga_._new_points(), self._columns_
        return function if columns is None else partial(_apply_to_columns, function, columns)

    def _direction_vectors(self) -> AnchorMap:
        """Return the map from rows to unit vectors of the input space."""
        basis = np.eye(self._mixture_.means.shape[1])
        radius, dtype = self._squared_radius_, np.dtype(np.float64)
        points, decoder = prepared_points(self.kernel_, basis), basis * np.sqrt(radius)
        return AnchorMap(self.kernel_, points, decoder, dtype, True, radius, explicit=True)

    def _direction_map(self, output: str) -> Any:
        """Return the map from rows to a result, for directions."""
        return partial(self._evaluation(output).of_rows, self._direction_vectors())

    def _evaluated(self, X: Data, output: str) -> Any:
        """Return labels, probabilities or log-densities of data."""
        rows = self._new_rows(X)
        self._check_dense(rows)
        if isinstance(self._mixture_, DirectionMixture):
            return rows.map(self._direction_map(output))
        function, columns = self._coordinate_map(), self._columns_
        if columns is None:
            function, rows = attach_products(function, rows)
        elif len(columns) != self.pga_.n_features_in_:
            raise ValueError(
                f"This {type(self).__name__} is corrupt: it has {len(columns)} training points, "
                f"but its pga_ has {self.pga_.n_features_in_}. Fit it again."
            )
        return over_rows(self._evaluation(output).of_coordinates, rows.map(function))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


# ---------------------------------------------------------------------- fitting


def compare_mixtures(
    coordinates: NDArray[Any],
    weights: Floats,
    gram: GramOperator,
    start: Callable[..., Any],
    candidates: tuple[list[int], list[int], list[str]],
    *,
    reg_covar: float,
    shrink_init: bool,
) -> list[dict[str, Any]]:
    """Fit a mixture for each combination of candidates; return the entries of ``selection_``.

    `candidates` are the numbers of components, the numbers of modes and the covariance types.
    ``start(points, k)`` returns initial labels of all points. The criterion is described in the
    notes of :class:`GeodesicMixture`.
    """
    chosen, counts = spread_rows(len(weights), weights, _MAX_COMPARED)
    coordinates, found = coordinates.astype(np.float64), []
    components, modes, kinds = candidates
    for k in components:
        starts = [each[chosen] for each in start(exp_at_pole(coordinates), k)[:_N_COMPARED_STARTS]]
        entries, labels = [], []
        for q in modes:
            points = exp_at_pole(coordinates[:, :q])
            cloud = Cloud(ArrayRows.of(points[chosen]).zip(weights=counts))
            floor = _floor(cloud, reg_covar)
            options: dict[str, Any] = {"mean_update": "karcher", "floor": floor}
            options |= {"tol": 1e-2, "max_iter": 50}
            for kind in kinds:
                initial = _first_mixtures(
                    points[chosen], counts, starts, k, kind, floor, shrink_init
                )
                fits = [expectation_maximization(cloud, first, **options) for first in initial]
                best = max(fits, key=lambda fit: fit.log_likelihood)
                labels.append(_Evaluation(best.mixture, "labels", True)(points))
                entries.append({"n_components": k, "n_modes": q, "covariance_type": kind})
        ratios = variance_ratios(gram, weights, labels, k)
        pairs = zip(entries, ratios, strict=True)
        found += [entry | {"criterion": ratio} for entry, ratio in pairs]
    return sorted(found, key=lambda entry: -entry["criterion"])


def variance_ratios(
    gram: GramOperator, weights: Floats, labels: list[NDArray[np.int32]], k: int
) -> list[float]:
    """Return the ratio of variances between and within k clusters for each array of labels.

    Variances are those in feature space. Some clusters may be empty. The ratio is 0 for k = 1.
    (Caliński and Harabasz, "A dendrite method for cluster analysis", 1974.)
    """
    members = np.hstack([np.eye(k)[each] for each in labels])
    columns = np.column_stack([np.ones(len(weights)), members]) * weights[:, None]
    products = np.asarray(gram @ columns, dtype=np.float64)
    masses = np.maximum(columns.sum(axis=0), np.finfo(np.float64).tiny)
    # squared norms of the means, times their weights; the first is the mean of all points
    squares = np.einsum("ij,ij->j", columns, products) / masses
    squared_means = squares[1:].reshape(len(labels), k).sum(axis=1)
    squared_points, n = float(weights @ gram.diagonal()), weights.sum()
    between = np.maximum(squared_means - squares[0], 0.0) / max(k - 1, 1)
    smallest = np.finfo(np.float64).eps * abs(squared_points)
    within = np.maximum(squared_points - squared_means, smallest) / max(n - k, 1.0)
    return list(between / within) if k > 1 else [0.0] * len(labels)


def _floor(cloud: Cloud, reg_covar: float) -> float:
    """Return the lower bound of the eigenvalues of covariances."""
    variance = cloud.variance()
    # if all points coincide, the floor is absolute
    return max(reg_covar * variance if variance > 0 else float(reg_covar), _MIN_FLOOR)


def _first_mixtures(
    points: Floats,
    weights: Floats,
    starts: list[Indices],
    n_components: int,
    kind: str,
    floor: float,
    shrink: bool,
) -> list[Mixture]:
    """Return the initial mixture of each set of labels."""
    masses, initial = weights / weights.sum(), []
    unit_mass = 1 / weights.sum() if shrink else 0.0
    for start in starts:
        memberships = np.zeros((n_components, len(start)))
        memberships[start, np.arange(len(start))] = masses
        initial.append(first_mixture(points, memberships, kind, floor, unit_mass=unit_mass))
    return initial


def initial_labels(
    init: str,
    weights: Floats,
    gram: GramOperator | None,
    seeds: list[int],
    points: Floats,
    k: int,
) -> list[Indices]:
    """Return the initial labels of each run of EM. Only "kernel-k-means" uses `gram`."""
    if k == 1:
        return [np.zeros(len(points), dtype=np.intp)]
    seeding = SEEDINGS["random" if init == "random" else "farthest-first"]

    def squared(chosen: Indices) -> Floats:
        return np.maximum(2 - 2 * points @ points[chosen].T, 0.0)

    if init == "kernel-k-means":
        centers = FlatCenters(gram, weights)  # type: ignore[arg-type]
        squared = centers.squared_from
    starts = []
    for seed in seeds:
        chosen = seeding(squared, weights, k, np.random.RandomState(seed))
        if init == "k-means":
            from sklearn.cluster import KMeans  # not above: this import takes 0.03 s

            k_means = KMeans(len(chosen), init=points[chosen], n_init=1, tol=0.0)
            starts.append(k_means.fit(points, sample_weight=weights).labels_)
        else:
            starts.append(np.argmin(squared(chosen), axis=1))
    if init == "kernel-k-means":
        return [run.labels for run in lloyd(centers, starts, k, max_iter=_MAX_LLOYD_ITER)]
    return starts


# ---------------------------------------------------------------------- points of the sphere


def unit_points(n_modes: int, coordinates: NDArray[Any]) -> Floats:
    """Return the unit vectors with the given coordinates of kPGA."""
    return exp_at_pole(coordinates[:, :n_modes].astype(np.float64))


def _apply_to_columns(function: Any, columns: Indices, rows: Any, start: int) -> NDArray[Any]:
    return function(rows[:, columns], start)


@dataclass(frozen=True)
class _Evaluation:
    """The map to "labels", "posterior" probabilities or the log-density ("evidence") of points.

    Labels maximise the posterior probability if `weighted`, otherwise the density.
    """

    mixture: Any  # Mixture, or DirectionMixture
    output: str
    weighted: bool

    def __call__(self, points: Floats) -> NDArray[Any]:
        """Return the result for unit vectors."""
        densities = self.mixture.log_densities(points)
        joint = densities + np.log(self.mixture.weights)
        if self.output == "labels":
            return np.argmax(joint if self.weighted else densities, axis=1).astype(np.int32)
        if self.output == "posterior":
            return np.asarray(scipy.special.softmax(joint, axis=1))
        return np.asarray(scipy.special.logsumexp(joint, axis=1))

    def of_coordinates(self, coordinates: NDArray[Any]) -> NDArray[Any]:
        """Return the result for coordinates of kPGA."""
        return self(unit_points(self.mixture.n_modes, coordinates))

    def of_rows(self, by: AnchorMap, rows: Any, start: int, **columns: Any) -> NDArray[Any]:
        """Return the result for rows that `by` maps to unit vectors."""
        return self(replace(by, dtype=rows.dtype).block(rows, **columns).vectors())
