"""What is refused: models that are not data, and files that are not as they were written."""

import copy
import functools
import io
import json
import pickle
import struct
import sys
import warnings
from pathlib import Path
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
from orthodrome import KernelKMeans, KernelPCA, KernelPGA, load, save
from orthodrome.eigen import Hebbian
from orthodrome.kernels import Embedded, Gaussian, Normalized
from orthodrome.persist import archive


def inner_products(X, Y):
    return X @ Y.T


class Grown(KernelPCA):
    pass


# Models that are not data ------------------------------------------------------------------------


def with_attribute(value) -> KernelPCA:
    model = KernelPCA()
    model.history_ = [{"entry": value}]
    return model


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (KernelPCA(kernel=inner_products), r"KernelPCA\.kernel is 'inner_products', a function"),
        (KernelPCA(kernel=inner_products).fit(np.eye(4)), r"KernelPCA\.kernel is 'inner_products'"),
        (KernelPCA(kernel=Embedded(np.abs)), r"KernelPCA\.kernel is Embedded, which calls"),
        (KernelPCA(kernel=Normalized(Embedded(np.abs))), r"KernelPCA\.kernel\.kernel is Embedded"),
        (KernelPCA(random_state=np.random.RandomState(0)), r"random_state is a random generator"),
        (
            KernelPCA(random_state=np.random.default_rng(0)),
            r"number instead, such as random_state=0",
        ),
        (Grown(), r"Grown is of class .*Grown, which is not among"),
        (LogisticRegression(), r"LogisticRegression, which is not among"),
        (make_pipeline(FunctionTransformer(), KernelPCA()), r"steps\[0\]\[1\] is of class sklearn"),
        (make_pipeline(StandardScaler(), KernelPCA(), memory="x"), r"memory is 'x', a place"),
        (KernelPCA(solver=Hebbian(checkpoint="run.npz")), r"solver\.checkpoint is 'run.npz'"),
        (with_attribute(print), r"history_\[0\]\['entry'\] is 'print', a function"),
        (with_attribute({(1, 2): 3}), r"has the key \(1, 2\) of type tuple"),
        (with_attribute(np.array([print])), r"an array of objects"),
        (with_attribute(np.zeros(2, dtype="M8[s]")), r"dtype datetime64"),
        (with_attribute(np.ma.masked_array([1])), r"MaskedArray, which is not among"),
        (with_attribute(scipy.sparse.coo_array(np.eye(2))), r"sparse format coo"),
        (
            with_attribute(scipy.sparse.csr_array(([print], [0], [0, 1]), shape=(1, 1))),
            r"dtype object",
        ),
        (with_attribute({1, 2}), r"builtins\.set, which is not among"),
        ("a text", r"save takes an estimator"),
        (KernelPCA, r"save takes an estimator"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(model, reason, tmp_path):
    path = tmp_path / "model.orthodrome"
    path.write_bytes(b"earlier")
    with pytest.raises(ValueError, match=reason):
        save(model, path)
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_was_checked_as_loading_does(tmp_path):
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.indices[0] = 99
    with pytest.raises(ValueError, match="indices must be < 3"):
        save(with_attribute(matrix), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_holds_itself_is_not_saved(tmp_path):
    model = KernelPCA()
    model.history_ = [model]
    with pytest.raises(ValueError, match="refers to itself"):
        save(model, tmp_path / "m")


class Silent:
    """A callback with a handle that no file can hold."""

    handle = sys.stderr

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, **kwargs): ...

    def on_fit_task_end(self, estimator, context, **kwargs): ...


def test_callbacks_stay_with_the_session(tmp_path):
    callback = Silent()
    model = KernelPCA(2).set_callbacks(callback).fit(laws.vectors()[0])
    save(make_pipeline(StandardScaler(), model), tmp_path / "m")
    again = load(tmp_path / "m")[-1]
    assert not [name for name in vars(again) if "callback" in name]
    assert model._skl_callbacks == [callback]  # the model itself is as it was
    again.fit(laws.vectors()[0])


def test_the_folder_must_be_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a folder: make it"):
        save(KernelPCA(), tmp_path / "none" / "m")


# Files of others ---------------------------------------------------------------------------------


@functools.cache
def genuine(name: str = "KernelPCA-gaussian") -> bytes:
    return archive.pack(laws.fitted(name), {})


def refused(data: bytes, folder: Path) -> str:
    """The reason why a file is not loaded; it must be a ValueError that names the file."""
    path = folder / "file.orthodrome"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"file\.orthodrome") as caught:
        load(path)
    assert type(caught.value) is ValueError
    return str(caught.value).replace(str(folder), "")  # which names the test


