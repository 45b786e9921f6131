"""Crop the thumbnails of wide gallery figures to one panel, so that they can be read.

A comment ``# sphinx_gallery_thumbnail_panel = (2, 3)`` in an example chooses the second of three
panels of the figure that ``sphinx_gallery_thumbnail_number`` chooses (by default the first figure).
"""

import re
from pathlib import Path
from typing import Any

from PIL import Image

_PANEL = re.compile(r"^# sphinx_gallery_thumbnail_panel = \((\d+), (\d+)\)$", re.MULTILINE)
_NUMBER = re.compile(r"^# sphinx_gallery_thumbnail_number = (\d+)$", re.MULTILINE)
_SIZE = (400, 280)  # sphinx-gallery's default


def crop_thumbnails(app: Any) -> None:
    """Replace the thumbnail of every example that names a panel."""
    folder = Path(app.srcdir)
    for script in (folder.parent / "examples").glob("*/plot_*.py"):
        text = script.read_text(encoding="utf-8")
        panel, number = _PANEL.search(text), _NUMBER.search(text)
        if panel is None:
            continue
        images = folder / "gallery" / script.parent.name / "images"
        figure = f"sphx_glr_{script.stem}_{int(number[1]) if number else 1:03d}_2_00x.png"
        thumbnail = images / "thumb" / f"sphx_glr_{script.stem}_thumb.png"
        if thumbnail.exists() and (images / figure).exists():
            _crop(images / figure, thumbnail, *map(int, panel.groups()))


def _crop(figure: Path, thumbnail: Path, panel: int, n_panels: int) -> None:
    with Image.open(figure) as image:
        width = image.width // n_panels
        part = image.convert("RGB").crop(((panel - 1) * width, 0, panel * width, image.height))
    part.thumbnail(_SIZE)
    canvas = Image.new("RGB", _SIZE, "white")
    canvas.paste(part, ((_SIZE[0] - part.width) // 2, (_SIZE[1] - part.height) // 2))
    canvas.save(thumbnail)


def setup(app: Any) -> dict[str, bool]:
    """Crop after sphinx-gallery has drawn the figures."""
    app.connect("builder-inited", crop_thumbnails, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
