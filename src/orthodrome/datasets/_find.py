"""Find a data set on this machine, check its arrays, and say what to place where if it is absent.

In each data folder a set may lie as the file that the registry names (``uci/iris.csv``), or as its
publisher's own files under ``raw/<name>/`` (``raw/iris/iris.data``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orthodrome.datasets._fingerprint import arrays_sha256
from orthodrome.datasets._folders import CACHE_VARIABLE, DATA_VARIABLE
from orthodrome.datasets._raw import converted
from orthodrome.datasets._registry import DatasetEntry, Source

__all__ = ["absent_message", "check_arrays", "damage_told", "find_content", "find_file"]


def find_file(entry: DatasetEntry, folders: Sequence[Path]) -> Path | None:
    """Return the first existing file of a set in the registry's layout, or None."""
    files = (folder / entry.path for folder in folders)
    return next((file for file in files if file.is_file()), None)


def find_content(entry: DatasetEntry, folders: Sequence[Path]) -> tuple[bytes, str] | None:
    """Read a set from the first folder that has it.

    Parameters
    ----------
    entry : DatasetEntry
        The set.
    folders : sequence of pathlib.Path
        Where to look, in order.

    Returns
    -------
    found : tuple of bytes and str, or None
        The file as the set's reader takes it, and where it was read.
    """
    for folder in folders:
        file = find_file(entry, [folder])
        if file is not None:
            return file.read_bytes(), str(file)
        for source in _published(entry):
            files = [folder / "raw" / entry.name / name for name in source.file_names]
            if all(file.is_file() for file in files):
                contents = [file.read_bytes() for file in files]
                with damage_told(str(files[0]), entry):
                    return converted(contents, source, entry), str(files[0])
    return None


@contextmanager
def damage_told(origin: str, entry: DatasetEntry) -> Iterator[None]:
    """Let whatever a reader raises on damaged bytes be a ValueError that names the file.

    Parameters
    ----------
    origin : str
        The file.
    entry : DatasetEntry
        What it should hold.
    """
    try:
        yield
    except (MemoryError, ImportError):  # of the machine, and of an extra that is not installed
        raise
    except Exception as error:  # readers index and reshape what they find, as if it were right
        told = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ValueError(
            f"{origin} cannot be read as the data set {entry.name!r}: {told}"
        ) from error


def _published(entry: DatasetEntry) -> list[Source]:
    """Sources that are files on the network: those a user can fetch by hand."""
    return [source for source in entry.sources if source.urls and not source.local]


def check_arrays(fields: dict[str, Any], entry: DatasetEntry, origin: str) -> None:
    """Raise a ValueError that names both hashes if the arrays are not those of the registry.

    Parameters
    ----------
    fields : dict
        The parsed fields.
    entry : DatasetEntry
        What is expected.
    origin : str
        Where the arrays come from, for the message.
    """
    found = arrays_sha256(fields)
    if found != entry.arrays_sha256:
        raise ValueError(
            f"{origin} does not hold the arrays that the registry knows as {entry.name!r}: "
            f"expected SHA-256 {entry.arrays_sha256} over the parsed arrays, found {found}."
        )


def absent_message(
    entry: DatasetEntry, folders: Sequence[Path], reasons: Sequence[str] = ()
) -> str:
    """Say what is missing, where it was looked for, and which file to place where.

    Parameters
    ----------
    entry : DatasetEntry
        The set.
    folders : sequence of pathlib.Path
        The folders that were searched.
    reasons : sequence of str
        Why each source failed; empty where none was asked.

    Returns
    -------
    message : str
        A few lines.
    """
    lines = [f"The data set {entry.name!r} ({entry.title}) is not on this machine."]
    lines += [f"Looked for {folder / entry.path}." for folder in folders]
    lines += [f"Tried {reason}" for reason in reasons]
    folder = folders[0]
    lines.append(f"To use it without network, place {folder / entry.path} ({entry.description})")
    for source in _published(entry)[:1]:
        lines[-1] += ", or what is published, as it is:"
        lines += [
            f"  {folder / 'raw' / entry.name / name} from {url}"
            for name, url in zip(source.file_names, source.urls, strict=True)
        ]
    lines.append(
        f"Other folders: data_home=..., or the environment variables {DATA_VARIABLE} and "
        f"{CACHE_VARIABLE} (downloads are kept there)."
    )
    lines.append(f"Published at {entry.source_url}. Licence: {entry.license}.")
    return "\n".join(lines)
