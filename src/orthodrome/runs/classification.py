"""A classifier of one file of data, tested by folds or on another file; and predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold

from .._core.progress import reporting
from .inputs import Data, InputError
from .models import Choice, last_step, make_model
from .work import Work, silent

__all__ = ["ClassScores", "Classification", "Trial", "classify"]


@dataclass(frozen=True)
class ClassScores:
    """How well one class is told from the others."""

    name: str
    precision: float
    recall: float
    f1: float
    n_points: int


@dataclass(frozen=True)
class Trial:
    """Predictions of points that the classifier has not learned from, and how right they are.

    Attributes
    ----------
    how : str
        In words.
    data : Data
        The points.
    predicted : ndarray of shape (n,)
        Their predicted labels.
    accuracies : tuple of float
        One for each fold, or one; empty if the points have no labels.
    majority : float
        The share of the largest class: the accuracy of naming it always.
    """

    how: str
    data: Data
    predicted: NDArray[Any]
    accuracies: tuple[float, ...]
    majority: float

    @property
    def accuracy(self) -> float:
        """The mean over folds."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float | None:
        """The standard error of the mean over folds, which share training points."""
        n = len(self.accuracies)
        return float(np.std(self.accuracies, ddof=1) / np.sqrt(n)) if n > 1 else None

    def confusion(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Counts: a row for each true label, a column for each predicted one."""
        return confusion_matrix(self.data.labels, self.predicted, labels=classes)

    def scores(self, classes: NDArray[Any]) -> list[ClassScores]:
        """Precision, recall and F1 of each class."""
        found = precision_recall_fscore_support(
            self.data.labels, self.predicted, labels=classes, zero_division=0.0
        )
        return [
            ClassScores(str(name), float(precision), float(recall), float(f1), int(n))
            for name, precision, recall, f1, n in zip(classes, *found, strict=True)
        ]


@dataclass(frozen=True)
class Classification:
    """What :func:`classify` has found."""

    data: Data
    choice: Choice
    model: Any
    classes: NDArray[Any]
    trial: Trial
    notes: tuple[str, ...]
    seconds: dict[str, float]


def classify(
    data: Data,
    choice: Choice,
    *,
    test: Data | None = None,
    n_folds: int = 5,
    report: Any = silent,
) -> Classification:
    """Learn to tell the labels of a file, and test it on points that were not learned from.

    Parameters
    ----------
    data : Data
        Points with labels.
    choice : Choice
        Which classifier and kernel.
    test : Data, optional
        Points to predict; without, `n_folds` stratified folds of `data` are left out in turn. The
        model that is returned has learned from all of `data` in either case.
    n_folds : int, default=5
        Number of folds.
    report : callable, optional
        Told how far the work has come.

    Returns
    -------
    classification : Classification
        The fitted model and its trial.
    """
    labels = check_labels(data)
    work = Work(report, test=0 if test is not None else n_folds, fit=1)
    model = make_model(choice, data)
    trial = None
    if test is None:
        check_folds(data, labels, n_folds)
        with work.part("test") as advance:
            trial = left_out(model, data, labels, n_folds, choice.seed, advance)
    with work.part("fit") as advance, reporting(last_step(model), advance):
        model.fit(data.X, labels)
    if test is not None:
        trial = on_other_points(model, data, test)
    assert trial is not None  # one of the two
    classes = np.asarray(last_step(model).classes_)
    if trial.data.labels is not None:
        strange = np.setdiff1d(trial.data.labels, classes)
        if len(strange):
            count = int(np.isin(trial.data.labels, strange).sum())
            work.notes.append(
                f"{trial.data.path}: {count} rows have labels that were not learned from "
                f"({', '.join(map(str, strange[:5]))}); none of them can be right."
            )
            classes = np.union1d(classes, strange)
    return Classification(data, choice, model, classes, trial, tuple(work.notes), work.seconds)


def check_labels(data: Data) -> NDArray[Any]:
    """The labels, of at least two classes."""
    if data.labels is None:
        raise InputError(f"{data.path}: a classifier needs labels; name their column by --label.")
    classes = np.unique(data.labels)
    if len(classes) < 2:
        raise InputError(
            f"{data.path}: all {len(data.labels)} labels are {str(classes[0])!r}; a classifier "
            "needs at least two classes."
        )
    return data.labels


def check_folds(data: Data, labels: NDArray[Any], n_folds: int) -> None:
    """Every class must be in every fold."""
    if n_folds < 2:
        raise InputError(f"--cv {n_folds}: at least two folds are needed.")
    names, counts = np.unique(labels, return_counts=True)
    if counts.min() < n_folds:
        least = str(names[np.argmin(counts)])
        raise InputError(
            f"{data.path}: the class {least!r} has {counts.min()} rows, fewer than the {n_folds} "
            f"folds. Use --cv {max(2, counts.min())}, a file for --test, or leave the class out."
            if counts.min() > 1
            else f"{data.path}: the class {least!r} has a single row, which cannot be both learned "
            "from and tested. Leave it out, or give a file for --test."
        )


def left_out(
    model: Any, data: Data, labels: NDArray[Any], n_folds: int, seed: int, advance: Any
) -> Trial:
    """Predict each fold by what was learned from the others."""
    predicted = np.empty_like(labels)
    accuracies = []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(np.zeros(len(labels)), labels)):
        fitted = clone(model).fit(data.X[train], labels[train])
        predicted[test] = fitted.predict(data.X[test])
        accuracies.append(float(np.mean(predicted[test] == labels[test])))
        advance((number + 1) / n_folds)
    how = f"{n_folds} stratified folds, each predicted by a model of the others"
    return Trial(how, data, predicted, tuple(accuracies), majority(labels))


def on_other_points(model: Any, data: Data, test: Data) -> Trial:
    """Predict the points of another file."""
    check_same_columns(data.columns, test)
    predicted = np.asarray(model.predict(test.X))
    how = f"the {len(test.X)} rows of {test.path}, none of which was learned from"
    if test.labels is None:
        return Trial(how, test, predicted, (), np.nan)
    right = float(np.mean(predicted == test.labels))
    return Trial(how, test, predicted, (right,), majority(test.labels))


def check_same_columns(columns: tuple[str, ...], other: Data) -> None:
    """Refuse data whose features are not those of the model."""
    if other.columns == columns:
        return
    if other.path.lower().endswith((".npy", ".npz")) and len(other.columns) == len(columns):
        return  # arrays have no names to compare
    absent = [name for name in columns if name not in other.columns]
    strange = [name for name in other.columns if name not in columns]
    if not absent and not strange:
        raise InputError(
            f"{other.path}: its columns are in another order than those that were learned from; "
            f"choose them by --columns {','.join(columns)}."
        )
    parts = []
    if absent:
        parts.append(f"has no column {', '.join(map(repr, absent[:5]))}")
    if strange:
        parts.append(f"has {', '.join(map(repr, strange[:5]))}, which was not learned from")
    raise InputError(f"{other.path}: it {' and '.join(parts)}.")


def majority(labels: NDArray[Any]) -> float:
    return float(np.unique(labels, return_counts=True)[1].max()) / len(labels)
