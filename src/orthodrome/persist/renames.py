"""Names in model files of earlier versions, and what they are called now."""

from __future__ import annotations

from typing import Any

__all__ = ["NEWER", "renewed"]

#: Fields that classes did not have in earlier versions, and for which they have a default.
NEWER = {"PartialFit": {"radius"}}

# Classes by module and name.
_CLASSES = {
    ("orthodrome.gram.landmarks", "Landmarks"): ("orthodrome.coordinates.anchors", "Anchors"),
}

# Attributes and parameters of objects of orthodrome.
_ATTRIBUTES = {
    "n_landmarks": "n_anchors",
    "n_landmarks_": "n_anchors_",
    "landmark_indices_": "anchor_indices_",
    "landmarks": "anchors",
}


def renewed(node: Any) -> Any:
    """Return a description of a model, see :mod:`.schema`, with old names replaced by new ones."""
    if isinstance(node, list):
        return [renewed(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: renewed(item) for key, item in node.items()}
    module, kind, content = (made.get(key) for key in ("__module__", "__class__", "content"))
    if not (isinstance(module, str) and isinstance(kind, str) and module.startswith("orthodrome.")):
        return made
    made["__module__"], made["__class__"] = _CLASSES.get((module, kind), (module, kind))
    if isinstance(content, dict) and isinstance(content.get("content"), dict):
        attributes = content["content"]
        made["content"] = content | {
            "content": {_ATTRIBUTES.get(key, key): item for key, item in attributes.items()}
        }
    return made
