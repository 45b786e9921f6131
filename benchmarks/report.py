"""Write the page of results and its figures from results.json."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from harness import Curve, Measured, Missing, Result, Series, Table

KINDS: dict[str, type] = {"measured": Measured, "table": Table, "curve": Curve}

#: The order of `make bench-full` and of the page: what was promised first. Others follow by name.
ORDER = (
    "bench_million",
    "bench_mnist",
    "bench_growth",
    "bench_roofline",
    "bench_anchors",
    "bench_nystroem",
    "bench_warm_starts",
    "bench_dask",
    "bench_foundation",
    "bench_sphere",
    "bench_clustering",
    "bench_directions",
    "bench_shapes",
    "bench_classes",
    "bench_hebbian",
    "bench_nested",
    "bench_small",
    "bench_solvers",
    "bench_start",
)

_EM = "EM, 15 iterations, N = 20,000, 10 modes, 5 full components, means by "
_KRRC = "KRRC, VW Gaussian: fit to 1,992 leaves and predict the other 1,327, compared with "

#: The summary at the top of the page: file, start of the row's name, and a short label.
HEADLINES = (
    ("bench_foundation", "KernelPCA.fit", "Kernel PCA, 10,000 points, 16 components"),
    ("bench_foundation", "Peak memory", "Kernel PCA, 20,000 points, peak memory"),
    ("bench_sphere", "KernelPGA.fit compared with our", "Kernel PGA, 10,000 points, 16 components"),
    ("bench_sphere", "Weighted Karcher mean", "Karcher mean, 10,000 points on S⁵⁰"),
    ("bench_sphere", "Tangent PCA", "Tangent PCA, 10,000 points on S⁵⁰"),
    (
        "bench_million",
        "KernelPGA of 1,000,000 x",
        "Kernel PGA, a million points, 512 anchors",
    ),
    (
        "bench_million",
        "KernelPGA of 1,000,000 points compared with",
        "Kernel PGA, a million points compared with a tenth of them",
    ),
    ("bench_mnist", "Nyström", "Kernel PCA of MNIST by anchors, to 1 % of the variance"),
    (
        "bench_nystroem",
        "KernelPCA(solver='nystroem') of 31",
        "Nyström at equal accuracy, 31 groups",
    ),
    (
        "bench_directions",
        "HypersphericalKMeans of 10,000 x 384 float32",
        "k-means of 10,000 unit vectors, 50 clusters",
    ),
    (
        "bench_directions",
        "k-means of 1,000,000 x",
        "k-means of a million unit vectors on disk, 100 clusters",
    ),
    ("bench_nested", "Nested spheres", "Nested spheres, 1,000 points on S²⁰"),
    (
        "bench_clustering",
        f"{_EM}'karcher'",
        "EM on the sphere, 20,000 points, Karcher means",
    ),
    (
        "bench_clustering",
        f"{_EM}'likelihood'",
        "EM on the sphere, 20,000 points, likeliest means",
    ),
    (
        "bench_clustering",
        "EM compared with geomstats",
        "EM on the sphere, 20,000 points, Karcher means, compared with geomstats",
    ),
    (
        "bench_shapes",
        f"{_KRRC}a loop over pairs",
        "Classes of 3,319 leaves, compared with a loop over pairs",
    ),
    ("bench_shapes", f"{_KRRC}SVC", "Classes of 3,319 leaves, compared with SVC"),
    ("bench_hebbian", "A KHA-SMD pass", "A Hebbian pass over 3,000 points"),
    ("r_kernlab", "A pass", "A Hebbian pass over 1,000 points"),
)


# ---------------------------------------------------------------------------- numbers


def show(values: list[float], unit: str) -> str:
    low, middle, high = (show_one(f(values), unit) for f in (min, statistics.median, max))
    return middle if len(values) == 1 else f"{middle} ({low} to {high})"


def show_one(value: float, unit: str) -> str:
    return f"{value:.3g} s" if unit == "s" else f"{value / 2**30:.3g} GiB"


def show_ratio(row: Measured) -> str:
    low, high = row.ratio_range
    return f"{row.ratio:.3f} ({low:.3f} to {high:.3f})"


def verdict(row: Measured) -> str:
    if not row.accurate:
        return "not comparable: the required accuracy was missed"
    if row.limit is not None:
        return "reached" if max(row.ours) <= row.limit else "missed"
    if row.target is None:
        return ""
    return "reached" if row.ratio <= row.target else "missed"


def line(result: Result) -> str:
    """What the runner prints of a result."""
    if isinstance(result, Measured):
        return f"{result.name}: ratio {show_ratio(result)} {verdict(result)}"
    if isinstance(result, Missing):
        return f"LEFT OUT: {result.name}: {result.reason}"
    if isinstance(result, Curve):
        ends = (f"{s.label} {s.medians[-1]:.3g} s at {s.n[-1]:,}" for s in result.series)
        return f"{result.name}: {'; '.join(ends)}"
    return f"{result.name}: a table of {len(result.rows)} rows"


# ---------------------------------------------------------------------------- the store


def stored(result: Result) -> dict[str, Any]:
    kind = next(name for name, kind in KINDS.items() if isinstance(result, kind))
    return {"kind": kind} | dataclasses.asdict(result)


def restored(data: dict[str, Any]) -> Measured | Table | Curve:
    values = {key: value for key, value in data.items() if key not in ("kind", "conditions")}
    kind = KINDS[data.get("kind", "measured")]
    if kind is Curve:
        values["series"] = [Series(**one) for one in values["series"]]
    return kind(**values)


def merged(
    before: dict[str, Any] | None,
    results: list[Result],
    *,
    conditions: dict[str, Any],
    seconds: float,
    full: bool,
) -> dict[str, Any]:
    """Put the results of a run in the place of those of the same names.

    Earlier ones of other names are kept, with the conditions that they were measured in: by a quick
    run, and where something was missing. A full run with everything there replaces all.
    """
    rows = [stored(one) for one in results if not isinstance(one, Missing)]
    complete = full and len(rows) == len(results)
    kept = [] if complete or before is None else rows_of(before)
    new = {row["name"]: row | {"conditions": conditions} for row in rows}
    old = [new.pop(row["name"], row) for row in kept]
    return {
        "conditions": conditions,
        "seconds": seconds,
        "full": full,
        "rows": [*old, *new.values()],
    }


def rows_of(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of an entry, each with the conditions that it was measured in."""
    shared = conditions_of(entry)
    return [{"conditions": shared} | row for row in entry["rows"]]


