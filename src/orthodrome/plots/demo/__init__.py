"""The demonstration: PCA, kernel PCA and kernel PGA side by side, as one page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..._core.files import writable_folder
from .._matplotlib import house_style, require_matplotlib
from ..report import write_report
from .geodesic import GEODESIC_TASKS, run_geodesic
from .page import make_sections
from .studies import TASKS, Settings, run_studies

__all__ = ["Settings", "run_demo"]

TITLE = "orthodrome: PCA, kernel PCA and kernel PGA side by side"
_LEAD = (
    "Principal component analysis (PCA) finds the directions in which data vary most. Kernel PCA "
    "does the same in the feature space of a kernel; with a Gaussian kernel, data lie on a sphere "
    "there. Kernel principal geodesic analysis (kernel PGA) follows the great circles of that "
    "sphere. This page sets them side by side on data that ship with scikit-learn and on simulated "
    "directions. Every number on it was computed on this machine, in {seconds:.0f} seconds, by the "
    "run that wrote it."
)


_DEFAULTS = Settings()


def _no_report(done: int, total: int, task: str) -> None:
    pass


def run_demo(
    folder: str | os.PathLike[str],
    *,
    command: Sequence[str] = ("orthodrome", "demo"),
    settings: Settings = _DEFAULTS,
    progress: Callable[[int, int, str], None] = _no_report,
) -> Path:
    """Compute the demonstration and write ``index.html`` and its figures into a folder.

    Parameters
    ----------
    folder : str or path
        Where to write; it is made if need be. Nothing is written before everything is computed.
    command : sequence of str
        The command line, shown on the page.
    settings : Settings, optional
        Sizes, noise and seed.
    progress : callable, optional
        Called with the number of tasks done, the number of tasks, and the name of the next one;
        at the end with an empty name.

    Returns
    -------
    Path
        The page.
    """
    require_matplotlib()
    started = time.perf_counter()
    names = (*TASKS, *GEODESIC_TASKS, "figures and page", "")
    steps = iter(range(len(names)))

    def begin() -> None:
        done = next(steps)
        progress(done, len(names) - 1, names[done])

    with writable_folder(Path(folder)) as target:
        studies = run_studies(settings, begin)
        geodesic = run_geodesic(studies, begin)
        begin()
        with house_style():
            sections = make_sections(studies, geodesic, command)
        lead = _LEAD.format(seconds=time.perf_counter() - started)
        page = write_report(target / "index.html", TITLE, sections, lead=lead, pictures_beside=True)
        begin()
    return page
