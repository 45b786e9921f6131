"""Fuzzing: randomly changed files of data sets, ours and the publishers'."""

import bz2
import gzip
import importlib
import io
import sys
import zipfile
from unittest import mock

import numpy as np
import pytest

from bounded import MEBIBYTE, complaints
from mutations import mutants, of_gzip, of_png, of_zip
from orthodrome.datasets import load
from orthodrome.datasets._readers import _READERS, DatasetEntry, Source, read_fields
from real_data import REPOSITORY

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(REPOSITORY / "experiments/data"))
    convert = importlib.import_module("convert")

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


def table_of(*columns):
    return {"columns": columns}


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes()
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


def faces(_):
    pytest.importorskip("PIL")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for person in (1, 2):
            archive.writestr(f"s{person}/1.pgm", b"P5\n3 2\n255\n" + bytes(range(6)))
    return [buffer.getvalue()]


def r_file(folder):
    rdata = pytest.importorskip("rdata", reason="R data need rdata")
    rdata.write_rda(folder / "objects.rda", {"x": np.arange(24.0).reshape(3, 2, 4)})
    return [(folder / "objects.rda").read_bytes()]


def leaves(_):
    points = "\r".join("\t".join(str(i + j) for j in range(4)) for i in range(2))
    facts = "plant\tspecies\tclass\to\tt\th\rp1\tz\tB\t1\t9\t8\rp2\ta\tA\t2\t9\t8"
    return [points.encode(), facts.encode()]


def motion(_):
    """A skeleton of one bone, and two frames."""
    skeleton = b":version 1.10\n:units\n length 0.5\n angle deg\n"
    skeleton += b":root\n order TX TY TZ RX RY RZ\n axis XYZ\n"
    skeleton += b" position 0 0 0\n orientation 0 0 0\n:bonedata\n begin\n name arm\n"
    skeleton += b" direction 0 1 0\n length 2\n axis 10 0 0  XYZ\n dof rx\n end\n"
    skeleton += b":hierarchy\n begin\n root arm\n end\n"
    frames = b":DEGREES\n1\nroot 1 2 3 0 0 0\narm 0\n2\nroot 0 0 0 0 0 90\narm 9\n"
    return [skeleton, frames]


LEAF = table_of("plant", "species", "class", "o", "t", "h", "x1", "y1", "x2", "y2")
LEAF |= {"extra_columns": ("plant", "species", "o", "t", "h")}
SPECIES = table_of("class", "species", "n_leaves") | {"extra_columns": ("species",)}
TWO_COLUMNS = table_of("a", "class")
DIGIT, SQUARE = {"image_shape": (1, 3)}, {"image_shape": (2, 2)}
SVM = bz2.compress(b"7 1:0.5 3:-0.25\n1 2:1\n")
ZIP_CODE = gzip.compress(b"6 1 0 1\n0 0 0 1\n", mtime=0)
PAIR = (idx(np.ones((3, 2, 2))), idx(np.arange(3)))
MATRICES = [b"Id,F\n7,0.5,0.25,0.1\n9,0.1,0.2,0.3\n", b"Id,Class\n7,1\n9,0\n"]
PEN = [b"1,2,3,4,0\n5,6,7,8,1\n", b"1,1,1,1,0\n"]
# the reader, its facts, the names of the files, and their contents
RAW = {
    "text_table": ("table", TWO_COLUMNS, ["a.data"], lambda _: [b"1,x\n2,y\n"]),
    "arff_table": ("table", TWO_COLUMNS, ["a.arff"], lambda _: [b"@relation r\n@data\n1,x\n2,y\n"]),
    "passiflora": ("landmark_table", LEAF, ["points.txt", "facts.txt"], leaves),
    "passiflora_species": ("table", SPECIES, ["points.txt", "facts.txt"], leaves),
    "pen_digits": ("pen_strokes", {}, ["a.tra", "a.tes"], lambda _: PEN),
    "zip_digits": ("split_images", DIGIT, ["a.gz", "b.gz"], lambda _: [ZIP_CODE, ZIP_CODE]),
    "libsvm_digits": ("split_images", DIGIT, ["a.bz2", "b.bz2"], lambda _: [SVM, SVM]),
    "idx_digits": ("split_images", SQUARE, ["a.gz", "b.gz", "c.gz", "d.gz"], lambda _: PAIR * 2),
    "face_archive": ("images", {}, ["faces.zip"], faces),
    "same_file": ("image", {}, ["camera.png"], lambda _: [png(6, 4)]),
    "halved_image": ("image", {}, ["camera.png"], lambda _: [png(6, 4)]),
    "acclaim_motion": ("motion", {}, ["a.asf", "a.amc"], motion),
    "r_shapes": ("landmarks", {}, ["a.rda"], r_file),
    "connectomes": ("matrices", {}, ["a.csv", "b.csv"], lambda _: MATRICES),
}
OPTIONS = {"acclaim_motion": {"trials": "01"}, "r_shapes": {"object": "x"}}
CHANGES = {".gz": of_gzip, ".zip": of_zip, ".png": of_png}


@how_many
@pytest.mark.parametrize("parser", RAW)
def test_changed_published_files_are_read_or_refused(parser, number, tmp_path):
    reader, facts, names, make = RAW[parser]
    contents = make(tmp_path)
    urls = tuple(f"https://example.org/{name}" for name in names)
    source = Source(urls, parser, OPTIONS.get(parser, {}))
    known = entry("nowhere.csv", reader, sources=(source,), **facts)
    for which, name in enumerate(names):

        def read(path, which=which):
            """Convert as the script does, which reports every error."""
            files = [*contents]
            files[which] = path.read_bytes()
            try:
                return read_fields(convert.converted(files, source, known), known)
            except MemoryError:
                raise
            except Exception as error:
                raise ValueError(f"{path}: {error}") from error

        path = tmp_path / f"changed-{name}"
        path.write_bytes(contents[which])
        read(path)  # the original is valid
        changed = mutants(contents[which], number, CHANGES.get(path.suffix))
        found = complaints(read, path, changed)
        assert not found, "\n".join(found)


def test_no_parser_and_no_reader_is_left_out():
    assert RAW.keys() == convert.ALL_CONVERTERS.keys()
    assert KEPT.keys() - {"targets"} == _READERS.keys()


@pytest.mark.parametrize("url", ["a.gz", "a.bz2", "a.zip#x"])
def test_bombs_are_not_unpacked(url, tmp_path):
    """Of 64 MiB of zeros in a few kilobytes, at most 16 MiB are unpacked."""
    zeros, packed = bytes(64 * MEBIBYTE), io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", zeros)
    pack = {"a.gz": gzip.compress, "a.bz2": bz2.compress, "a.zip#x": lambda _: packed.getvalue()}
    bomb = pack[url](zeros)

    def refused(path):
        with pytest.raises(ValueError, match=r"unpack to more than"):
            convert.unpacked(path.read_bytes(), url)

    found = complaints(refused, tmp_path / "fuzzed", [bomb], more_memory=48 * MEBIBYTE)
    assert not found, found[0]
