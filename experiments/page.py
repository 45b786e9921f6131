"""The page of all experiments: five papers on one screen, then each experiment with a dot plot."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from reproduce import HERE, Experiment, Fitted
from verdicts import (
    BASELINE,
    CONTRADICTED,
    DIFFERS,
    EXCEEDED,
    HOLDS,
    OPEN,
    ORDER,
    OWN,
    REACHED,
    SAME,
    SHORT,
    STANDARD_ERRORS,
    STRONGER,
    WEAKER,
    Compared,
    counts,
    verdicts,
)

from orthodrome._core.files import write_atomically
from orthodrome.plots._classes import COLORS
from orthodrome.plots.report import Block, Note, Picture, Section, Table, Text, write_report

# two sentences for each paper: what is reached, and every claim that is contradicted here
PAPERS = {
    "kpga": (
        "Awate, Yu and Whitaker, Kernel Principal Geodesic Analysis (2014)",
        "The printed eigenvalues are reached, and kernel PGA preserves neighbourhoods better than "
        "kernel PCA on a sphere and on faces, as published. That its mixtures cluster best is "
        "contradicted on Blood and Liver, where spectral clustering is better.",
    ),
    "kha": (
        "Schraudolph, Günter and Vishwanathan, Fast Iterative Kernel PCA (2006)",
        "KHA/et is better than KHA/t in every experiment, and KHA-SMD removes the published "
        "fraction of the noise from a walk. Two results contradict the paper: KHA-SMD diverges or "
        "is worse than KHA/et on digits and walks unless ρ_0 is 0 instead of the printed 1, and "
        "KHA/t clusters well after 5 passes, not after more than 30.",
    ),
    "rkpns": (
        "Awate, Dhar and Kulkarni, Robust Kernel Principal Nested Spheres (2016)",
        "Nested spheres explain more variance in few modes and preserve neighbourhoods better "
        "than kernel PCA, as published, and with the polynomial kernel they are better features "
        "of MNIST digits by the published amount. With the Gaussian kernel they are worse "
        "features of digits than kernel PCA, which contradicts the paper.",
    ),
    "rkhs_geo": (
        "Courty, Burger and Marteau, Geodesic Analysis on the RKHS Hypersphere (2012)",
        "Hyperspherical k-means reaches all its published accuracies; PerTurbo reaches 8 of 14, "
        "none on Parkinsons, and its geodesic kernel does not clearly help. Two comparisons are "
        "contradicted: on Ecoli spectral clustering is better than the new k-means, and on "
        "Ionosphere it is not.",
    ),
    "krrc": (
        "Lee and Patrangenaru, Extrinsic Kernel Ridge Regression Classifier (2019)",
        "The classifier reaches all its published numbers, within 0.01. Its Riemannian competitor "
        "is poor in the paper, but as good here.",
    ),
}
RULE = (
    "Each experiment has up to three verdicts: on the numbers of the paper's own method, on its "
    "comparisons, and on its baselines. experiments/verdicts.py computes them.",
    "A published number is reached if errors explain the difference from ours: two standard errors "
    "and the rounding of the printed number. The standard error combines that of the paper and "
    "ours. If the paper prints no deviation, we use the deviation of one of our repeats.",
    "A comparison says that one method is better than another. It holds if our difference is more "
    "than two standard errors above zero. It is contradicted if our difference is more than two "
    "below zero, and open otherwise.",
    "If the paper does not give a setting, we run all plausible variants. We report the one that "
    "agrees with most results, and how many there are.",
    "In the plots, dots with bars are our results with ± 2 standard errors. Pale dots are other "
    "variants. Diamonds are published numbers with ± 2 standard errors; if the paper prints none, "
    "a pale bar shows ± 2 deviations of one of our repeats. Blue agrees with the paper and orange "
    "disagrees. Grey is open, or a baseline that differs from the paper.",
)
CHANGED = (
    "We changed this rule after we had seen the first results. The first rule gave one verdict for "
    "all numbers of an experiment together, and used only our standard error. It said “not "
    "reproduced” if the paper prints no error, or if baselines are better here than in the paper."
)
QUICK = (
    "This is a quick run, with fewer repeats, sets and parameters than the papers. Its numbers "
    "are only indicative. make reproduce-full runs the papers' protocols; its last results are in"
    " experiments/RESULTS.md."
)
ROLES = {OWN: "own method", ORDER: "comparisons", BASELINE: "baselines"}
GOOD, UNSURE, BAD = COLORS[0], "0.55", COLORS[1]
COLOR_OF = {
    REACHED: GOOD,
    EXCEEDED: GOOD,
    HOLDS: GOOD,
    SAME: GOOD,
    STRONGER: UNSURE,
    WEAKER: UNSURE,
}
COLOR_OF |= {OPEN: UNSURE, SHORT: BAD, DIFFERS: BAD, CONTRADICTED: BAD}
WIDTH = 7.6  # inches of a plot


@dataclass(frozen=True)
class Paper:
    """A paper: what is reached and contradicted, and its verdicts."""

    title: str
    said: str
    found: str

    def html(self) -> str:
        title, said, found = map(escape, (self.title, self.said, self.found))
        return f"<p><strong>{title}</strong><br>{said}<br><small>{found}</small></p>"


def write(
    chosen: Sequence[Experiment], out: Path, missing: dict[str, str], *, quick: bool, whole: bool
) -> Path:
    """Write index.html and, of a full run of everything, RESULTS.md with its plots."""
    run = [each for each in chosen if not missing.get(each.key) and each.compared]
    rule = [*map(Text, RULE), Note(CHANGED)]
    sections = [
        Section("Five papers", list(papers(run, quick))),
        Section("How results are judged", rule),
        Section("All experiments", list(overview(chosen, run, missing))),
        Section("Numbers of the papers' own methods", list(own_numbers(run))),
        *(section(each) for each in run),
    ]
    title = "Reproduction of five papers"
    target = write_report(out / "index.html", title, sections)
    if not quick and whole:
        pictures = {p.name: p for each in sections for p in each.pictures()}
        for name, picture in pictures.items():
            write_atomically(HERE / f"{name}.{picture.ending}", picture.data)
        text = f"# {title}\n\n" + "\n\n".join(map(in_markdown, sections)) + "\n"
        write_atomically(HERE / "RESULTS.md", text.encode())
    return target


def papers(run: Sequence[Experiment], quick: bool) -> Iterable[Block]:
    if quick:
        yield Note(QUICK)
    for paper, (title, said) in PAPERS.items():
        own = [each for each in run if each.paper == paper]
        found = verdicts([c for each in own for c in each.compared])
        text = "; ".join(f"{ROLES[role]}: {words}" for role, words in found.items() if words)
        yield Paper(title, said if not quick else "", f"In numbers: {text or 'not run'}.")


def overview(
    chosen: Sequence[Experiment], run: Sequence[Experiment], missing: dict[str, str]
) -> Iterable[Block]:
    rows = []
    for each in chosen:
        found = verdicts(each.compared) if each in run else {}
        cells = [found.get(role, "") for role in ROLES]
        if each not in run:
            cells[0] = f"Not run. {missing.get(each.key, '')}".strip()
        last = each.results["runs"][-1]["date"] if each.results["runs"] else ""
        rows.append([each.key, each.about.title, *cells, last])
    yield Table(
        "Three verdicts for each experiment",
        ["experiment", "title", *ROLES.values(), "last run"],
        rows,
    )


def own_numbers(run: Sequence[Experiment]) -> Iterable[Block]:
    every = [(each, c) for each in run for c in each.compared if c.role == OWN]
    found = counts([c for _, c in every], OWN)
    total = found[REACHED] + found[EXCEEDED]
    yield Text(
        f"{total} of {len(every)} published numbers of the papers' own methods are reached "
        f"({found[REACHED]}) or exceeded ({found[EXCEEDED]}); {found[SHORT]} are short and "
        f"{found[DIFFERS]} differ. Most curves and box plots of the papers have no numbers. What "
        "the papers say about them is checked as comparisons."
    )
    rows = [
        [
            c.what,
            f"{c.published:.4g}",
            f"{c.ours.mean:.4g} ± {c.ours.error:.2g}",
            c.finding,
            each.key,
        ]
        for each, c in every
    ]
    yield Table(
        "Published numbers of the own methods (ours ± standard error)",
        ["number", "published", "ours", "finding", "experiment"],
        rows,
    )
    bad = [
        each
        for each in run
        if any(c.role == OWN and c.finding in (SHORT, DIFFERS) for c in each.compared)
    ]
    for each in bad:
        yield Text(f"Why numbers of {each.key} are not reached: {each.about.short}.")


def section(each: Experiment) -> Section:
    about = each.about
    found = verdicts(each.compared)
    joined = "; ".join(f"{ROLES[role]}: {words}" for role, words in found.items() if words)
    blocks: list[Block] = [
        Text(f"The paper ({about.where}): {about.says}"),
        Note(f"Verdicts: {joined}."),
    ]
    if about.partial:
        blocks.append(Text(f"Protocol: {about.partial}"))
    content = dots(each)
    words = f"{about.title}: published results and ours."
    name = f"{each.paper}/{each.name}"
    blocks.append(Picture(name, content, words, caption_of(each), 96 * WIDTH))
    for path in each.pictures:
        name, still = f"{each.paper}/{path.stem}", "The original is grey."
        blocks.append(Picture(name, path.read_bytes(), f"{about.title}.", still, 400))
    blocks += [variants(part) for part in each.parts if part.open]
    for label, text in (("What differs", about.differs), ("What was tried", about.tried)):
        blocks += [Text(f"{label}: {text}")] if text else []
    blocks += [Text(f"Likely reason: {about.reason}")] if about.reason else []
    for last in each.results["runs"]:
        blocks += [Note(f"Warning of the run: {text}") for text in last["warnings"]]
    runs = ", ".join(
        f"{r['date']} ({r['jobs']} job{'s' * (r['jobs'] != 1)}, {r['seconds']} s)"
        for r in each.results["runs"]
    )
    blocks.append(Text(f"Runs: {runs}. python experiments/reproduce.py --only {each.key}"))
    return Section(f"{about.title} ({each.key})", blocks)


def caption_of(each: Experiment) -> str:
    published = any(c.role != ORDER for c in each.compared)
    return "Dots: ours. Diamonds: published." if published else "Our results."


def variants(part: Fitted) -> Table:
    others = {f"{name} (not as in the paper)": own for name, own in part.others.items() if own}
    found = {name: verdicts(own) for name, own in (part.tried | others).items()}
    roles = {r: word for r, word in ROLES.items() if any(own[r] for own in found.values())}
    rows = [
        ["→ " * (name == part.best) + name, *(own[role] for role in roles)]
        for name, own in found.items()
    ]
    best = f"Of {len(part.tried)} variants, “{part.best}” fits best."
    caption = f"Not given in the paper: {part.open}. {best}"
    return Table(caption, ["variant", *roles.values()], rows)


# ---------------------------------------------------------------------------- plots


def dots(each: Experiment) -> bytes:
    """Draw every comparison, one panel for each quantity."""
    from matplotlib.figure import Figure

    drawn = [(c, others(part, c)) for part in each.parts for c in part.tried[part.best]]
    drawn.sort(key=lambda pair: pair[0].role == ORDER)  # numbers first
    panels: dict[tuple[bool, str], list[tuple[Compared, list[float]]]] = {}
    for c, pale in drawn:
        panels.setdefault((c.role == ORDER, c.unit), []).append((c, pale))
    heights = [len(rows) + 2.2 for rows in panels.values()]
    figure = Figure(figsize=(WIDTH, 0.23 * sum(heights) + 0.2), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for ax, ((is_order, unit), rows) in zip(axes, panels.items(), strict=True):
        panel(ax, rows)
        ax.set_xlabel(f"{unit}, advantage of the first" if is_order else unit, fontsize=8)
        if is_order:
            ax.axvline(0, color="0.3", linewidth=0.8)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130, metadata={"Software": None})
    return content.getvalue()


def others(part: Fitted, compared: Compared) -> list[float]:
    """Our numbers with the other variants."""
    same = [c for name, own in part.tried.items() if name != part.best for c in own]
    return [c.ours.mean for c in same if c.what.split(" (")[0] == compared.what.split(" (")[0]]


def panel(ax: Any, rows: list[tuple[Compared, list[float]]]) -> None:
    finite = [c.ours.mean for c, _ in rows if math.isfinite(c.ours.mean)] or [0.0]
    width = max(map(abs, finite)) or 1.0
    for place, (c, pale) in enumerate(rows):
        color = COLOR_OF[c.finding]
        here = [value for value in pale if math.isfinite(value) and abs(value) < 3 * width]
        ax.plot(here, [place] * len(here), ".", color="0.8", markersize=5, zorder=1)
        if math.isfinite(c.ours.mean):
            bar = STANDARD_ERRORS * c.ours.error
            style = {"markersize": 4.5, "linewidth": 1.4, "capsize": 2, "zorder": 3}
            ax.errorbar(c.ours.mean, place, xerr=bar, fmt="o", color=color, **style)
        else:
            ax.text(0, place, " diverges", color=color, va="center", fontsize=7)
        if c.role != ORDER:
            unknown = math.isnan(c.theirs)
            bar = STANDARD_ERRORS * (c.ours.deviation if unknown else c.theirs)
            style = {"color": "black", "markerfacecolor": "none", "markersize": 4.5, "zorder": 2}
            style |= {"ecolor": "0.75" if unknown else "black", "linewidth": 0.9, "capsize": 2}
            ax.errorbar(c.published, place, xerr=max(bar, c.rounding), fmt="D", **style)
    ax.set_yticks(range(len(rows)), [c.what for c, _ in rows], fontsize=7)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.93", linewidth=0.7)
    ax.set_axisbelow(True)


# ---------------------------------------------------------------------------- Markdown


def in_markdown(given: Section) -> str:
    """Return a section as Markdown."""
    return "\n\n".join([f"## {given.title}", *map(block_in_markdown, given.blocks)])


def block_in_markdown(block: Any) -> str:
    if isinstance(block, Table):
        rows = [block.header, ["---"] * len(block.header), *block.rows]
        lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        return "\n".join([f"{block.caption.removesuffix('.')}:", "", *lines])
    if isinstance(block, Paper):
        return f"**{block.title}**  \n{block.said}  \n*{block.found}*"
    if isinstance(block, Picture):
        return f"![{block.alt}]({block.name}.{block.ending})\n\n{block.caption}"
    return f"**{block.text}**" if isinstance(block, Note) else str(block.text)
