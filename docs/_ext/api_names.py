"""References to a public thing by any of its names, which members its page lists, and its text.

A class such as ``orthodrome.KernelPCA`` can also be imported from its room and from its module;
docstrings use all three, and the API pages have it once.
"""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any


def _found(name: str) -> Any:
    """Return what a dotted name stands for, None if nothing."""
    module, _, rest = name.rpartition(".")
    trail = [rest]
    while module:
        try:
            thing = importlib.import_module(module)
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            trail.insert(0, last)
            continue
        for part in trail:
            thing = getattr(thing, part, None)
        return thing
    return None


def _private(room: str | None, name: str) -> Any:
    """Return what a docstring calls by its bare name within its own module, of which only the room
    is known here.
    """
    modules = [module for key, module in sys.modules.items() if key.startswith(f"{room}.")]
    return next((vars(module)[name] for module in modules if name in vars(module)), None)


def _resolve(app: Any, env: Any, node: Any, contnode: Any) -> Any:
    """Look for the page of the same thing under another name."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    scopes = ["", node.get("py:module"), node.get("py:class")]
    names = [f"{scope}.{target}" if scope else target for scope in scopes if scope is not None]
    wanted = next((thing for name in names if (thing := _found(name)) is not None), None)
    if wanted is None:
        wanted = _private(node.get("py:module"), target)
    if wanted is None:
        return None
    domain = env.get_domain("py")
    last = target.rpartition(".")[2]
    for name in domain.objects:
        if name.rpartition(".")[2] == last and _found(name) is wanted:
            return domain.resolve_xref(
                env, node["refdoc"], app.builder, "obj", name, node, contnode
            )
    # what exists and has no page is not public: its name will do
    return contnode if getattr(wanted, "__module__", "").startswith("orthodrome") else None


def _mend(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    r"""Join lines that a raw docstring breaks by a backslash; ``(n_,)`` is a shape, not a link."""
    text = "\n".join(lines)
    text = re.sub(r"\\\n\s*", "", text)
    text = re.sub(
        r"(?<= : )(.*\bshape .*)", lambda m: re.sub(r"(\w)_(?=[,)])", r"\1\_", m[1]), text
    )
    lines[:] = text.split("\n")


def _skip_member(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out what scikit-learn, SciPy and Python bring along: they have pages of their own."""
    if name.startswith("set_") and name.endswith("_request"):
        return True
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    function = getattr(function, "func", function)
    module = getattr(function, "__module__", None)
    if callable(function) and not str(module).startswith("orthodrome"):
        return True
    return None if not name.startswith("_") else True


def setup(app: Any) -> dict[str, Any]:
    """Connect all three."""
    app.connect("missing-reference", _resolve)
    app.connect("autodoc-process-docstring", _mend, priority=100)  # before numpydoc
    app.connect("autodoc-skip-member", _skip_member)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