def zipped(**members: str | bytes) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as packed:
        for name, content in members.items():
            packed.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"PK", "is not a model file"),
        (b"a,b\n1,2\n", "is not a model file"),
        (pickle.dumps(KernelPCA()), "looks like a pickle"),
        (b"PK\x03\x04" + bytes(100), "damaged (BadZipFile"),
        (zipped(**{"readme.txt": "hello"}), "without orthodrome.json"),
        (zipped(**{"schema.json": "{}"}), "without orthodrome.json"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_files_are_refused(data, reason, tmp_path):
    assert reason in refused(data, tmp_path)


def test_files_that_cannot_be_read_say_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


# Versions ----------------------------------------------------------------------------------------


def told(**manifest) -> bytes:
    return laws.forged(laws.members_of(genuine()), **manifest)


@pytest.mark.parametrize("number", [[1, 1], [2, 0]])
def test_a_newer_format_is_named(number, tmp_path):
    reason = refused(told(format=number, versions={"orthodrome": "0.0.8"}), tmp_path)
    assert "written by orthodrome 0.0.8 in format" in reason
    assert reason.endswith("Upgrade orthodrome.")


@pytest.mark.parametrize("number", [[], [1], ["1", "0"], [True, 0], "1.0", None, [0, 9]])
def test_a_format_that_is_none_is_refused(number, tmp_path):
    refused(told(format=number), tmp_path)


def test_a_manifest_that_is_none_is_refused(tmp_path):
    members = laws.members_of(genuine())
    for content in (b"[]", b'{"format": [1, 0]}'):
        forged = zipped(**members | {"orthodrome.json": content})
        assert "its orthodrome.json is not that of a model file" in refused(forged, tmp_path)


def test_who_made_warnings_errors_gets_the_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "_versions", lambda: {"orthodrome": "1.4.2"})
    (tmp_path / "m").write_bytes(told(versions={"orthodrome": "1.3.7"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match=r"saved by orthodrome 1\.3\.7"):
            load(tmp_path / "m")


def test_a_newer_release_is_refused_and_an_older_one_is_told(tmp_path, monkeypatch):
    path = tmp_path / "m"
    monkeypatch.setattr(archive, "_versions", lambda: {"orthodrome": "1.4.2"})
    for version in ("1.4.0", "1.4.9", "1.4.dev0", "unknown", None):
        path.write_bytes(told(versions={"orthodrome": version}))
        load(path)
    path.write_bytes(told(versions={"orthodrome": "1.3.7"}))
    with pytest.warns(UserWarning, match=r"saved by orthodrome 1\.3\.7 and is loaded by 1\.4\.2"):
        load(path)
    for version in ("1.5.0.dev0", "2.0"):
        assert "Upgrade" in refused(told(versions={"orthodrome": version}), tmp_path)


def test_the_file_names_what_wrote_it():
    manifest = json.loads(laws.members_of(genuine())["orthodrome.json"])
    assert manifest["format"] == list(archive.FORMAT)
    assert {"orthodrome", "numpy", "scikit-learn"} <= manifest["versions"].keys()


# Hostile files -----------------------------------------------------------------------------------


def forged_with(change, name: str = "KernelPCA-gaussian", **members: bytes) -> bytes:
    """A genuine file whose description was changed, with digests that agree."""
    found = laws.members_of(genuine(name))
    schema = json.loads(found["schema.json"])
    change(schema)
    return laws.forged(found | {"schema.json": json.dumps(schema).encode()} | members)


def add_attribute(schema, described) -> None:
    """Give the model one more attribute; nothing of it is referred to from elsewhere."""
    kinds = schema["content"]["key_types"]["content"]
    kinds.append(copy.copy(kinds[0]))
    laws.attributes(schema)["extra_"] = described


def node(loader, module, kind, **fields):
    return {"__class__": kind, "__module__": module, "__loader__": loader, "__id__": 10**6} | fields


def text(value, number=2 * 10**6):
    content = json.dumps(value)
    return node("JsonNode", "builtins", "str", content=content, is_json=True) | {"__id__": number}


def row(*values):
    return node("TupleNode", "builtins", "tuple", content=list(values)) | {"__id__": 3 * 10**6}


def payloads(marker: Path) -> dict[str, dict]:
    """Nodes that would run something, or make something that runs later."""
    command = f"touch {marker}"
    system = node("FunctionNode", "os", "system") | {"__id__": 4 * 10**6}
    empty = node("DictNode", "builtins", "dict", content={})
    empty["key_types"] = node("ListNode", "builtins", "list", content=[]) | {"__id__": 5 * 10**6}
    partial = {"func": system, "args": row(text(command)), "kwds": empty, "namespace": text(None)}
    path = row(text(str(marker)), text("w", 2 * 10**6 + 1))
    return {
        "os.system": system,
        "builtins.eval": node("TypeNode", "builtins", "eval"),
        "a trusted ufunc": node("FunctionNode", "numpy", "add"),
        "functools.partial": node("PartialNode", "functools", "partial", content=partial),
        "operator.methodcaller": node(
            "OperatorFuncNode", "operator", "methodcaller", attrs=row(text("fit"))
        ),
        "a method": node(
            "MethodNode", "builtins", "str", content={"func": "format", "obj": text("x")}
        ),
        "a constructor": node("ConstructorFromReduceNode", "builtins", "open", content=path),
        "FunctionTransformer": node(
            "ObjectNode",
            "sklearn.preprocessing._function_transformer",
            "FunctionTransformer",
            content=empty,
        ),
        "subprocess.Popen": node("ObjectNode", "subprocess", "Popen", content=empty),
        "a list that opens": node("ListNode", "subprocess", "Popen", content=[text(command)]),
        "a tuple that opens": node("TupleNode", "os", "system", content=[text(command)]),
        "a dict that opens": empty | {"__module__": "os", "__class__": "getcwd"},
        "a default dict": node(
            "DefaultDictNode",
            "collections",
            "defaultdict",
            content={"main": empty, "default_factory": system},
        ),
        "keys that open": empty
        | {
            "content": {str(marker): text(1)},
            "key_types": node(
                "ListNode", "builtins", "list", content=[node("TypeNode", "builtins", "open")]
            )
            | {"__id__": 7 * 10**6},
        },
        "a number that opens": node("NdArrayNode", "builtins", "open", type="numpy", file="1.npy"),
        "a generator": node("RandomStateNode", "numpy.random.mtrand", "RandomState", content=empty),
        "a set": node("SetNode", "builtins", "set", content=[]),
        "bytes": node("BytesNode", "builtins", "bytes", file="1.npy"),
        "a cached node": node("CachedNode", "builtins", "str"),
        "an unknown loader": node("Node", "builtins", "str"),
        "a list of JSON": text([1]),
        "an array of objects": node(
            "NdArrayNode",
            "numpy",
            "ndarray",
            type="json",
            content=[system],
            shape=row(text(1)),
        ),
        "a sparse array": node("SparseMatrixNode", "os", "system", type="scipy", file="1.npy"),
        "no node": {"content": 1},
        "a text for a node": "node",  # type: ignore[dict-item]
    }


@pytest.mark.parametrize("which", payloads(Path("x")))
@pytest.mark.parametrize("place", ["attribute", "item", "model"])
def test_a_crafted_file_is_refused_and_runs_nothing(which, place, tmp_path):
    marker = tmp_path / "ran"
    payload = payloads(marker)[which]

    def change(schema):
        if place == "attribute":
            add_attribute(schema, payload)
        elif place == "item":
            items = node("ListNode", "builtins", "list", content=[payload])
            add_attribute(schema, items | {"__id__": 6 * 10**6})
        else:
            schema.clear()
            schema.update(payload if isinstance(payload, dict) else {}, protocol=2)

    data = forged_with(change)
    refused(data, tmp_path)
    assert not marker.exists()


def numbered(number, *arguments, **fields):
    return node(*arguments, **fields) | {"__id__": number}


def dictionary(content, kinds):
    types = numbered(7 * 10**6, "ListNode", "builtins", "list", content=kinds)
    return node("DictNode", "builtins", "dict", content=content, key_types=types)


def names(shape, content=()):
    """An array of objects, as the names of columns are."""
    kind = ("NdArrayNode", "numpy", "ndarray")
    return node(*kind, type="json", content=list(content), shape=shape)


INTEGER = numbered(8 * 10**6, "TypeNode", "builtins", "int")
SPARSE = ("scipy.sparse._csr", "csr_array")
KERNEL = (9 * 10**6, "ObjectNode", "orthodrome.kernels.pairwise", "Linear")

#: Descriptions of an attribute that no model file has.
MALFORMED = {
    "a number for a loader": text(1) | {"__loader__": 1},
    "no types of keys": dictionary({}, []) | {"key_types": text(1)},
    "a list for a dictionary": dictionary([], []),
    "fewer types than keys": dictionary({"a": text(1)}, []),
    "a type for a value": numbered(4 * 10**6, "TypeNode", "builtins", "str"),
    "attributes that are none": numbered(*KERNEL, content=text(1)),
    "attributes by numbers": numbered(*KERNEL, content=dictionary({"1": text(1)}, [INTEGER])),
    "a text for a list": node("ListNode", "builtins", "list", content="abc"),
    "a text for an array": names(row(text(1))) | {"content": "abc"},
    "no shape": names(text(1)),
    "two dimensions": names(row(text(1), text(1, 9 * 10**6))),
    "objects that are numbers": names(row(text(0))) | {"__class__": "float64"},
    "no such file": node("NdArrayNode", "numpy", "ndarray", type="numpy", file="99.npy"),
    "a file of another kind": node("SparseMatrixNode", *SPARSE, type="scipy", file="1.npy"),
    "one file for two": node("NdArrayNode", "numpy", "ndarray", type="numpy", file="1.npy"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_description_is_refused(case, tmp_path):
    data = forged_with(lambda schema: add_attribute(schema, MALFORMED[case]))
    assert "cannot be loaded as a model" in refused(data, tmp_path)


def first_array(schema) -> dict:
    return laws.attributes(schema)["eigenvalues_"]


def npy(array, *, allow_pickle=False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


class Opener:
    """Pickled, it opens a file for writing."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def header(text: str, data: bytes = b"") -> bytes:
    content = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(content)) + content + data


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "."),
        (b"\x93NUMPY\x09\x00" + bytes(120), "array in it is damaged"),
        (npy(np.arange(9.0))[:-8], "its header promises 72 bytes"),
        (npy(np.arange(9.0)) + bytes(8), "the size of"),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000,), }"),
            "its header promises 80000000000000 bytes",
        ),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
            "its header promises",
        ),
        (
            header("{'descr': '<U0', 'fortran_order': False, 'shape': (9999999,), }"),
            "promises an array of",
        ),
        (
            header("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"12345678"),
            "pickled",
        ),
        (header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,), }"), "dtype"),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }", bytes(8)),
            "has size 1; other parts of the model have",
        ),
        (header("__import__('os').system('false')"), "."),
    ],
)
def test_an_array_that_is_none_is_refused(content, reason, tmp_path):
    members = laws.members_of(genuine())
    file = first_array(json.loads(members["schema.json"]))["file"]
    assert reason in refused(laws.forged(members | {file: content}), tmp_path)


def test_a_pickle_in_an_array_is_not_opened(tmp_path):
    marker = tmp_path / "ran"
    members = laws.members_of(genuine())
    file = first_array(json.loads(members["schema.json"]))["file"]
    objects = np.array([Opener(marker)], dtype=object)
    refused(laws.forged(members | {file: npy(objects, allow_pickle=True)}), tmp_path)
    assert not marker.exists()


def test_a_value_of_another_kind_than_it_says_is_refused(tmp_path):
    def change(schema):
        array = first_array(schema)
        array.update(__class__="float64")

    assert "is not the numpy.float64" in refused(forged_with(change), tmp_path)


@pytest.mark.parametrize("protocol", [0, 1, 3, True, None, "2"])
def test_other_protocols_are_refused(protocol, tmp_path):
    assert "not of a kind" in refused(
        forged_with(lambda schema: schema.update(protocol=protocol)), tmp_path
    )


def test_numbers_name_one_thing(tmp_path):
    def change(schema):
        described = laws.attributes(schema)["eigenvalues_"]["__id__"]
        add_attribute(schema, node("JsonNode", "builtins", "str") | {"__id__": described})

    assert "two different values" in refused(forged_with(change), tmp_path)


def test_a_reference_to_what_is_around_it_is_refused(tmp_path):
    def change(schema):
        keys = ("__class__", "__module__", "__loader__", "__id__")
        add_attribute(schema, {key: schema[key] for key in keys})

    assert "it is damaged" in refused(forged_with(change), tmp_path)


def test_a_field_that_is_there_twice_is_refused(tmp_path):
    members = laws.members_of(genuine())
    twice = members["schema.json"].replace(b'{"__class__"', b'{"protocol": 2, "__class__"', 1)
    assert "twice" in refused(laws.forged(members | {"schema.json": twice}), tmp_path)


def test_deep_nesting_is_refused(tmp_path):
    deep = b"[" * 10**6 + b"]" * 10**6
    members = laws.members_of(genuine())
    refused(laws.forged(members | {"schema.json": deep}), tmp_path)


def test_a_place_whose_files_would_be_read_is_refused(tmp_path):
    def change(schema):
        laws.attributes(schema)["memory"] = text("/elsewhere")

    assert "memory is '/elsewhere'" in refused(forged_with(change, "pipeline"), tmp_path)


# Archives ----------------------------------------------------------------------------------------


def test_members_must_be_those_that_were_written(tmp_path):
    members = laws.members_of(genuine())
    changed = dict(members, **{"1.npy": npy(np.zeros(3))})
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as packed:
        for name, content in changed.items():
            packed.writestr(name, content)
    assert "1.npy was damaged or changed" in refused(buffer.getvalue(), tmp_path)
    added = io.BytesIO(genuine())
    with ZipFile(added, "a") as packed:
        packed.writestr("999.npy", b"")
    assert "other members" in refused(added.getvalue(), tmp_path)
    for name in ("../x", "x.py", "999.npy"):
        refused(laws.forged(members | {name: b""}), tmp_path)
    for name in members.keys() - {"orthodrome.json"}:
        refused(laws.forged({key: members[key] for key in members if key != name}), tmp_path)


def test_compressed_members_are_refused_unread(tmp_path, monkeypatch):
    members = laws.members_of(genuine())
    bomb = laws.forged(members | {"schema.json": bytes(10**7)}, ZIP_DEFLATED)
    assert len(bomb) < 10**5
    monkeypatch.setattr(ZipFile, "read", lambda *_: pytest.fail("a member was read"))
    assert "compressed" in refused(bomb, tmp_path)


def test_members_that_overlap_are_refused_unread(tmp_path, monkeypatch):
    """Many entries of the directory for the same bytes are larger than the file."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_STORED) as packed:
        packed.writestr("1.npy", bytes(10**4))
        first = packed.infolist()[0]
        for number in range(2, 50):
            again = copy.copy(first)
            again.filename = f"{number}.npy"
            packed.filelist.append(again)
            packed.NameToInfo[again.filename] = again
    monkeypatch.setattr(ZipFile, "read", lambda *_: pytest.fail("a member was read"))
    assert "larger than itself" in refused(buffer.getvalue(), tmp_path)


def test_a_member_twice_is_refused(tmp_path):
    buffer = io.BytesIO(genuine())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ZipFile(buffer, "a") as packed:
            packed.writestr("schema.json", b"{}")
    assert "twice" in refused(buffer.getvalue(), tmp_path)


def sparse_forged(change) -> bytes:
    members = laws.members_of(genuine("sparse"))
    (file,) = [name for name in members if name.endswith(".npz")]
    parts = laws.members_of(members[file])
    buffer = io.BytesIO()
    compression = change(parts) or ZIP_STORED
    with ZipFile(buffer, "w", compression) as packed:
        for name, content in parts.items():
            packed.writestr(name, content)
    return laws.forged(members | {file: buffer.getvalue()})


def beyond_the_columns(parts):
    indices = np.load(io.BytesIO(parts["indices.npy"]))
    parts["indices.npy"] = npy(indices + 10**6)


@pytest.mark.parametrize(
    "change",
    [
        beyond_the_columns,
        lambda parts: parts.update({"indptr.npy": npy(np.arange(-3, 34))}),
        lambda parts: parts.update({"format.npy": npy(np.array(b"csc"))}),
        lambda parts: parts.update({"extra.npy": npy(np.zeros(1))}),
        lambda parts: parts.pop("data.npy") and None,
        lambda parts: parts.pop("_is_array.npy") and None,
        lambda parts: ZIP_DEFLATED,
    ],
)
def test_a_sparse_array_that_is_none_is_refused(change, tmp_path):
    refused(sparse_forged(change), tmp_path)


def test_forged_files_are_loaded_where_nothing_was_changed(tmp_path):
    """The forgeries above are refused for what they say, not for how they are made."""
    for data in (
        forged_with(lambda schema: None),
        sparse_forged(lambda parts: None),
        forged_with(lambda schema: add_attribute(schema, text(77))),
    ):
        (tmp_path / "m").write_bytes(data)
        model = load(tmp_path / "m")
        assert isinstance(model, KernelPCA)
    assert model.extra_ == 77


# Damage ------------------------------------------------------------------------------------------


def check_refused_or_the_same(data: bytes, folder: Path) -> bool:
    path = folder / "damaged.orthodrome"
    path.write_bytes(data)
    try:
        model = load(path)
    except ValueError as caught:
        error = str(caught)
    else:
        error = ""
    if error:
        assert "damaged.orthodrome" in error
        return False
    name = "KernelPCA-gaussian"
    laws.assert_same_answers(laws.answers(model, name), laws.answers(laws.fitted(name), name))
    return True


@settings(
    max_examples=2 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.integers(0), bits=st.integers(1, 255), from_end=st.booleans())
def test_a_changed_byte_is_refused_or_means_nothing(place, bits, from_end, tmp_path):
    data = bytearray(genuine())
    # the directory of an archive is at its end, and half of the trials are there
    place = -1 - place % 1200 if from_end else place % len(data)
    data[place] ^= bits
    check_refused_or_the_same(bytes(data), tmp_path)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(missing=st.integers(0))
def test_a_cut_file_is_refused(missing, tmp_path):
    data = genuine()
    assert not check_refused_or_the_same(data[: -1 - missing % len(data)], tmp_path)


def test_a_kernel_that_was_saved_evaluates(tmp_path):
    kernel = Gaussian().fit(laws.vectors()[0])
    save(kernel, tmp_path / "k")
    X = laws.vectors()[1]
    np.testing.assert_array_equal(load(tmp_path / "k")(X), kernel(X))


@pytest.mark.parametrize("kernel", ["gaussian", "cosine"])
def test_kernel_pga_goes_on_after_it_was_saved(kernel, tmp_path):
    X = np.random.default_rng(0).standard_normal((600, 4)) + 3
    model = KernelPGA(2, kernel=kernel, n_anchors=20, random_state=0)
    model.partial_fit(X[:300])
    save(model, tmp_path / "m.orthodrome")
    again = load(tmp_path / "m.orthodrome").partial_fit(X[300:])
    model.partial_fit(X[300:])
    np.testing.assert_array_equal(again.eigenvalues_, model.eigenvalues_)
    save(again, tmp_path / "n.orthodrome")
    loaded = load(tmp_path / "n.orthodrome")
    np.testing.assert_array_equal(loaded.transform(X[:5]), model.transform(X[:5]))


def test_k_means_of_a_dask_array_is_saved_without_labels(tmp_path):
    da = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).standard_normal((90, 3))
    model = KernelKMeans(3, n_anchors=20, random_state=0).fit(da.from_array(X, chunks=40))
    save(model, tmp_path / "m.orthodrome")
    again = load(tmp_path / "m.orthodrome")
    np.testing.assert_array_equal(again.predict(X), np.asarray(model.labels_))