def conditions_of(entry: dict[str, Any]) -> dict[str, Any]:
    keys = ("date", "machine", "versions")
    return entry.get("conditions") or {key: entry[key] for key in keys}


def ordered(results: Iterable[str]) -> list[str]:
    """The names of files in the order of the page."""
    return sorted(results, key=lambda name: (ORDER.index(name) if name in ORDER else 99, name))


# ---------------------------------------------------------------------------- the page


def page(results: dict[str, Any]) -> str:
    text = [
        "# Benchmarks",
        "",
        "Written by `benchmarks/run.py` (`make bench`, `make bench-full`) from `results.json`; do "
        "not edit. Both sides run in turn, with the same threads, after a warm-up that also checks "
        "their accuracy. They run in one process, or in two if a note says so. Values are medians, "
        "with the range in brackets. A ratio is ours divided by theirs, so smaller is better; its "
        "range is over neighbouring runs. Memory is the anonymous memory (RssAnon) of a fresh "
        "process.",
        "",
        *headlines(results),
    ]
    for name in ordered(results):
        entry = results[name]
        conditions = conditions_of(entry)
        text += [
            "",
            f"## {name}",
            "",
            f"{described(conditions)}; {entry['seconds']:.0f} s in all.",
        ]
        for data in rows_of(entry):
            text += section(restored(data))
            if data["conditions"] != conditions:
                text += ["", f"Kept from an earlier run: {described(data['conditions'])}."]
            text += ["", "<!-- end -->"]
    return "\n".join(text) + "\n"


def described(conditions: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in conditions["versions"].items())
    return f"{conditions['date']}; {conditions['machine']}; {packages}"


def section(result: Measured | Table | Curve) -> list[str]:
    text = ["", f"### {result.name}", ""]
    if isinstance(result, Measured):
        text += comparison(result)
    elif isinstance(result, Curve):
        text += growth(result)
    else:
        text += markdown(result.columns, result.rows)
    return text + (["", result.note] if result.note else [])


def markdown(columns: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *rows)]


def comparison(row: Measured) -> list[str]:
    goal = "" if row.target is None else f"; goal {row.target:.3g}: {verdict(row)}"
    if row.limit is not None:
        goal = f"; goal for ours, at most {show_one(row.limit, row.unit)}: {verdict(row)}"
    sides = (
        (row.ours_label, row.ours, row.ours_error),
        (row.theirs_label, row.theirs, row.theirs_error),
    )
    cells = [
        [label, show(values, row.unit), "" if error is None else f"{error:.1e}"]
        for label, values, error in sides
    ]
    text = markdown(["", "median (range)", "error"], cells)
    counts = sorted({len(row.ours), len(row.theirs)}, reverse=True)
    runs = " and ".join(f"{count} run{'s' * (count != 1)}" for count in counts)
    text += ["", f"Ratio {show_ratio(row)}, {runs}{goal}."]
    if row.required is not None:
        text.append(f"Both sides had to reach an error of {row.required:.2g}.")
    return text


