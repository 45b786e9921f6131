"""The command classify: fit a classifier and test it, on folds or on another file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold

from ..plots import confusion
from ..plots.report import Block, Note, Picture, Section, Table, Text
from .inputs import Data, InputError
from .models import Choice, last_step, make_model
from .pages import count, opening_blocks
from .results import Report, Result, Work, silent


@dataclass(frozen=True)
class Classification(Result):
    """The result of :func:`classify`.

    Attributes
    ----------
    classes : ndarray
        The classes of the training data and of the tested rows.
    tested : Data
        The rows that were predicted: those of the test file, or `data` in cross-validation.
    predicted : ndarray of shape (n,)
        Their predicted labels.
    accuracies : tuple of float
        One accuracy per fold, or one for the test file; empty if it has no labels.
    """

    file = "predictions.csv"

    classes: NDArray[Any]
    tested: Data
    predicted: NDArray[Any]
    accuracies: tuple[float, ...]

    @property
    def error(self) -> float | None:
        """Standard error of the mean accuracy. Folds share training rows, so it is approximate."""
        n = len(self.accuracies)
        return float(np.std(self.accuracies, ddof=1) / np.sqrt(n)) if n > 1 else None

    @property
    def majority(self) -> float:
        """Accuracy of always predicting the largest class."""
        counts = np.unique(np.asarray(self.tested.labels), return_counts=True)[1]
        return float(counts.max()) / len(self.predicted)

    def test_description(self) -> str:
        """Return how the classifier was tested."""
        if self.tested is self.data:
            return f"with {len(self.accuracies)}-fold stratified cross-validation"
        return f"on the {len(self.tested)} rows of {self.tested.path}"

    @property
    def rows(self) -> Data:
        """The rows of the table: the predicted rows."""
        return self.tested

    def columns(self) -> dict[str, Iterable[Any]]:
        """Return the predicted labels."""
        return {"predicted": self.predicted.tolist()}

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return the summary as a dict for JSON and as lines of text."""
        n = len(self.data)
        lines = [
            f"{count(n, 'row')} in {len(self.classes)} classes (method: {self.choice.method})."
        ]
        if not self.accuracies:
            return {"n_rows": n}, [*lines, self._no_labels()]
        accuracy = float(np.mean(self.accuracies))
        error = "" if self.error is None else f" ± {self.error:.1%}"
        lines.append(
            f"Accuracy {accuracy:.1%}{error} {self.test_description()} (always predicting the "
            f"largest class: {self.majority:.1%})."
        )
        facts = {"n_rows": n, "accuracy": accuracy, "error": self.error, "majority": self.majority}
        return facts, lines

    def _no_labels(self) -> str:
        return f"{self.tested.path} has no labels, so the accuracy is unknown."

    def sections(self) -> list[Section]:
        """Return the sections of the page."""
        tested = f"{len(self.classes)} classes. Tested {self.test_description()}."
        blocks = opening_blocks(self, tested)
        if self.accuracies:
            return [Section("Accuracy", [*blocks, *self._scores()]), self._confusion()]
        names, counts = np.unique(self.predicted, return_counts=True)
        rows = [[str(name), int(count)] for name, count in zip(names, counts, strict=True)]
        table = Table("Predictions", ["class", "rows"], rows)
        return [Section("Accuracy", [*blocks, Note(self._no_labels()), table])]

    def _scores(self) -> list[Block]:
        error = "" if self.error is None else f" ± {self.error:.1%} (standard error over folds)"
        scores = precision_recall_fscore_support(
            self.tested.labels, self.predicted, labels=self.classes, zero_division=0.0
        )
        rows = [
            [str(name), f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}", int(n)]
            for name, precision, recall, f1, n in zip(self.classes, *scores, strict=True)
        ]
        return [
            Text(
                f"Accuracy {np.mean(self.accuracies):.1%}{error}. Always predicting the largest "
                f"class would give {self.majority:.1%}."
            ),
            Table("Classes", ["class", "precision", "recall", "F1", "rows"], rows),
        ]

    def _confusion(self) -> Section:
        true = np.asarray(self.tested.labels)
        picture = Picture.of(
            confusion(true, self.predicted, labels=self.classes),
            "confusion",
            alt="Confusion matrix: number of rows for each true and each predicted class. The "
            "table below has the same numbers.",
            caption="Confusion matrix. Rows: true classes; columns: predicted classes.",
        )
        names = [str(name) for name in self.classes]
        counts = confusion_matrix(true, self.predicted, labels=self.classes).tolist()
        rows = [[name, *row] for name, row in zip(names, counts, strict=True)]
        table = Table("Number of rows by true and predicted class", ["true class", *names], rows)
        return Section("Confusion", [picture, table])

    def python(self, testing: str) -> list[str]:
        """Return Python code that fits and tests the model."""
        fit = "model.fit(data.X, data.labels)"
        if self.tested is not self.data:
            accuracy = ["accuracy = (predicted == test.labels).mean()"]
            lines = [f"test = {testing}", fit, "predicted = model.predict(test.X)"]
            return lines + accuracy if self.accuracies else lines
        n, seed = len(self.accuracies), self.choice.seed
        return [
            f"folds = StratifiedKFold({n}, shuffle=True, random_state={seed})",
            "predicted = cross_val_predict(model, data.X, data.labels, cv=folds)",
            "accuracy = (predicted == data.labels).mean()",
            fit,
        ]


