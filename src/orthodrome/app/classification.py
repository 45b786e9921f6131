"""The command classify: fit a classifier and test it, on folds or on another file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from .._core.types import Array
from ..plots import confusion
from ..plots.report import Note, Picture, Section, Table, Text
from .baselines import MAJORITY, THIS, baseline_predictions, classification_lines
from .inputs import Data, InputError
from .inputs.checks import format_names
from .models import Choice, last_step, make_model
from .results import Report, Result, Work, count, opening, shapes_section, size, table_and_model

MAX_ROWS = 2000  # the time grows with the cube of the number of rows
MIN_CLASS_ROWS = 50


def classify(
    data: Data,
    choice: Choice,
    report: Report | None = None,
    *,
    test: Data | None = None,
    n_folds: int = 5,
) -> Result:
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
    Result
        The fitted model, the table of predictions and the page.
    """
    labels = _check_labels(data)
    work = Work(report, test=0 if test is not None else n_folds, fit=1, baselines=1)
    model = make_model(choice, data)
    fit = "model.fit(data.X, data.labels)"
    folds = None
    if test is None:
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=choice.seed)
        predicted, accuracies = _predict_folds(model, data, labels, folds, work)
        how = f"with {n_folds}-fold stratified cross-validation"
        predict = "predicted = cross_val_predict(model, data.X, data.labels, cv=folds)"
        accuracy = "accuracy = (predicted == data.labels).mean()"
        python = [f"folds = {folds!r}", predict, accuracy, fit]
    with work.step("fit", model):
        model.fit(data.X, labels)
    if test is not None:
        check_same_columns(data.columns, test)
        predicted = np.asarray(model.predict(test.X))
        how = f"on the {len(test)} rows of {test.path}"
        python, accuracies = [fit, "predicted = model.predict(test.X)"], []
        if test.labels is not None:
            accuracies = [float(np.mean(predicted == test.labels))]
            python.append("accuracy = (predicted == test.labels).mean()")
    tested = data if test is None else test
    classes = _all_classes(last_step(model).classes_, tested, work)
    facts, *scores = _summary(len(data), tested, accuracies, how)
    if tested.labels is not None:
        with work.step("baselines"):
            found = baseline_predictions(data, labels, choice, tested, folds)
        scores += classification_lines(tested.labels, found | {THIS: predicted})
        means = {name: float(np.mean(each == tested.labels)) for name, each in found.items()}
        facts |= {"majority": means[MAJORITY], "baselines": means}
    head = f"{count(len(data), data.noun)} in {len(classes)} classes (method: {choice.method})."
    answer = scores[0]
    if tested.labels is not None:
        answer = (
            f"{facts['accuracy']:.1%} of {size(tested)} are classified correctly; guessing the "
            f"most frequent class would reach {facts['majority']:.1%}."
        )
    first = partial(opening, data, work, f"{len(classes)} classes. Tested {how}.")
    sections = partial(_sections, first, tested, predicted, classes, scores)
    table = {"predicted": predicted.tolist()}
    files = table_and_model("predictions.csv", tested, table, model, data)
    return Result(model, work, answer, facts, [head, *scores], sections, python, files)


def training_sample(data: Data, seed: int) -> Data:
    """Return at most about `MAX_ROWS` rows with labels, drawn at random.

    Of every class, at least `MIN_CLASS_ROWS` rows are kept, or all if there are fewer.
    """
    if data.labels is None or len(data) <= MAX_ROWS:
        return data
    order = np.random.default_rng(seed).permutation(len(data))
    kept = [order[:MAX_ROWS]]
    for name in np.unique(data.labels):
        kept.append(order[data.labels[order] == name][:MIN_CLASS_ROWS])
    return data.take(np.unique(np.concatenate(kept)))


def _all_classes(classes: Array, tested: Data, work: Work) -> Array:
    """Return the classes of the model and of the tested rows; note those unknown to the model."""
    if tested.labels is None:
        return classes
    unknown = np.setdiff1d(tested.labels, classes)
    if len(unknown):
        n = int(np.isin(tested.labels, unknown).sum())
        work.notes.append(
            f"{tested.path}: {n} rows have labels that are not in the training data "
            f"({', '.join(map(str, unknown[:5]))}), so no prediction of them can be correct."
        )
    return np.union1d(classes, unknown)


