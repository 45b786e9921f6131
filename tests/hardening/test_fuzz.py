"""Fuzzing: randomly changed data files, images, checkpoints and models."""

import contextlib
import io
import os
import struct
import sys
import warnings
import zipfile
import zlib

import numpy as np
import pytest

import laws_persist as laws
from bounded import MEBIBYTE, complaints
from mutations import mutants, of_model, of_png, of_zip, png_chunk
from optional import needs
from orthodrome import app, load, save
from orthodrome.app.inputs import read_data, read_image
from orthodrome.eigen import hebbian
from orthodrome.gram import DenseGram
from orthodrome.spaces import read_tps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bounds of Linux")

QUICK, LONG = 40, 500
how_many = pytest.mark.parametrize("number", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])

TPS = (
    b"LM=3\n1 2\n3.5 4\n5 6\nIMAGE=a_1.jpg\nID=1\nSCALE=0.5\nCURVES=1\nPOINTS=2\n1 2\n3 4\n"
    b"LM=3\n1 2\n3 4\n5 7\nID=b\nCURVES=1\nPOINTS=2\n5 6\n7 8\n"
)
LABELS = b"id,place,species\n1,Lima,edulis\nb,Cusco,caerulea\n"
CSV = b"length,width,species\n2.5,1,edulis\n3,1.5,caerulea\n4,2,edulis\n"


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(write=np.savez, **arrays):
    buffer = io.BytesIO()
    write(buffer, **arrays)
    return buffer.getvalue()


def image(kind, mode):
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, size=(12, 9, 3)).astype(np.uint8)
    buffer = io.BytesIO()
    pillow.fromarray(pixels).convert(mode).save(buffer, format=kind)
    return buffer.getvalue()


def parquet():
    pyarrow = pytest.importorskip("pyarrow")
    written = pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    table = pyarrow.table({"a": [1.0, 2.0, 3.0], "b": [1, 2, 3], "s": ["x", "y", "z"]})
    written.write_table(table, buffer)
    return buffer.getvalue()


def labelled(name):
    return lambda path: read_data(path, label=name)


def labels_of_specimens(path):
    """Read the file of `--labels`, which is joined to a valid TPS file."""
    return read_data(written(path.with_name("leaves.tps"), TPS), labels=path, label="species")


FILES = {
    "tps": (lambda: TPS, "tps", read_tps, None),
    "labels of tps": (lambda: LABELS, "csv", labels_of_specimens, None),
    "csv": (lambda: CSV, "csv", labelled("species"), None),
    "utf-16": (lambda: CSV.decode().encode("utf-16"), "csv", labelled("species"), None),
    "txt": (lambda: b"1 2 3\n4 5 6\n7 8 9.5\n", "txt", read_data, None),
    "npy": (lambda: npy(numbers(6, 3)), "npy", read_data, None),
    "npz": (lambda: npz(X=numbers(6, 3), y=np.arange(6)), "npz", read_data, of_zip),
    "parquet": (parquet, "parquet", labelled("s"), None),
    "png, colours": (lambda: image("PNG", "RGB"), "png", read_image, of_png),
    "png, palette": (lambda: image("PNG", "P"), "png", read_image, of_png),
    "jpeg": (lambda: image("JPEG", "RGB"), "jpg", read_image, None),
}


@how_many
@pytest.mark.parametrize("kind", FILES)
def test_changed_inputs_are_read_or_refused(kind, number, tmp_path):
    if kind.startswith(("csv", "utf", "txt", "npy", "labels")):
        pytest.importorskip("pandas")
    make, suffix, parse, change = FILES[kind]
    content = make()
    parse(written(tmp_path / f"whole.{suffix}", content))  # the original is valid
    found = complaints(parse, tmp_path / f"fuzzed.{suffix}", mutants(content, number, change))
    assert not found, "\n".join(found)


def written(path, content):
    path.write_bytes(content)
    return path


GRAM = np.cov(numbers(8, 20))


