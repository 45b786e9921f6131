"""The sentence on methods for a paper, and the references that it needs."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from .._core.machine import versions
from ..decomposition import KernelPCA
from ..kernels import Kernel, Linear
from ..plots.report import Code, Section
from .inputs import Data
from .models import last_step
from .results import size

_NAMES = {
    "KernelPCA": ("kernel principal component analysis", "scholkopf1998nonlinear"),
    "KernelPGA": ("kernel principal geodesic analysis", "awate2014kernel"),
    "KernelPNS": ("kernel principal nested spheres", "awate2016robust"),
    "GeodesicMixture": ("a mixture of Gaussians on the sphere of a kernel", "awate2014kernel"),
    "HypersphericalKMeans": ("k-means on the sphere of a kernel", "courty2012geodesic"),
    "KernelKMeans": ("kernel k-means", ""),
    "KernelSpectralClustering": ("spectral clustering", "ng2002spectral"),
    "KernelRidgeRegressionClassifier": (
        "a classifier by kernel ridge regression on each class",
        "lee2019extrinsic",
    ),
    "PerTurbo": ("the classifier PerTurbo", "courty2012geodesic"),
    "NestedSpheresClassifier": ("a classifier on principal nested spheres", "awate2016robust"),
    "PatchDenoiser": ("kernel PCA of image patches", "schraudolph2006fast"),
    "VeroneseWhitney": ("a Gaussian kernel of planar shapes", "lee2019extrinsic"),
    "LogEuclidean": ("a log-Euclidean Gaussian kernel", "jayasumana2013kernel"),
    "Gaussian": ("a Gaussian kernel", ""),
    "Linear": ("a linear kernel", ""),
}
_LETTERS = {r"{\"o}": "ö", r"{\"u}": "ü", r"{\c{c}}": "ç"}


@cache
def references() -> dict[str, str]:
    """Return the BibTeX entries of ``references.bib`` by key."""
    text = files(__package__).joinpath("references.bib").read_text("utf-8")
    entries = re.findall(r"^@\w+\{(\w+),\n.*?^\}", text, re.DOTALL | re.MULTILINE)
    parts = re.findall(r"^@.*?^\}", text, re.DOTALL | re.MULTILINE)
    return dict(zip(entries, parts, strict=True))


def citing_section(model: Any, data: Data | None) -> Section:
    """Return the section with a sentence on methods and BibTeX entries."""
    estimator = last_step(model)
    kernel = getattr(estimator, "kernel_", getattr(estimator, "kernel", None))
    kernel = getattr(kernel, "kernel_", kernel)  # of Normalized
    used = [_described(estimator)]
    keys = [_key(estimator)]
    if type(estimator) is KernelPCA and isinstance(kernel, Linear):
        used, keys = ["principal component analysis"], []
    elif isinstance(kernel, Kernel):
        sigma = getattr(kernel, "sigma_", None)
        width = "" if sigma is None else f" (bandwidth {float(sigma):.3g})"
        used.append(_described(kernel) + width)
        keys.append(_key(kernel))
    what = "The image" if data is None else size(data)
    was = "was" if data is None else "were"
    standardised = "" if estimator is model else ", after standardising the columns"
    sentence = (
        f"{what} {was} analysed with {' and '.join(used)}{standardised}, as implemented in "
        f"orthodrome {dict(versions('orthodrome'))['orthodrome']}."
    )
    entries = [references()[key] for key in dict.fromkeys(["orthodrome", *keys]) if key]
    return Section(
        "For your paper",
        [Code(sentence, "Methods:"), Code("\n".join(entries), "References (BibTeX):")],
    )


def _key(used: Any) -> str:
    name = type(used).__name__
    if name == "RobustKernelPCA":
        return "awate2016robust" if used.method == "pursuit" else "schreurs2021outlier"
    if name == "KernelSpectralClustering" and used.laplacian == "ncut":
        return "shi2000normalized"
    return _NAMES.get(name, ("", ""))[1]


def _described(used: Any) -> str:
    """Return the name of a method or kernel, with the authors and year of its reference."""
    name = type(used).__name__
    default = "robust kernel PCA" if name == "RobustKernelPCA" else f"the kernel {name}"
    text, key = _NAMES.get(name, (default, ""))[0], _key(used)
    if not key:
        return text
    entry = references()[key]
    for code, letter in _LETTERS.items():
        entry = entry.replace(code, letter)
    authors = re.findall(r"author\s*= \{(.*)\},", entry)[0].split(" and ")
    year = re.findall(r"year\s*= \{(\d+)\}", entry)[0]
    families = [author.split(",")[0] for author in authors]
    who = " and ".join(families) if len(families) < 3 else f"{families[0]} et al."
    return f"{text} ({who}, {year})"
