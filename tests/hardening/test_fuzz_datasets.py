"""Fuzzing: randomly changed files of data sets, ours and the publishers'."""

import io
import sys
from unittest import mock

import numpy as np
import pytest

from bounded import complaints
from mutations import mutants, of_png, of_zip
from orthodrome.datasets import load
from orthodrome.datasets._download import CONVERTERS
from orthodrome.datasets._readers import _READERS, read_fields
from orthodrome.datasets._registry import DatasetEntry, Source

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")

QUICK, LONG = 30, 300
how_many = pytest.mark.parametrize("number", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def png(height, width):
    pillow = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pixels = np.arange(height * width).reshape(height, width) % 251
    pillow.fromarray(pixels.astype(np.uint8)).save(buffer, format="PNG")
    return buffer.getvalue()


def entry(path, reader, **facts):
    texts = dict.fromkeys(("title", "description", "source_url", "license"), "of a test")
    return DatasetEntry("fuzzed", path, "0" * 64, "0" * 64, reader, **texts, **facts)


def loaded(known, folder):
    with mock.patch("orthodrome.datasets._load.registry", return_value={"fuzzed": known}):
        return load("fuzzed", data_home=folder, verify=False, download_if_missing=False)


U8 = np.uint8
SPLIT = {
    "X_train": np.zeros((3, 6), U8),
    "y_train": np.arange(3, dtype=U8),
    "X_test": np.ones((2, 6), U8),
    "y_test": np.arange(2, dtype=U8),
}
MOTION = {
    "xyz": np.zeros((4, 2, 3), np.float32),
    "joints": np.array(["root", "hip"]),
    "parents": np.array([-1, 0], dtype=np.int16),
    "trial": np.zeros(4, dtype=np.int16),
    "trials": np.array(["01"]),
}
TABLE = b"length,width,kind,class\n1.5,2,A1,b\n,3,A2,a\n4,,A10,b\n"
LEAVES = b"x1,y1,x2,y2,total,class\n1,2,3,4,7,b\n1,2,3,5,8,a\n"
KEPT = {
    "table": (lambda: TABLE, "csv", None, {"categorical_columns": ("kind",)}),
    "targets": (lambda: b"a,target_b\n1,2\n3,4\n", "csv", None, {}),
    "landmark_table": (lambda: LEAVES, "csv", None, {"extra_columns": ("total",)}),
    "split_images": (lambda: npz(**SPLIT), "npz", of_zip, {"image_shape": (2, 3)}),
    "pen_strokes": (
        lambda: npz(X=np.zeros((3, 8), U8), y=np.arange(3), is_test=np.array([0, 1, 0])),
        "npz",
        of_zip,
        {},
    ),
    "images": (lambda: npz(X=np.zeros((3, 2, 2), U8), y=np.arange(3)), "npz", of_zip, {}),
    "landmarks": (
        lambda: npz(X=np.zeros((3, 4, 2)), y=np.array([0, 1, 0]), classes=np.array(["a", "b"])),
        "npz",
        of_zip,
        {},
    ),
    "motion": (lambda: npz(**MOTION), "npz", of_zip, {}),
    "matrices": (lambda: npz(X=np.zeros((2, 3, 3)), y=np.arange(2)), "npz", of_zip, {}),
    "image": (lambda: png(6, 4), "png", of_png, {}),
}


@how_many
@pytest.mark.parametrize("kind", KEPT)
def test_changed_files_are_read_or_refused(kind, number, tmp_path):
    make, suffix, change, facts = KEPT[kind]
    content = make()
    known = entry(f"fuzzed.{suffix}", "table" if kind == "targets" else kind, **facts)
    (tmp_path / known.path).write_bytes(content)
    loaded(known, tmp_path)  # the original is valid
    found = complaints(
        lambda path: loaded(known, path.parent),
        tmp_path / known.path,
        mutants(content, number, change),
    )
    assert not found, "\n".join(found)


# the reader, its facts, and the file with its name
RAW = {
    "text_table": ("table", {"columns": ("a", "class")}, lambda: b"1,x\n2,y\n", "a.data"),
    "same_file": ("image", {}, lambda: png(6, 4), "camera.png"),
    "halved_image": ("image", {}, lambda: png(6, 4), "camera.png"),
}


@how_many
@pytest.mark.parametrize("parser", RAW)
def test_changed_published_files_are_read_or_refused(parser, number, tmp_path):
    reader, facts, make, name = RAW[parser]
    source = Source(0, (f"https://example.org/{name}",), parser, {})
    known = entry("nowhere.csv", reader, sources=(source,), **facts)

    def read(path):
        """Convert as a download does, which reports every error."""
        try:
            return read_fields(CONVERTERS[parser]([path.read_bytes()], {}, known), known)
        except MemoryError:
            raise
        except Exception as error:
            raise ValueError(f"{path}: {error}") from error

    path, change = tmp_path / name, of_png if name.endswith("png") else None
    path.write_bytes(make())
    read(path)  # the original is valid
    found = complaints(read, path, mutants(make(), number, change))
    assert not found, "\n".join(found)


def test_no_parser_and_no_reader_is_left_out():
    assert RAW.keys() == CONVERTERS.keys()
    assert KEPT.keys() - {"targets"} == _READERS.keys()
