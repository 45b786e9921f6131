"""Models with functions are not saved; damaged and forged files are not loaded."""

import copy
import functools
import io
import itertools
import json
import pickle
import struct
import warnings
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import laws_persist as laws
from orthodrome import KernelPCA, load, save
from orthodrome.eigen import Hebbian
from orthodrome.kernels import Embedded, Normalized
from orthodrome.persist import archive
from recording import Recorder

# Models that are not data ------------------------------------------------------------------------


def inner_products(X, Y):
    return X @ Y.T


class Grown(KernelPCA):
    pass


def with_attribute(value) -> KernelPCA:
    model = KernelPCA()
    model.history_ = [{"entry": value}]
    return model


def csr(data=(1.0,), column=0):
    matrix = scipy.sparse.csr_array((list(data), [0], [0, 1]), shape=(1, 1))
    matrix.indices[0] = column
    return matrix


def holds_itself() -> KernelPCA:
    model = KernelPCA()
    model.history_ = [model]
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (KernelPCA(kernel=inner_products), r"KernelPCA\.kernel .*'inner_products'"),
        (KernelPCA(kernel=Normalized(Embedded(np.abs))), r"KernelPCA\.kernel\.kernel .*Embedded"),
        (KernelPCA(random_state=np.random.default_rng(0)), r"random_state is .*random_state=0"),
        (Grown(), r"Grown is of class .*Grown"),
        (LogisticRegression(), r"of class sklearn.*LogisticRegression"),
        (make_pipeline(FunctionTransformer(), KernelPCA()), r"steps\[0\]\[1\] is of class sklearn"),
        (make_pipeline(StandardScaler(), KernelPCA(), memory="x"), r"memory is 'x'"),
        (KernelPCA(solver=Hebbian(checkpoint="run.npz")), r"solver\.checkpoint is 'run.npz'"),
        (with_attribute(print), r"history_\[0\]\['entry'\] is .*'print'"),
        (with_attribute({(1, 2): 3}), r"\['entry'\] is \(1, 2\)"),
        (with_attribute(np.array([print])), r"array of objects"),
        (with_attribute(np.zeros(2, dtype="M8[s]")), r"dtype datetime64"),
        (with_attribute(np.ma.masked_array([1])), r"MaskedArray"),
        (with_attribute(scipy.sparse.coo_array(np.eye(2))), r"coo_array.*tocsr"),
        (with_attribute(csr([print])), r"dtype object"),
        (with_attribute(csr(column=99)), r"indices must be < 1"),
        (with_attribute({1, 2}), r"builtins\.set"),
        (holds_itself(), r"refers to itself"),
        ("a text", r"model of save must be an estimator"),
    ],
)
def test_models_that_are_not_data_are_not_saved(model, reason, tmp_path):
    path = tmp_path / "model.orthodrome"
    path.write_bytes(b"earlier")
    with pytest.raises(ValueError, match=reason):
        save(model, path)
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_paths_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        save(KernelPCA(), tmp_path / "none" / "m")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


# Files made by hand ------------------------------------------------------------------------------


@functools.cache
def genuine(name: str = "KernelPCA-gaussian") -> bytes:
    return archive.pack(laws.fitted(name))


def refusal(data: bytes, folder) -> str:
    """Return why a file is not loaded; it must be a ValueError that names the file."""
    path = folder / "file.orthodrome"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"file\.orthodrome") as caught:
        load(path)
    assert type(caught.value) is ValueError
    return str(caught.value).replace(str(folder), "")  # which names the test


def zipped(members) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def appended(members) -> bytes:
    """Return a genuine file to which members were added."""
    buffer = io.BytesIO(genuine())
    with warnings.catch_warnings(action="ignore"), ZipFile(buffer, "a") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


def not_forged(members) -> bytes:
    """Return a genuine file with other members, and digests that do not agree."""
    return zipped(laws.members_of(genuine()) | members)


def changed(members, changes):
    """Return members with others in their place; None removes one."""
    return {name: data for name, data in (members | changes).items() if data is not None}


def with_members(changes, **manifest) -> bytes:
    """Return a genuine file with other members, and digests that agree."""
    return laws.forged(changed(laws.members_of(genuine()), changes), **manifest)


def with_format(number) -> bytes:
    return with_members({}, format=number, versions={"orthodrome": "0.0.8"})


def with_schema(change, model=None) -> bytes:
    """Return a genuine file whose description was changed."""
    members = laws.members_of(genuine() if model is None else archive.pack(model))
    schema = json.loads(members["schema.json"])
    change(schema)
    return laws.forged(members | {"schema.json": json.dumps(schema).encode()})


def with_array(content: bytes) -> bytes:
    """Return a genuine file with other bytes for the array of eigenvalues."""
    schema = json.loads(laws.members_of(genuine())["schema.json"])
    return with_members({laws.attributes(schema)["eigenvalues_"]["file"]: content})


