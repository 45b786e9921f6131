"""What the commands can be told, in the words of their help, and what they were told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Annotated, Any

import typer

__all__ = [
    "CLASSIFIERS",
    "CLUSTERINGS",
    "DECOMPOSITIONS",
    "GIVEN",
    "AsJson",
    "Columns",
    "Components",
    "DataFile",
    "KeepNegative",
    "KernelName",
    "Label",
    "LabelRegex",
    "Labels",
    "Quiet",
    "Seed",
    "Sigma",
    "Standardize",
    "folder_option",
    "method_option",
    "not_empty",
]

# The names of methods are those of ``runs.models``, which takes seconds to import; the help is not
# to wait for it.
DECOMPOSITIONS = ("kpga", "kpca", "kpns", "robust")
CLUSTERINGS = ("mixture", "kmeans", "kernel-kmeans", "spectral")
CLASSIFIERS = ("krrc", "perturbo", "nested-spheres")

#: What follows the program's name, for the page to show.
GIVEN: ContextVar[list[str]] = ContextVar("arguments")

DataFile = Annotated[str, typer.Argument(metavar="DATA", help="csv, tsv, parquet, npy, npz or tps")]
Label = Annotated[
    str | None, typer.Option("--label", metavar="COL", help="column that holds the labels")
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="FILE", help="table of labels, joined on ID or IMAGE (TPS)"),
]
LabelRegex = Annotated[
    str | None,
    typer.Option(
        "--label-regex", metavar="REGEX", help="labels are its first group in IMAGE or ID (TPS)"
    ),
]
KeepNegative = Annotated[
    bool,
    typer.Option("--keep-negative", help="negative coordinates are no missing landmarks (TPS)"),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,…", help="use these columns only, by their names"),
]
KernelName = Annotated[
    str | None,
    typer.Option("--kernel", metavar="NAME", help="default: gaussian; veronese_whitney of shapes"),
]
Sigma = Annotated[
    str | None,
    typer.Option("--sigma", metavar="σ", help="bandwidth: a number, mean or median"),
]
Standardize = Annotated[
    bool,
    typer.Option("--standardize", help="bring every column to mean 0 and variance 1 first"),
]
Components = Annotated[int, typer.Option("--components", "-q", min=1, help="how many coordinates")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="of whatever is random")]
AsJson = Annotated[bool, typer.Option("--json", help="print a summary as JSON on stdout")]
Quiet = Annotated[bool, typer.Option("--quiet", help="no progress and no notes on stderr")]


def not_empty(out: str | None) -> str | None:
    """Refuse a name of no letters."""
    if out == "":
        raise typer.BadParameter("the name is empty; is it a variable that is not set?")
    return out


def folder_option() -> Any:
    """The option that names the folder to write."""
    return typer.Option("--out", metavar="DIR", help="folder to write", callback=not_empty)


def _one_of(names: Sequence[str]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}.")
        return value

    return check


def method_option(names: Sequence[str]) -> Any:
    """The option that names a method, one of some."""
    return typer.Option(
        "--method", metavar="NAME", help="one of " + ", ".join(names), callback=_one_of(names)
    )
