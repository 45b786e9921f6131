"""Mutants of source files: small changes by cosmic-ray, drawn at random and found again later.

A place is where something can be changed; a draw takes places, and one change for each, so that
an arithmetic sign, which has many changes, does not count more than a comparison. Left out, since
no test could notice them or every test would:

- changes of annotations and docstrings, of the marks `*` and `/` in a list of parameters, and of
  lines marked `pragma: no cover`;
- `copy=False` and `strict=True`: one more copy, or one guard less against ourselves;
- what does not compile, or with a warning (`is` beside a literal);
- bitwise signs and shifts in place of arithmetic ones, which floats do not have.
"""

from __future__ import annotations

import ast
import functools
import itertools
import random
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Mutant", "draw", "mutated"]

ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}


@dataclass(frozen=True)
class Mutant:
    """A change, named by what it changes and not by the number of its line."""

    file: str  # relative to the package
    inside: str  # the function, with its classes; "" for the module
    operator: str
    was: str  # the line, without its indentation
    now: str
    nth: int  # among those that are equal in all of the above

    @staticmethod
    def of(said: dict[str, Any]) -> Mutant:
        return Mutant(**{name: said[name] for name in Mutant.__dataclass_fields__})

    def said(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.file}, {self.inside or 'module'}: {self.was} → {self.now}"


def draw(package: Path, folder: str, number: int, seed: int) -> list[Mutant]:
    """Draw mutants of the modules of a folder; a larger number begins with those of a smaller."""
    places = [
        (path, start, changes)
        for path in sorted((package / folder).rglob("*.py"))
        for start, changes in sorted(_places(path).items())
    ]
    rng = random.Random(f"{seed} {folder}")
    rng.shuffle(places)
    drawn = (_one_of(package, path, changes, rng) for path, _, changes in places)
    return list(itertools.islice(filter(None, drawn), number))


def mutated(package: Path, mutant: Mutant) -> tuple[str, int] | None:
    """Return the file with the change and the line where it begins; None if it is there no more."""
    path = package / mutant.file
    if not path.exists():
        return None
    for occurrence in _alike(path, mutant.operator, mutant.was):
        if _named(path, mutant.file, mutant.operator, occurrence) == mutant:
            changed = _changed(path, mutant.operator, occurrence)
            return changed and changed[:2]
    return None


def _one_of(
    package: Path, path: Path, changes: list[tuple[str, int]], rng: random.Random
) -> Mutant | None:
    name = path.relative_to(package).as_posix()
    shuffled = rng.sample(changes, len(changes))
    return next(filter(None, (_named(path, name, *change) for change in shuffled)), None)


# ---------------------------------------------------------------------------- changes of a file


@functools.cache
def _operators() -> dict[str, Any]:
    """Those that need no more than the place where they act."""
    from cosmic_ray.plugins import get_operator, operator_names

    found = {name: get_operator(name) for name in sorted(operator_names())}
    return {
        name: operator()
        for name, operator in found.items()
        if not operator.arguments() and _sensible(name)
    }


def _sensible(name: str) -> bool:
    kind, _, pair = name.rpartition("/")[2].partition("BinaryOperator_")
    was, _, now = pair.partition("_")
    return kind != "Replace" or (was in ARITHMETIC) == (now in ARITHMETIC)


@functools.cache
def _tree(path: Path) -> Any:
    from cosmic_ray.ast import get_ast

    return get_ast(path.read_text(encoding="utf-8"))


@functools.cache
def _places(path: Path) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Where a file can be changed, and how: names of operators and which of their occurrences."""
    from cosmic_ray.ast import ast_nodes

    places: dict[tuple[int, int], list[tuple[str, int]]] = {}
    nodes = list(ast_nodes(_tree(path)))
    for name, operator in _operators().items():
        found = (place for node in nodes for place in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(found):
            places.setdefault(start, []).append((name, occurrence))
    return places


@functools.cache
def _changed(path: Path, operator: str, occurrence: int) -> tuple[str, int, str, str] | None:
    """Return the changed file, the number of the changed line, and that line before and after."""
    from cosmic_ray.mutating import mutate_code

    source = path.read_text(encoding="utf-8")
    text = mutate_code(source, _operators()[operator], occurrence)
    meaning = text and _meaning(text)
    if not text or meaning in (None, _meaning(source)):
        return None
    before, after = source.splitlines(), text.splitlines()
    line, column = _starts(path)[operator, occurrence]
    was = before[line - 1]
    if "pragma: no cover" in was or was[:column].endswith(("copy=", "strict=")):
        return None
    changed = next(b for a, b in zip(before, after, strict=False) if a != b)
    removed = len(after) < len(before)  # with the empty lines above
    return text, line, _plain(was), "" if removed else _plain(changed)


@functools.cache
def _starts(path: Path) -> dict[tuple[str, int], tuple[int, int]]:
    return {change: start for start, changes in _places(path).items() for change in changes}


def _plain(line: str) -> str:
    return " ".join(line.split())


@functools.lru_cache(maxsize=4)
def _meaning(source: str) -> str | None:
    """The syntax tree without what is left out; None of what does not compile."""
    try:
        tree = ast.parse(source)
        with warnings.catch_warnings(action="error", category=SyntaxWarning):
            compile(tree, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, SyntaxWarning):
        return None
    return ast.dump(_Bare().visit(tree))


class _Bare(ast.NodeTransformer):
    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        before = [*node.posonlyargs, *node.args]
        without = [None] * (len(before) - len(node.defaults))
        node.kwonlyargs = [*before, *node.kwonlyargs]
        node.kw_defaults = [*without, *node.defaults, *node.kw_defaults]
        node.posonlyargs, node.args, node.defaults = [], [], []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        return ast.Pass() if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _named(path: Path, file: str, operator: str, occurrence: int) -> Mutant | None:
    """Return what a change is called; None if it is none."""
    changed = _changed(path, operator, occurrence)
    if changed is None:
        return None
    _, line, was, now = changed
    same = [
        other
        for other in _alike(path, operator, was)
        if other < occurrence
        and (found := _changed(path, operator, other))
        and found[2:] == (was, now)
        and _inside(path, found[1]) == _inside(path, line)
    ]
    return Mutant(file, _inside(path, line), operator, was, now, len(same))


def _alike(path: Path, operator: str, was: str) -> list[int]:
    """Return the occurrences of an operator on lines of a given text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        occurrence
        for (name, occurrence), (line, _) in _starts(path).items()
        if name == operator and _plain(lines[line - 1]) == was
    ]


@functools.cache
def _functions(path: Path) -> list[tuple[int, int, str]]:
    return list(_spans(ast.parse(path.read_text(encoding="utf-8")), ""))


def _spans(node: ast.AST, above: str) -> Iterator[tuple[int, int, str]]:
    for child in ast.iter_child_nodes(node):
        name = above
        if isinstance(child, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name = f"{above}.{child.name}".lstrip(".")
            first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
            yield first, child.end_lineno or first, name
        yield from _spans(child, name)


def _inside(path: Path, line: int) -> str:
    around = [(first, name) for first, last, name in _functions(path) if first <= line <= last]
    return max(around, default=(0, ""))[1]
