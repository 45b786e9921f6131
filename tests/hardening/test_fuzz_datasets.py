"""Fuzzing: randomly changed files of data sets, ours and the publishers'."""

import bz2
import gzip
import io
import sys
import zipfile
from pathlib import PurePosixPath
from unittest import mock

import pytest

from bounded import MEBIBYTE, complaints
from mutations import mutants, of_gzip, of_png, of_zip
from orthodrome.datasets import load
from orthodrome.datasets._readers import _READERS, DatasetEntry, read_fields
from published import PUBLISHED, convert, source_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")

QUICK, LONG = 30, 300
how_many = pytest.mark.parametrize("number", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])


TABLES = {
    "categories": (
        b"length,width,kind,class\n1.5,2,A1,b\n,3,A2,a\n4,,A10,b\n",
        {"categorical_columns": ("kind",)},
    ),
    "targets": (b"a,target_b,total\n1,2,7\n3,4,8\n", {"extra_columns": ("total",)}),
}
CHANGES = {".gz": of_gzip, ".zip": of_zip, ".png": of_png, ".npz": of_zip}


def kept(kind, folder):
    """Return an entry and a file for a reader, or for a kind of table."""
    if kind in TABLES:
        content, facts = TABLES[kind]
        texts = dict.fromkeys(("title", "description", "source_url", "license"), "of a test")
        digests = {"sha256": "0" * 64, "arrays_sha256": "0" * 64}
        return DatasetEntry("fuzzed", "a.csv", **digests, reader="table", **texts, **facts), content
    parser = next(each for each in PUBLISHED if source_of(each)[0].reader == kind)
    known, source = source_of(parser)
    return known, convert.converted(PUBLISHED[parser][2](folder), source, known)


def loaded(known, folder):
    with mock.patch("orthodrome.datasets._load.registry", return_value={known.name: known}):
        return load(known.name, data_home=folder, verify=False, download_if_missing=False)


@how_many
@pytest.mark.parametrize("kind", [*_READERS, *TABLES])
def test_changed_files_are_read_or_refused(kind, number, tmp_path):
    known, content = kept(kind, tmp_path)
    path = tmp_path / known.path
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    loaded(known, tmp_path)  # the original is valid
    changed = mutants(content, number, CHANGES.get(path.suffix))
    found = complaints(lambda _: loaded(known, tmp_path), path, changed)
    assert not found, "\n".join(found)


@how_many
@pytest.mark.parametrize("parser", PUBLISHED)
def test_changed_published_files_are_read_or_refused(parser, number, tmp_path):
    contents = PUBLISHED[parser][2](tmp_path)
    known, source = source_of(parser)
    for which, content in enumerate(contents):

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

        path = tmp_path / f"changed-{which}"
        path.write_bytes(content)
        read(path)  # the original is valid
        suffix = PurePosixPath(source.urls[which].partition("#")[0]).suffix
        found = complaints(read, path, mutants(content, number, CHANGES.get(suffix)))
        assert not found, "\n".join(found)


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
