"""Noisy walks: the excess error of KHA, KHA/t, KHA/et and KHA-SMD over passes.

The KHA paper's Figure 4, left (§5.4): frames of a walk in absolute coordinates with noise, 25
components, the Gaussian kernel with σ = √1.5. Walk, units and noise are not given; two walks in
metres with three levels of noise are run. Gains as in usps.py: tuned by hand as in the paper, and
automatic. How well the motion is cleaned, and its pictures, are denoising.py's.

    python experiments/kha/motion.py [--quick]

writes motion.csv, motion.md and motion.png next to this file. Needs the walks (ORTHODROME_DATA).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import usps
from common import (
    Row,
    command_line,
    count,
    kernel_problem,
    load,
    publish,
    side_by_side,
)

from orthodrome.kernels import Gaussian

N_COMPONENTS = 25
SIGMA = math.sqrt(1.5)
CURVES = usps.Size()


@dataclass(frozen=True)
class Size:
    """How much is run."""

    walks: tuple[str, ...] = ("cmu_walk_35", "cmu_walk_02")
    metres: tuple[float, ...] = (0.01, 0.03, 0.1)
    curves: usps.Size = CURVES

    @staticmethod
    def of(quick: bool) -> Size:
        return Size(("cmu_walk_35",), (0.03,), usps.Size.of(True)) if quick else Size()


def measure(size: Size, quick: bool) -> list[Row]:
    jobs = [(name, metres, size.curves) for name in size.walks for metres in size.metres]
    parts = side_by_side(on_one_walk, jobs, quick=quick)
    return [row for part in parts for row in part]


def on_one_walk(name: str, metres: float, size: usps.Size) -> list[Row]:
    data = load(name)
    frames = data.frames[data.trial == 0].astype(np.float64)
    noisy = frames + metres * np.random.default_rng(0).standard_normal(frames.shape)
    title = f"walk {name[-2:]}, noise {1000 * metres:g} mm"
    X = noisy.reshape(len(noisy), -1)
    return usps.tuned(kernel_problem(title, X, Gaussian(SIGMA), N_COMPONENTS), size)


def page(rows: list[Row]) -> str:
    found = usps.Findings(rows)
    text = [
        "# Noisy walks: excess error over passes",
        "",
        "Written by `experiments/kha/motion.py` (`make experiments`); do not edit. Frames of the "
        f"first trial, 31 joints in metres, {N_COMPONENTS} components, Gaussian kernel with σ = "
        "√1.5 (KHA paper, Figure 4, left, which shows curves without numbers; the paper does not "
        "give the walk, its units or the noise). The excess error is E(A)/E_min - 1, as a "
        f"geometric mean over {count(len(found.seeds), 'seed')}. There is no Rayleigh-Ritz step "
        "and no pilot. Gains are as on the page of [USPS](usps.md).",
        "",
        "![Excess error over passes](motion.png)",
    ]
    for walk in found.kernels:
        text += ["", f"## {walk[0].upper()}{walk[1:]}", "", *usps.errors_table(found, walk)]
    without = [walk for walk in found.kernels if ("smd", "zero") not in found.settings(walk)]
    if without:
        text += ["", f"KHA-SMD from ρ_0 = 0 was not run with {'; '.join(without)}."]
    text += ["", "## Orders", ""]
    text += [line for walk in found.kernels for line in usps.orderings(found, walk)]
    return "\n".join(text) + "\n"


figure = partial(usps.figure, what="", limits=(1e-3, 400.0))
compared = partial(usps.compared, experiment="motion", draws=", one draw of the noise")


def main(quick: bool = False) -> None:
    rows = measure(Size.of(quick), quick)
    publish("motion", rows, page, figure, quick=quick, compared=compared)


if __name__ == "__main__":
    command_line(main, __doc__)