def classify(
    data: Data,
    choice: Choice,
    report: Report = silent,
    *,
    test: Data | None = None,
    n_folds: int = 5,
) -> Classification:
    """Fit a classifier to labelled rows, and test it.

    Parameters
    ----------
    data : Data
        Rows with labels.
    choice : Choice
        The classifier and the kernel.
    report : callable, optional
        Called with the progress.
    test : Data, optional
        Rows to predict. Default: stratified cross-validation on `data`. In both cases the returned
        model is fitted to all of `data`.
    n_folds : int, default=5
        Number of folds.

    Returns
    -------
    Classification
        The fitted model and its predictions.
    """
    labels = _check_labels(data)
    work = Work(report, test=0 if test is not None else n_folds, fit=1)
    model = make_model(choice, data)
    if test is None:
        _check_folds(data, labels, n_folds)
        with work.step("test") as advance:
            predicted, accuracies = _predict_folds(
                model, data.X, labels, n_folds, choice.seed, advance
            )
    with work.step("fit", model):
        model.fit(data.X, labels)
    if test is not None:
        check_same_columns(data.columns, test)
        predicted = np.asarray(model.predict(test.X))
        accuracies = [] if test.labels is None else [float(np.mean(predicted == test.labels))]
    tested = data if test is None else test
    classes = np.asarray(last_step(model).classes_)
    if tested.labels is not None:
        unknown = np.setdiff1d(tested.labels, classes)
        if len(unknown):
            n = int(np.isin(tested.labels, unknown).sum())
            work.notes.append(
                f"{tested.path}: {n} rows have labels that are not in the training data "
                f"({', '.join(map(str, unknown[:5]))}), so no prediction of "
                "them can be correct."
            )
            classes = np.union1d(classes, unknown)
    notes = tuple(work.notes)
    return Classification(
        data, choice, model, notes, work.seconds, classes, tested, predicted, tuple(accuracies)
    )


def _check_labels(data: Data) -> NDArray[Any]:
    """Return the labels; raise unless there are at least two classes."""
    if data.labels is None:
        raise InputError(f"{data.path}: a classifier needs labels. Name their column with --label.")
    if len(set(data.labels)) < 2:
        raise InputError(
            f"{data.path}: all {len(data.labels)} labels are {str(data.labels[0])!r}. A classifier "
            "needs at least two classes."
        )
    return data.labels


def _check_folds(data: Data, labels: NDArray[Any], n_folds: int) -> None:
    """Raise if there are too few folds, or a class has fewer rows than folds."""
    if n_folds < 2:
        raise InputError(f"--cv {n_folds}: cross-validation needs at least two folds.")
    names, counts = np.unique(labels, return_counts=True)
    smallest, name = int(counts.min()), str(names[np.argmin(counts)])
    if smallest < n_folds:
        fewer = f"Use --cv {smallest}, " if smallest > 1 else "Use "
        raise InputError(
            f"{data.path}: the class {name!r} has {count(smallest, 'row')}, fewer than the "
            f"{n_folds} folds. {fewer}a test file (--test), or remove the class."
        )


def _predict_folds(
    model: Any,
    X: NDArray[Any],
    labels: NDArray[Any],
    n_folds: int,
    seed: int,
    advance: Callable[[float], None],
) -> tuple[NDArray[Any], list[float]]:
    """Predict each fold with a model fitted to the others; return also the accuracies."""
    predicted, accuracies = np.empty_like(labels), []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(labels, labels)):
        predicted[test] = clone(model).fit(X[train], labels[train]).predict(X[test])
        accuracies.append(float(np.mean(predicted[test] == labels[test])))
        advance((number + 1) / n_folds)
    return predicted, accuracies


def check_same_columns(columns: tuple[str, ...], other: Data) -> None:
    """Raise if the number of columns differs from that of the training data."""
    if len(other.columns) != len(columns):
        raise InputError(
            f"{other.path} has {len(other.columns)} columns of numbers or coordinates, but the "
            f"model was fitted to {len(columns)}. Use a file with the same columns."
        )
