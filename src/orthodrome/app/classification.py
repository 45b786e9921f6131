"""The command classify: a classifier, tested by folds or on another file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold

from ..plots import confusion
from ..plots._matplotlib import house_style
from ..plots.report import Block, Note, Picture, Section, Table, Text
from .inputs import Data, InputError
from .models import Choice, last_step, make_model, python_lines
from .pages import How, again, count, opening
from .results import Report, Result, Work, named_rows, silent

__all__ = ["Classification", "Trial", "check_same_columns", "classify"]


@dataclass(frozen=True)
class Trial:
    """Predictions for rows that were not used for training, and their accuracy.

    Attributes
    ----------
    how : str
        A description of the test.
    data : Data
        The rows.
    predicted : ndarray of shape (n,)
        Their predicted labels.
    accuracies : tuple of float
        One for each fold, or one; empty if the rows have no labels.
    """

    how: str
    data: Data
    predicted: NDArray[Any]
    accuracies: tuple[float, ...]

    @property
    def accuracy(self) -> float:
        """The mean over folds."""
        return float(np.mean(self.accuracies))

    @property
    def error(self) -> float | None:
        """The standard error of the mean over folds, which share training points."""
        n = len(self.accuracies)
        return float(np.std(self.accuracies, ddof=1) / np.sqrt(n)) if n > 1 else None

    @property
    def majority(self) -> float:
        """The fraction of the largest class: the accuracy of always predicting it."""
        counts = np.unique(np.asarray(self.data.labels), return_counts=True)[1]
        return float(counts.max()) / len(self.predicted)


@dataclass(frozen=True)
class Classification(Result):
    """The result of :func:`classify`."""

    file = "predictions.csv"

    classes: NDArray[Any]
    trial: Trial

    def table(self) -> str:
        """Return name, label and predicted label of every row, as CSV."""
        return named_rows(self.trial.data, {"predicted": self.trial.predicted.tolist()})

    def summary(self) -> tuple[dict[str, Any], list[str]]:
        """Return facts for JSON, and lines for people."""
        trial, n = self.trial, len(self.data)
        facts: dict[str, Any] = {"n_rows": n}
        lines = [f"{count(n, 'row')} of {len(self.classes)} classes by {self.choice.method}."]
        if not trial.accuracies:
            return facts, [*lines, f"{trial.data.path} has no labels, so there is no accuracy."]
        facts |= {"accuracy": trial.accuracy, "error": trial.error, "majority": trial.majority}
        error = "" if trial.error is None else f" ± {trial.error:.1%}"
        lines.append(
            f"Accuracy {trial.accuracy:.1%}{error} (largest class: {trial.majority:.1%}) on "
            f"{trial.how}."
        )
        return facts, lines

    def sections(self, how: How) -> list[Section]:
        """Return the sections of the page."""
        trial = self.trial
        blocks = opening(self, f"{len(self.classes)} classes. Tested on {trial.how}.")
        sections = [Section("Accuracy", blocks)]
        if trial.accuracies:
            blocks += self._scores()
            sections.append(self._confusion())
        else:
            blocks.append(Note(f"{trial.data.path} has no labels, so the accuracy is unknown."))
            names, counts = np.unique(trial.predicted, return_counts=True)
            rows = [[str(name), int(count)] for name, count in zip(names, counts, strict=True)]
            blocks.append(Table("Predictions", ["class", "rows"], rows))
        return [*sections, again(self.model, self.seconds, how, self._lines(how))]

    def _scores(self) -> list[Block]:
        trial = self.trial
        error = "" if trial.error is None else f" ± {trial.error:.1%} (standard error over folds)"
        found = precision_recall_fscore_support(
            trial.data.labels, trial.predicted, labels=self.classes, zero_division=0.0
        )
        rows = [
            [str(name), f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}", int(n)]
            for name, precision, recall, f1, n in zip(self.classes, *found, strict=True)
        ]
        return [
            Text(
                f"Accuracy {trial.accuracy:.1%}{error}; always predicting the largest class would "
                f"be right in {trial.majority:.1%}."
            ),
            Table("Classes", ["class", "precision", "recall", "F1", "rows"], rows),
        ]

    def _confusion(self) -> Section:
        true, predicted = self.trial.data.labels, self.trial.predicted
        assert true is not None
        with house_style():
            picture = Picture.of(
                confusion(true, predicted, labels=self.classes),
                "confusion",
                alt="The number of rows of each class, line by line, for each predicted label; the "
                "same numbers are in the table.",
                caption="True labels from top to bottom, predicted ones from left to right.",
            )
        names = [str(name) for name in self.classes]
        counts = confusion_matrix(true, predicted, labels=self.classes).tolist()
        rows = [[name, *row] for name, row in zip(names, counts, strict=True)]
        table = Table("Rows by true and predicted class", ["true class", *names], rows)
        return Section("Confusion", [picture, table])

    def _lines(self, how: How) -> str:
        if how.testing:
            use = [
                f"test = {how.testing}",
                "model.fit(data.X, data.labels)",
                "predicted = model.predict(test.X)",
            ]
            if self.trial.accuracies:
                use.append("accuracy = (predicted == test.labels).mean()")
            return python_lines(self.model, how.reading, *use)
        n, seed = len(self.trial.accuracies), self.choice.seed
        return python_lines(
            self.model,
            how.reading,
            f"folds = StratifiedKFold({n}, shuffle=True, random_state={seed})",
            "predicted = cross_val_predict(model, data.X, data.labels, cv=folds)",
            "accuracy = (predicted == data.labels).mean()",
            "model.fit(data.X, data.labels)",
            more="from sklearn.model_selection import StratifiedKFold, cross_val_predict",
        )


def classify(
    data: Data,
    choice: Choice,
    report: Report = silent,
    *,
    test: Data | None = None,
    n_folds: int = 5,
) -> Classification:
    """Fit a classifier to the labels of a file, and test it on other rows.

    Parameters
    ----------
    data : Data
        Rows with labels.
    choice : Choice
        The classifier and the kernel.
    report : callable, optional
        Called with the progress.
    test : Data, optional
        Rows to predict; without it, `n_folds` stratified folds of `data` are left out in turn. The
        model that is returned is fitted to all of `data` in either case.
    n_folds : int, default=5
        Number of folds.

    Returns
    -------
    Classification
        The fitted model and its test.
    """
    labels = _check_labels(data)
    work = Work(report, test=0 if test is not None else n_folds, fit=1)
    model = make_model(choice, data)
    if test is None:
        _check_folds(data, labels, n_folds)
        with work.part("test") as advance:
            trial = _left_out(model, data, labels, n_folds, choice.seed, advance)
    with work.part("fit", model):
        model.fit(data.X, labels)
    if test is not None:
        trial = _on_other_rows(model, data, test)
    classes = np.asarray(last_step(model).classes_)
    if trial.data.labels is not None:
        unknown = np.setdiff1d(trial.data.labels, classes)
        if len(unknown):
            n = int(np.isin(trial.data.labels, unknown).sum())
            work.notes.append(
                f"{trial.data.path}: {n} rows have labels that are not in the training data "
                f"({', '.join(map(str, unknown[:5]))}), so their predictions are wrong."
            )
            classes = np.union1d(classes, unknown)
    return Classification(data, choice, model, tuple(work.notes), work.seconds, classes, trial)


def _check_labels(data: Data) -> NDArray[Any]:
    """Return the labels; raise unless there are at least two classes."""
    if data.labels is None:
        raise InputError(f"{data.path}: a classifier needs labels; name their column by --label.")
    classes = np.unique(data.labels)
    if len(classes) < 2:
        raise InputError(
            f"{data.path}: all {len(data.labels)} labels are {str(classes[0])!r}; a classifier "
            "needs at least two classes."
        )
    return data.labels


def _check_folds(data: Data, labels: NDArray[Any], n_folds: int) -> None:
    """Raise unless every class can be in every fold."""
    if n_folds < 2:
        raise InputError(f"--cv {n_folds}: at least two folds are needed.")
    names, counts = np.unique(labels, return_counts=True)
    least, name = int(counts.min()), str(names[np.argmin(counts)])
    if least == 1:
        raise InputError(
            f"{data.path}: the class {name!r} has a single row, which cannot be used for both "
            "training and testing. Leave it out, or give a file for --test."
        )
    if least < n_folds:
        raise InputError(
            f"{data.path}: the class {name!r} has {least} rows, fewer than the {n_folds} folds. "
            f"Use --cv {least}, a file for --test, or leave the class out."
        )


def _left_out(
    model: Any, data: Data, labels: NDArray[Any], n_folds: int, seed: int, advance: Any
) -> Trial:
    """Predict each fold by a model of the others."""
    predicted = np.empty_like(labels)
    accuracies = []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(np.zeros(len(labels)), labels)):
        fitted = clone(model).fit(data.X[train], labels[train])
        predicted[test] = fitted.predict(data.X[test])
        accuracies.append(float(np.mean(predicted[test] == labels[test])))
        advance((number + 1) / n_folds)
    how = f"{n_folds} stratified folds, each predicted by a model of the others"
    return Trial(how, data, predicted, tuple(accuracies))


def _on_other_rows(model: Any, data: Data, test: Data) -> Trial:
    """Predict the rows of another file."""
    check_same_columns(data.columns, test)
    predicted = np.asarray(model.predict(test.X))
    how = f"the {len(test.X)} rows of {test.path}, which were not used for training"
    accuracies = () if test.labels is None else (float(np.mean(predicted == test.labels)),)
    return Trial(how, test, predicted, accuracies)


def check_same_columns(columns: tuple[str, ...], other: Data) -> None:
    """Raise if there are not as many features as the model has; their names are those asked for."""
    if len(other.columns) != len(columns):
        raise InputError(
            f"{other.path}: it has {len(other.columns)} columns of numbers or coordinates, and the "
            f"model was fitted to {len(columns)}."
        )
