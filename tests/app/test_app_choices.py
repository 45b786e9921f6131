"""What a run is told to do: models by name, columns of a model, methods compared, and pages."""

import re
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from orthodrome.app.work import Work
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from optional import needs
from orthodrome import PatchDenoiser
from orthodrome.app.classification import check_folds, check_same_columns
from orthodrome.app.comparison import LINEAR, Compared, Comparison
from orthodrome.app.denoising import Denoising
from orthodrome.app.embedding import embed
from orthodrome.app.inputs import Data, InputError
from orthodrome.app.models import Choice, make_model


def table(X, path="a.csv", columns=("a", "b")):
    ids = tuple(f"row {i + 1}" for i in range(len(X)))
    return Data(path, "table" if X.ndim == 2 else "shapes", X, columns, ids, None, None)


SQUARE = table(np.array([[0.0, 1.0], [2.0, 5.0], [3.0, 1.0], [7.0, 2.0]]))
LEAVES = table(np.random.default_rng(0).normal(size=(4, 5, 2)), "leaves.tps")


# ---------------------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("choice", "data", "words"),
    [
        (Choice("tsne"), SQUARE, "There is no method 'tsne'. There are: "),
        (Choice("kpca", parameters={"k": 2}), SQUARE, "The method kpca has no parameter 'k'."),
        (Choice("kpca", standardize=True), LEAVES, "leaves.tps: landmarks cannot be standardised"),
        (
            Choice("kpca"),
            replace(LEAVES, X=np.zeros((4, 5, 3))),
            "leaves.tps has landmarks in three dimensions; the kernels of shapes are of planar",
        ),
    ],
)
def test_choices_that_do_not_go_with_the_data(choice, data, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        make_model(choice, data)


def test_centers_that_cannot_be_drawn_are_intrinsic():
    """Inner products have no pre-images to draw; who asks for them is told by the estimator."""
    assert make_model(Choice("kmeans", kernel="linear"), SQUARE).centers == "intrinsic"
    assert make_model(Choice("kmeans", kernel="gaussian"), SQUARE).centers == "preimage"


# ---------------------------------------------------------------------------- columns, folds


def test_one_fold_is_none():
    with pytest.raises(InputError, match=r"^--cv 1: at least two folds are needed\.$"):
        check_folds(SQUARE, np.array(list("abab")), 1)


def test_arrays_have_no_names_to_compare():
    check_same_columns(("a", "b"), SQUARE)
    check_same_columns(("a", "b"), replace(SQUARE, path="b.NPY", columns=("x1", "x2")))


@pytest.mark.parametrize(
    ("path", "columns", "words"),
    [
        ("b.npy", ("a",), "b.npy: it has no column 'b'."),
        ("b.csv", ("b", "a"), "b.csv: its columns are in another order than those that were"),
        ("b.csv", ("a", "c"), "it has no column 'b' and has 'c', which was not learned from."),
        ("b.csv", ("a", "b", "c"), "b.csv: it has 'c', which was not learned from."),
    ],
)
def test_other_columns_are_refused(path, columns, words):
    with pytest.raises(InputError) as caught:
        check_same_columns(("a", "b"), replace(SQUARE, path=path, columns=columns))
    assert words in str(caught.value)


# ---------------------------------------------------------------------------- comparisons


def compared(*areas, n_rows=4):
    quality = [SimpleNamespace(area=area, curve=np.array([area, area, 1.0])) for area in areas]
    halves = np.zeros(3)
    methods = [
        Compared(name, SQUARE.X, each, halves, None, 0.0)
        for name, each in zip((LINEAR, "kpca", "kpga"), quality, strict=False)
    ]
    choice = Choice("kpca", standardize=True)
    return Comparison(SQUARE, choice, 2, n_rows, tuple(methods), (), {"kpca": 0.0})


def test_the_simplest_of_equals_is_the_best():
    assert compared(0.5, 0.5, 0.5).best.method == LINEAR
    assert compared(0.5, 0.9, 0.9).best.method == "kpca"


def test_where_none_keeps_many_neighbours_more_components_are_advised():
    advice = "None keeps many: 2 components are few for these data; try more (--components)."
    assert compared(0.1, 0.2).recommendation().endswith(advice)
    assert advice not in compared(0.1, 0.3).recommendation()


def test_the_plain_method_is_standardised_too():
    model = compared(0.5).model(LINEAR)
    assert isinstance(model, Pipeline)
    assert isinstance(model[-1], PCA)
    np.testing.assert_allclose(model[0].fit_transform(SQUARE.X).std(axis=0), 1.0)


# ---------------------------------------------------------------------------- work and pages


def test_warnings_are_noted_once_and_those_for_developers_never():
    work = Work(lambda *_: None, fit=1)
    with work.part("fit"):
        for category in (UserWarning, UserWarning, DeprecationWarning):
            warnings.warn(f"a\n {category.__name__}", category, stacklevel=1)
    assert work.notes == ["a UserWarning"]


@needs("plotly")
def test_a_page_says_that_rows_were_drawn():
    from orthodrome.app.pages import How, comparison_page

    found = replace(compared(0.5, 0.5, n_rows=9), choice=Choice("kpca"))
    text = comparison_page(found, How(["compare"], "read()"))[0].blocks[0].text
    assert text.endswith("2 components of each method. 4 of 9 rows were drawn at random.")


@needs("plotly")
def test_the_lines_of_a_colour_image_clean_each_channel():
    from orthodrome.app.pages import How, denoising_page

    image = np.random.default_rng(0).random((4, 4, 3))
    found = Denoising(
        "a.png", image, image, PatchDenoiser(2), (0.1,) * 3, True, (1,) * 3, (), {"red": 0.0}
    )
    page = repr(denoising_page(found, How(["denoise"], "read_image('a.png')")))
    assert "channels = [model.denoise(image[..., c].copy()) for c in range(3)]" in page
    assert "'blue'" in page


@needs("plotly")
def test_a_single_component_has_no_spectrum_and_three_rows_no_neighbours():
    from orthodrome.app.pages import How, embedding_page

    choice = Choice("kpca", parameters={"n_components": 1})
    pages = {}
    for data in (SQUARE, replace(SQUARE, X=SQUARE.X[:3], ids=SQUARE.ids[:3])):
        sections = embedding_page(embed(data, choice), How(["embed"], "read()"))
        pages[len(data.X)] = {section.title: repr(section.blocks) for section in sections}
    assert "spectrum" not in pages[4]["How much is kept"]
    assert "How much is kept" not in pages[3]


@needs("plotly")
def test_of_many_shapes_some_are_drawn(monkeypatch):
    from orthodrome.app import pages

    monkeypatch.setattr(pages, "MOST_SHAPES", 3)
    section = pages._shapes(LEAVES, np.array(list("abab")), "All")
    assert "the outlines of 3 specimens" in section.blocks[0].alt