def with_sparse(changes) -> bytes:
    """Return a genuine file whose sparse array was changed."""
    members = laws.members_of(genuine("KernelPCA-sparse"))
    (file,) = [name for name in members if name.endswith(".npz")]
    parts = laws.members_of(members[file])
    parts = changed(parts, changes(parts) if callable(changes) else changes)
    return laws.forged(members | {file: zipped(parts)})


def beyond_the_columns(parts):
    indices = np.load(io.BytesIO(parts["indices.npy"]))
    return {"indices.npy": npy(indices + 10**6)}


def npy(array, *, allow_pickle=False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def header(descr, shape, data: bytes = b"") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    return raw_header(text, data)


def raw_header(text: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.encode().ljust(117) + b"\n" + data


IDS = itertools.count(10**6)


def node(loader, name, **fields):
    module, _, kind = name.rpartition(".")
    head = {"__class__": kind, "__module__": module, "__loader__": loader, "__id__": next(IDS)}
    return head | fields


def text(value):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def row(*values, name="builtins.tuple"):
    return node("TupleNode", name, content=list(values))


def items(*values, name="builtins.list"):
    return node("ListNode", name, content=list(values))


def dictionary(content, *key_types, name="builtins.dict"):
    return node("DictNode", name, content=content, key_types=items(*key_types))


def array_of(file="1.npy", name="numpy.ndarray"):
    return node("NdArrayNode", name, type="numpy", file=file)


def names(shape, *content, name="numpy.ndarray"):
    """Return an array of objects, as the names of columns are."""
    return node("NdArrayNode", name, type="json", content=list(content), shape=shape)


def add_attribute(schema, described) -> None:
    """Give the model one more attribute, which nothing refers to."""
    kinds = schema["content"]["key_types"]["content"]
    kinds.append(copy.copy(kinds[0]))
    laws.attributes(schema)["extra_"] = described


SYSTEM = node("FunctionNode", "os.system")
COMMAND = text("touch ran")
SPARSE, LINEAR = "scipy.sparse._csr.csr_array", "orthodrome.kernels.pairwise.Linear"
TRANSFORMER = "sklearn.preprocessing._function_transformer.FunctionTransformer"
PARTIAL = {"func": SYSTEM, "args": row(COMMAND), "kwds": dictionary({}), "namespace": text(None)}

#: Nodes that would run something, make something that runs later, or are malformed.
NODES = {
    "os.system": SYSTEM,
    "builtins.eval": node("TypeNode", "builtins.eval"),
    "functools.partial": node("PartialNode", "functools.partial", content=PARTIAL),
    "a method": node("MethodNode", "builtins.str", content={"func": "format", "obj": text("x")}),
    "a constructor": node(
        "ConstructorFromReduceNode", "builtins.open", content=row(text("ran"), text("w"))
    ),
    "FunctionTransformer": node("ObjectNode", TRANSFORMER, content=dictionary({})),
    "subprocess.Popen": node("ObjectNode", "subprocess.Popen", content=dictionary({})),
    "a list that opens": items(COMMAND, name="subprocess.Popen"),
    "a dict that opens": dictionary({}, name="os.getcwd"),
    "keys that open": dictionary({"ran": text(1)}, node("TypeNode", "builtins.open")),
    "a number that opens": array_of(name="builtins.open"),
    "a list named dict": items(name="builtins.dict"),
    "a generator": node("RandomStateNode", "numpy.random.mtrand.RandomState", content={}),
    "a cached node": node("CachedNode", "builtins.str"),
    "a number for a loader": text(1) | {"__loader__": 1},
    "a list of JSON": text([1]),
    "an array of functions": names(row(text(1)), SYSTEM),
    "a sparse array of another class": node("SparseMatrixNode", "os.system", file="1.npy"),
    "no node": {"content": 1},
    "a text for a node": "node",
    "no types of keys": dictionary({}) | {"key_types": text(1)},
    "a list for a dictionary": dictionary([]),
    "fewer types than keys": dictionary({"a": text(1)}),
    "attributes that are none": node("ObjectNode", LINEAR, content=text(1)),
    "attributes by numbers": node(
        "ObjectNode", LINEAR, content=dictionary({"1": text(1)}, node("TypeNode", "builtins.int"))
    ),
    "no shape": names(text(1)),
    "objects that are numbers": names(row(text(0)), name="numpy.float64"),
    "no such file": array_of("99.npy"),
    "a file of another kind": node("SparseMatrixNode", SPARSE, type="scipy", file="1.npy"),
    "one file for two": array_of(),
}


def as_item(schema, payload) -> None:
    add_attribute(schema, items(payload))


def as_model(schema, payload) -> None:
    schema.clear()
    schema.update(payload if isinstance(payload, dict) else {}, protocol=2)


@pytest.mark.parametrize("which", NODES)
def test_a_crafted_description_is_refused_and_runs_nothing(which, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (add_attribute, as_item, as_model):
        data = with_schema(lambda schema, place=place: place(schema, NODES[which]))
        assert "cannot be loaded as a model" in refusal(data, tmp_path)
    assert not (tmp_path / "ran").exists()


class Opener:
    """Pickled, it opens a file for writing."""

    def __reduce__(self):
        return open, ("ran", "w")


def same_number(schema) -> None:
    number = laws.attributes(schema)["eigenvalues_"]["__id__"]
    add_attribute(schema, text(1) | {"__id__": number})


def reference_to_itself(schema) -> None:
    heads = ("__class__", "__module__", "__loader__", "__id__")
    add_attribute(schema, {key: schema[key] for key in heads})


def with_location(location) -> bytes:
    model = make_pipeline(StandardScaler(), KernelPCA())
    return with_schema(lambda s: laws.attributes(s).update(memory=text(location)), model)


def with_protocol(number) -> bytes:
    return with_schema(lambda schema: schema.update(protocol=number))


def scalar_eigenvalues(schema) -> None:
    laws.attributes(schema)["eigenvalues_"].update(__class__="float64")


#: Files that are not loaded: a function and its argument, and a part of the reason.
FILES = {
    "empty": (bytes, b"", "is empty"),
    "text": (bytes, b"a,b\n1,2\n", "is not a model file"),
    "pickle": (pickle.dumps, KernelPCA(), "looks like a pickle"),
    "no archive": (bytes, b"PK\x03\x04" + bytes(100), "damaged (BadZipFile"),
    "another archive": (zipped, {"readme.txt": "hello"}, "without orthodrome.json"),
    # manifests
    **{
        f"manifest {text!r}": (not_forged, {"orthodrome.json": text}, "is not the manifest of")
        for text in (b"[]", b'{"format": [1, 0]}')
    },
    **{
        f"format {number}": (with_format, number, f"by orthodrome 0.0.8 in format {number[0]}.")
        for number in ([1, 2], [2, 0], [0, 9])
    },
    **{
        f"format {number}": (with_format, number, "cannot be loaded")
        for number in ([1], ["1", "0"], "1.0")
    },
    # descriptions
    **{
        f"protocol {number!r}": (with_protocol, number, "protocol of its description")
        for number in (1, 3, "2")
    },
    "a number twice": (with_schema, same_number, "two different values"),
    "a cycle": (with_schema, reference_to_itself, "it is damaged"),
    "deep": (with_members, {"schema.json": b"[" * 10**6 + b"]" * 10**6}, "damaged"),
    "a place of files": (with_location, "/elsewhere", "memory is '/elsewhere'"),
    "an array for a value": (with_schema, scalar_eigenvalues, "is not that of numpy.float64"),
    # arrays
    "array: nothing": (with_array, b"", "array in it is damaged"),
    "array: version": (with_array, b"\x93NUMPY\x09\x00" + bytes(120), "array in it is damaged"),
    "array: short": (with_array, npy(np.arange(9.0))[:-8], "declares 72 bytes"),
    "array: long": (with_array, npy(np.arange(9.0)) + bytes(8), "the size of"),
    "array: huge": (with_array, header("'<f8'", "(10000000000000,)"), "declares 80000000000000"),
    "array: negative": (with_array, header("'<f8'", "(-1,)"), "invalid dtype or shape"),
    "array: empty text": (with_array, header("'<U0'", "(9999999,)"), "invalid dtype or shape"),
    "array: objects": (with_array, header("'|O'", "(1,)", b"12345678"), "pickled"),
    "array: text": (with_array, header("'<U1'", "(1,)", b"\xff" * 4), "invalid text"),
    "array: fields": (with_array, header("[('a', '<f8')]", "(0,)"), "dtype"),
    "array: a call": (with_array, raw_header("__import__('os').system('touch ran')"), "damaged"),
    "array: a pickle": (with_array, npy(np.array([Opener()]), allow_pickle=True), "pickled"),
    **{
        f"array: {dtype}": (with_array, npy(np.zeros(3, dtype=dtype)), "dtype")
        for dtype in (">f8", "<f2", "longdouble", ">U3", "M8[s]", "V4")
        if np.dtype(dtype) != np.float64  # long double is double on Windows and some Macs
    },
    # sparse arrays
    "sparse: columns": (with_sparse, beyond_the_columns, "indices must be <"),
    "sparse: rows": (with_sparse, {"indptr.npy": npy(np.arange(-3, 34))}, "index pointer"),
    "sparse: format": (with_sparse, {"format.npy": npy(np.array(b"csc"))}, "sparse"),
    "sparse: no data": (with_sparse, {"data.npy": None}, "damaged"),
    # members
    "changed member": (not_forged, {"1.npy": npy(np.zeros(3))}, "1.npy was damaged or changed"),
    "added member": (appended, {"999.npy": b""}, "not those in its manifest"),
    "member twice": (appended, {"schema.json": b"{}"}, "twice"),
    "without an array": (with_members, {"1.npy": None}, "1.npy is missing"),
    "without schema.json": (with_members, {"schema.json": None}, "schema.json is missing"),
}


@pytest.mark.parametrize("which", FILES)
def test_other_files_are_refused(which, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make, argument, reason = FILES[which]
    assert reason in refusal(make(argument), tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("kernel", "field"),
    [("gaussian", "per_point"), ("gaussian", "given"), ("complex_gaussian", "per_point")],
)
def test_compiled_loops_do_not_read_beyond_forged_points(kernel, field, tmp_path):
    """Compiled loops do not check bounds."""
    name = f"PerTurbo-{kernel}"
    model = load_bytes(genuine(name), tmp_path)
    points = model._subspaces_[0].points
    original = getattr(points, field)
    for changed in (original[:-1], original[..., :-1]):
        vars(points)[field] = changed
        forged = load_bytes(archive.pack(model), tmp_path)
        with pytest.raises(ValueError, match=r"shape|matmul"):
            forged.predict(laws.data_for(kernel)[1])


def load_bytes(data: bytes, folder):
    (folder / "file.orthodrome").write_bytes(data)
    return load(folder / "file.orthodrome")


def overlapping() -> bytes:
    """Return many entries of the directory for the same bytes, larger than the file."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as packed:
        packed.writestr("1.npy", bytes(10**4))
        first = packed.infolist()[0]
        for number in range(2, 50):
            again = copy.copy(first)
            again.filename = f"{number}.npy"
            packed.filelist.append(again)
            packed.NameToInfo[again.filename] = again
    return buffer.getvalue()


def test_members_that_unpack_to_more_are_refused_unread(tmp_path, monkeypatch):
    members = laws.members_of(genuine()) | {"schema.json": bytes(10**7)}
    bomb = laws.forged(members, ZIP_DEFLATED)
    assert len(bomb) < 10**5
    monkeypatch.setattr(ZipFile, "read", lambda *_: pytest.fail("a member was read"))
    assert "compressed" in refusal(bomb, tmp_path)
    assert "larger than the file" in refusal(overlapping(), tmp_path)


def test_files_of_other_releases(tmp_path, monkeypatch):
    path = tmp_path / "m"
    monkeypatch.setattr(archive, "_versions", lambda: {"orthodrome": "1.4.2"})
    for version in ("1.4.0", "1.4.9", "1.4.dev0", "unknown", None):
        path.write_bytes(with_members({}, versions={"orthodrome": version}))
        load(path)
    path.write_bytes(with_members({}, versions={"orthodrome": "1.3.7"}))
    message = r"saved by orthodrome 1\.3\.7 and is loaded by 1\.4\.2"
    with pytest.warns(UserWarning, match=message):
        load(path)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match=message):
        load(path)
    for version in ("1.5.0.dev0", "2.0"):
        assert "Upgrade" in refusal(with_members({}, versions={"orthodrome": version}), tmp_path)


# Damaged bytes -----------------------------------------------------------------------------------


def is_refused(data: bytes, folder) -> bool:
    """Return whether a file is refused; if not, its model must give the same results."""
    path = folder / "damaged.orthodrome"
    path.write_bytes(data)
    try:
        model = load(path)
    except ValueError as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert "damaged.orthodrome" in message
        return True
    expected, new = laws.fitted("KernelPCA-gaussian"), laws.vectors()[1]
    np.testing.assert_array_equal(model.transform(new), expected.transform(new))
    return False


@settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.integers(0), bits=st.integers(1, 255), from_end=st.booleans())
def test_a_changed_byte_is_refused_or_changes_nothing(place, bits, from_end, tmp_path):
    data = bytearray(genuine())
    # the directory of an archive is at its end, and half of the trials are there
    place = -1 - place % 1200 if from_end else place % len(data)
    data[place] ^= bits
    is_refused(bytes(data), tmp_path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(missing=st.integers(0))
def test_a_cut_file_is_refused(missing, tmp_path):
    data = genuine()
    assert is_refused(data[: -1 - missing % len(data)], tmp_path)


def test_callbacks_are_not_saved(tmp_path):
    callback = Recorder()
    model = KernelPCA(2).set_callbacks(callback).fit(laws.vectors()[0])
    save(make_pipeline(StandardScaler(), model), tmp_path / "m")
    again = load(tmp_path / "m")[-1]
    assert not [name for name in vars(again) if "callback" in name]
    assert model._skl_callbacks == [callback]
    again.fit(laws.vectors()[0])