def run_on_from(path):
    options = {"gain": "smd", "n_passes": 2, "tol": 0, "block_size": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of runs that diverge
        return hebbian(DenseGram(GRAM), 2, checkpoint=path, **options)


def half_a_run(path):
    """Return the checkpoint after the first of two passes."""
    taken = []
    with pytest.MonkeyPatch.context() as patch:
        replace = os.replace
        patch.setattr(
            os, "replace", lambda old, new: taken.append(old.read_bytes()) or replace(old, new)
        )
        run_on_from(path)
    path.unlink()
    return taken[0]


@how_many
def test_changed_checkpoints_are_resumed_or_refused(number, tmp_path):
    content = half_a_run(tmp_path / "run")
    resumed = run_on_from(written(tmp_path / "whole", content))
    np.testing.assert_array_equal(resumed.coefficients, run_on_from(None).coefficients)
    found = complaints(run_on_from, tmp_path / "fuzzed", mutants(content, number, of_zip))
    assert not found, "\n".join(found)


QUICK_MODELS = ("KernelPCA", "GeodesicMixture")
some_models = pytest.mark.parametrize(
    "name",
    [
        each if each in QUICK_MODELS else pytest.param(each, marks=pytest.mark.slow)
        for each in laws.ESTIMATORS
    ],
)
NOTES = {"columns": list("uvwx"), "kind": "table"}


def predicted(path):
    """Return the output of the command `predict`; raise its error message."""
    rows = written(path.with_name("rows-for-fuzzed.csv"), b"u,v,w,x\n1,2,3,4\n4,5,6,7\n")
    errors, out = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stderr(errors),
        contextlib.redirect_stdout(out),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # of invalid numbers
        code = app.main(["predict", str(path), str(rows), "--quiet"])
    if "unexpectedly" in errors.getvalue():
        raise AssertionError(errors.getvalue())
    if code:
        raise ValueError(errors.getvalue())
    return out.getvalue()


def model_of(name, folder):
    """Return a model file of an estimator."""
    path = folder / "whole.orthodrome"
    save(laws.fitted(f"{name}-gaussian"), path, notes=NOTES)
    assert predicted(path).count("\n") == 3
    return path.read_bytes()


@needs("typer")
@pytest.mark.parametrize("number", [QUICK // 10, pytest.param(LONG, marks=pytest.mark.slow)])
@some_models
def test_changed_models_predict_or_are_refused(name, number, tmp_path):
    contents = mutants(model_of(name, tmp_path), number, of_model)
    found = complaints(predicted, tmp_path / "fuzzed.orthodrome", contents)
    assert not found, "\n".join(found)


def npy_header(shape, dtype="<f8"):
    described = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    described += " " * (-(len(described) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(described)) + described.encode()


def zipped(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def larger_in_the_directory(content, size):
    """Return a zip archive whose first member declares this size."""
    changed = bytearray(content)
    place = changed.index(b"PK\x01\x02")
    changed[place + 24 : place + 28] = struct.pack("<I", size)
    changed[22:26] = struct.pack("<I", size)
    return bytes(changed)


def png(width, height, bits=8, colour=2):
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        png_chunk(name, data)
        for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(50))), (b"IEND", b""))
    )


HUGE = 10**12
BOMBS = {
    "npy, rows": ("npy", npy_header((HUGE, 3)) + bytes(80), read_data),
    "npy, a product beyond 64 bits": ("npy", npy_header((HUGE, HUGE)) + bytes(80), read_data),
    "npy, long texts": ("npy", npy_header((1, 1), "<U999999999") + bytes(80), read_data),
    "npy, a long header": ("npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + bytes(80), read_data),
    "npz, rows": ("npz", zipped(X=npy_header((HUGE, 3)) + bytes(80)), read_data),
    "npz, a size that is not so": (
        "npz",
        larger_in_the_directory(zipped(X=npy_header((2**26, 2)) + bytes(80)), 2**31),
        read_data,
    ),
    "npz, nested deeply": ("npz", zipped(X=npy_header("(" * 90 + ")" * 90)), read_data),
    "png, 2 ** 31 pixels a side": ("png", png(2**31 - 1, 2**31 - 1), read_image),
    "png, 16 bits": ("png", png(13_000, 13_000, 16, 0), read_image),
    "tps, landmarks": ("tps", b"LM=1000000000\n1 2\n", read_tps),
    "tps, a long number": ("tps", b"LM=1\n1" + b"0" * 100_000 + b" 2\n", read_tps),
    "csv, a quote that is open": ("csv", b'a,b\n"1,2\n' + b"3,4\n" * 50_000, read_data),
    "checkpoint": ("npz", zipped(meta=npy_header((), "<U999999999")), run_on_from),
    "model": ("orthodrome", zipped(model=npy_header((HUGE,))), load),
    "model, nested deeply": (
        "orthodrome",
        zipped(model=b"[" * 100_000),
        load,
    ),
}


def needed(kind):
    return [
        needs(name) for start, name in (("png", "PIL"), ("csv", "pandas")) if kind.startswith(start)
    ]


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=needed(kind)) for kind in BOMBS])
def test_wrong_headers_are_refused(kind, tmp_path):
    """In a child that may allocate only 64 MiB."""
    suffix, content, parse = BOMBS[kind]
    file = tmp_path / f"fuzzed.{suffix}"

    def refused(path):
        parse(path)
        raise AssertionError("it was read")

    found = complaints(refused, file, [content], more_memory=64 * MEBIBYTE)
    assert not found, found[0]