def growth(curve: Curve) -> list[str]:
    sizes = sorted({n for series in curve.series for n in series.n})
    rows = []
    for series in curve.series:
        exponent = "" if series.exponent is None else f"{series.exponent:.2f}"
        rows.append([series.label, *cells(series, sizes), exponent, worst(series, curve.required)])
    columns = ["", *(f"N = {n:,}" for n in sizes), "exponent", "error"]
    text = [f"![{curve.name}](figures/{file_of(curve)})", "", *markdown(columns, rows), ""]
    runs = max(len(values) for series in curve.series for values in series.seconds)
    text.append(
        f"Medians of {runs} runs in turn (range); peak memory, sampled every 2 ms, once in a "
        "fresh process, minus the memory before. The exponent of N is that of the last step."
    )
    if curve.required is not None:
        text.append(f"All methods had to reach an error of {curve.required:.2g}.")
    return text


def cells(series: Series, sizes: list[int]) -> Iterator[str]:
    for n in sizes:
        if n not in series.n:
            yield ""
            continue
        at = series.n.index(n)
        memory = series.bytes[at]
        shown = "" if memory is None else f"; {memory / 2**20:.3g} MiB"
        yield show(series.seconds[at], "s") + shown


def worst(series: Series, required: float | None) -> str:
    errors = [error for error in series.errors if error is not None]
    if not errors:
        return ""
    missed = required is not None and max(errors) > required
    return f"{max(errors):.1e}" + (", not comparable" if missed else "")


# ---------------------------------------------------------------------------- summary


def headlines(results: dict[str, Any]) -> list[str]:
    """Return the summary table."""
    rows = []
    for file, start, label in HEADLINES:
        found = (restored(row) for row in rows_of(results[file])) if file in results else ()
        for row in found:
            if isinstance(row, Measured) and row.name.startswith(start) and row.accurate:
                sides = [show(values, row.unit).split(" (")[0] for values in (row.ours, row.theirs)]
                rows.append([label, sides[0], f"{sides[1]}, {row.theirs_label}", show_ratio(row)])
    return markdown(["", "ours", "compared with", "ratio (range)"], rows)


# ---------------------------------------------------------------------------- figures


def file_of(curve: Curve) -> str:
    return re.sub(r"[^a-z0-9]+", "_", curve.name.lower()).strip("_")[:60] + ".png"


def write_figures(results: dict[str, Any], folder: Path) -> None:
    """Draw every curve anew, and remove the figures of those that are gone."""
    curves = [
        found
        for entry in results.values()
        for row in rows_of(entry)
        if isinstance(found := restored(row), Curve)
    ]
    folder.mkdir(exist_ok=True)
    for left in set(folder.glob("*.png")) - {folder / file_of(curve) for curve in curves}:
        left.unlink()
    for curve in curves:
        content = figure(curve)
        file = folder / file_of(curve)
        if not file.exists() or file.read_bytes() != content:
            file.write_bytes(content)


def figure(curve: Curve) -> bytes:
    """Seconds, and peak memory where it was measured, over N, on logarithmic axes."""
    from matplotlib.ticker import LogLocator

    from orthodrome.plots._classes import class_style
    from orthodrome.plots._matplotlib import figure_of, house_style, png

    with_memory = any(value for series in curve.series for value in series.bytes)
    with house_style():
        drawing = figure_of(None, (9.6 if with_memory else 5.6, 4.2))
        axes = drawing.subplots(1, 2 if with_memory else 1, squeeze=False)[0]
        for index, series in enumerate(curve.series):
            color, marker = class_style(index)
            style = {"color": color, "marker": marker, "markersize": 5, "label": series.label}
            spread = [
                [m - min(v) for m, v in zip(series.medians, series.seconds, strict=True)],
                [max(v) - m for m, v in zip(series.medians, series.seconds, strict=True)],
            ]
            axes[0].errorbar(series.n, series.medians, yerr=spread, capsize=2, **style)
            known = [(n, b / 2**20) for n, b in zip(series.n, series.bytes, strict=True) if b]
            if with_memory and known:
                axes[1].plot(*zip(*known, strict=True), **style)
        sizes = sorted({n for series in curve.series for n in series.n})
        for ax, what in zip(axes, ("seconds", "peak memory, MiB"), strict=False):
            ax.set(xscale="log", yscale="log", xlabel="N", ylabel=what)
            ax.set_xticks(sizes, [f"{n:,}" for n in sizes], rotation=45, ha="right")
            low, high = ax.get_ylim()
            # less than three decades would have a tick or two
            subs = (1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)
            ax.yaxis.set_major_locator(LogLocator(subs=subs))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.minorticks_off()
            ax.grid(alpha=0.3)
        handles, labels = axes[0].get_legend_handles_labels()
        drawing.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
        return png(drawing)