def _summary(n: int, tested: Data, accuracies: list[float], how: str) -> tuple[dict[str, Any], str]:
    """Return the accuracy and its standard error, as facts and as text."""
    if tested.labels is None:
        return {"n_rows": n}, f"{tested.path} has no labels, so the accuracy is unknown."
    accuracy, error, spread = float(np.mean(accuracies)), None, ""
    if len(accuracies) > 1:  # approximate, since folds share training rows
        error = float(np.std(accuracies, ddof=1) / np.sqrt(len(accuracies)))
        spread = f" ± {error:.1%} (standard error over folds)"
    text = f"Accuracy {accuracy:.1%}{spread} {how}."
    return {"n_rows": n, "accuracy": accuracy, "error": error}, text


def _sections(
    first: Callable[[], list[Any]],
    tested: Data,
    predicted: Array,
    classes: Array,
    scores: list[str],
) -> list[Section]:
    """Return the sections of the page."""
    if tested.labels is None:
        found, counts = np.unique(predicted, return_counts=True)
        rows: list[list[Any]] = [[str(n), int(c)] for n, c in zip(found, counts, strict=True)]
        table = Table("Predictions", ["class", "rows"], rows)
        return [Section("Accuracy", [table, *first(), *map(Note, scores)])]
    measures = precision_recall_fscore_support(
        tested.labels, predicted, labels=classes, zero_division=0.0
    )
    rows = [
        [str(name), f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}", int(n)]
        for name, precision, recall, f1, n in zip(classes, *measures, strict=True)
    ]
    table = Table("Classes", ["class", "precision", "recall", "F1", "rows"], rows)
    picture = Picture.of(
        confusion(tested.labels, predicted, labels=classes),
        "confusion",
        alt="Confusion matrix: number of rows for each true and each predicted class. The "
        "table below has the same numbers.",
        caption="Confusion matrix. Rows: true classes; columns: predicted classes.",
    )
    names = list(map(str, classes))
    matrix = confusion_matrix(tested.labels, predicted, labels=classes).tolist()
    rows = [[name, *row] for name, row in zip(names, matrix, strict=True)]
    numbers = Table("Number of rows by true and predicted class", ["true class", *names], rows)
    return [
        Section("Accuracy", [picture, *first(), *map(Text, scores)]),
        Section("Classes", [table, numbers]),
        *shapes_section(tested, tested.labels, "The shapes of each class"),
    ]


def _check_labels(data: Data) -> Array:
    """Return the labels; raise unless there are at least two classes."""
    if data.labels is None:
        raise InputError(f"{data.path}: a classifier needs labels. Name their column with --label.")
    if len(set(data.labels)) < 2:
        raise InputError(
            f"{data.path}: all {len(data.labels)} labels are {str(data.labels[0])!r}. A classifier "
            "needs at least two classes."
        )
    return data.labels


def _predict_folds(
    model: Any, data: Data, labels: Array, folds: StratifiedKFold, work: Work
) -> tuple[Array, list[float]]:
    """Predict each fold with a model fitted to the others; return also the accuracies."""
    _check_folds(data.path, labels, folds.get_n_splits(), work)
    with work.step("test"), warnings.catch_warnings():
        # there is a note on small classes already
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        predicted = np.asarray(cross_val_predict(model, data.X, labels, cv=folds))
        parts = list(folds.split(labels, labels))
    return predicted, [float(np.mean(predicted[rows] == labels[rows])) for _, rows in parts]


def _check_folds(path: str, labels: Array, n_folds: int, work: Work) -> None:
    """Raise if rows cannot be divided into folds; note classes with fewer rows than folds."""
    names, counts = np.unique(labels, return_counts=True)
    small = [f"{name} ({n})" for name, n in zip(names, counts, strict=True) if n < n_folds]
    if not small:
        return
    what = f"classes with fewer rows than the {n_folds} folds: {format_names(small)}"
    second, largest = np.sort(counts)[-2:]
    if second < 2:  # a training part would have one class
        raise InputError(f"{path}: {what}. Use --test, or more rows.")
    if largest < n_folds:
        raise InputError(f"{path}: {what}. Use a smaller --cv, or --test.")
    work.notes.append(
        f"{path}: {what}. Not every fold tests them, and a class with a single row is never "
        "recognised. Use a smaller --cv, or --test."
    )


def check_same_columns(columns: tuple[str, ...], other: Data) -> None:
    """Raise if the number of columns differs from that of the training data."""
    if len(other.columns) != len(columns):
        raise InputError(
            f"{other.path} has {len(other.columns)} columns of numbers or coordinates, but the "
            f"model was fitted to {len(columns)}. Use a file with the same columns."
        )