CHANGES = {
    "no rows": lambda array: array[:0],
    "twice the rows": lambda array: np.concatenate([array, array]),
    "half of the columns": lambda array: array[..., : array.shape[-1] // 2],
    "one dimension": np.ravel,
    "no dimension": lambda array: array.ravel()[0],
    "other sides": np.transpose,
    "float16": lambda array: array.astype(np.float16),
    "complex": lambda array: array.astype(complex),
    "texts": lambda array: array.astype("U"),
    "not numbers": lambda array: np.full(array.shape, np.nan),
    "far places": lambda array: np.full(array.shape, 2**62),
    "places before the first": lambda array: np.full(array.shape, -(2**40)),
}


def with_other_arrays(content):
    """Yield the model file with each array changed in each way, and valid digests."""
    members = laws.members_of(content)
    for name in [name for name in members if name.endswith(".npy")]:
        array = np.load(io.BytesIO(members[name]))
        for change in CHANGES.values():
            with contextlib.suppress(ValueError, IndexError):  # texts are no numbers
                yield laws.forged(members | {name: npy(change(array))})


@needs("typer")
@pytest.mark.parametrize("share", [61, pytest.param(1, marks=pytest.mark.slow)])
@some_models
def test_models_with_inconsistent_arrays_predict_or_are_refused(name, share, tmp_path):
    contents = list(with_other_arrays(model_of(name, tmp_path)))
    assert len(contents) > 40
    found = complaints(predicted, tmp_path / "fuzzed.orthodrome", contents[::share])
    assert not found, "\n".join(found)


@needs("typer")
@pytest.mark.parametrize(
    "notes",
    [
        *({"columns": given} for given in (5, "uvw", [1, 2, 3], [["u"]])),
        *({"kind": given} for given in (5, None, "figures")),
    ],
    ids=str,
)
def test_notes_that_no_command_writes_are_refused(notes, tmp_path):
    save(laws.fitted("KernelPCA-gaussian"), tmp_path / "forged.orthodrome", notes=NOTES | notes)
    with pytest.raises(ValueError, match=r"forged.orthodrome has invalid notes"):
        predicted(tmp_path / "forged.orthodrome")


def test_compressed_zeros_need_their_size(tmp_path):
    content = npz(np.savez_compressed, X=np.zeros((2**19, 2)))  # 8 MiB
    assert len(content) < 2**14
    found = complaints(read_data, tmp_path / "fuzzed.npz", [content])
    assert not found, found[0]
