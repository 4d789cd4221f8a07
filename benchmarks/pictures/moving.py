"""A moving picture of screenshots with captions, as a GIF that is small enough for a README."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import matplotlib
from PIL import Image, ImageColor, ImageDraw, ImageFont

WIDTH = 960  # pixels
BAR, MARGIN, TEXT = 44, 16, 20  # pixels of the caption
PAPER, INK, DONE = "#12263a", "#ffffff", "#4cc2ff"
COLOURS = 256  # of a GIF
SHARES = (1.0, 0.85, 0.7, 0.55, 0.4, 0.25)  # of a reserved colour over its ground: lines have soft edges
BYTES = 3_000_000


class Frame(NamedTuple):
    """A screenshot, what it shows, and how long it stays."""

    png: bytes
    caption: str
    seconds: float


def _drawn(frame: Frame, share: float) -> Image.Image:
    """Return a screenshot above its caption; a line tells how much of the whole has been shown."""
    shot = Image.open(BytesIO(frame.png)).convert("RGB")
    height = round(shot.height * WIDTH / shot.width)
    drawn = Image.new("RGB", (WIDTH, height + BAR), PAPER)
    drawn.paste(shot.resize((WIDTH, height), Image.Resampling.LANCZOS), (0, 0))
    pen = ImageDraw.Draw(drawn)
    font = ImageFont.truetype(str(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), TEXT)
    if pen.textlength(frame.caption, font) > WIDTH - 2 * MARGIN:
        raise ValueError(f"too long for a line of {WIDTH} pixels: {frame.caption}")
    pen.text((MARGIN, height + BAR / 2), frame.caption, INK, font, anchor="lm")
    pen.rectangle((0, height, round(WIDTH * share), height + 3), DONE)
    return drawn


def _palette(sheet: Image.Image, reserved: Sequence[str], ground: str) -> Image.Image:
    """Return a palette of reserved colours, also mixed with the ground below them, and the most frequent others.

    Without reserving, a thin line gets the colour of something larger: an amber outline becomes red.
    """
    below = ImageColor.getrgb(ground)
    fixed: dict[tuple[int, ...], None] = {}  # in order, each once
    for colour in (ImageColor.getrgb(one) for one in (*reserved, PAPER, INK, DONE)):
        for share in SHARES:
            fixed[tuple(round(share * a + (1 - share) * b) for a, b in zip(colour, below, strict=True))] = None
    if len(fixed) > COLOURS // 2:
        raise ValueError(f"{len(reserved)} reserved colours need {len(fixed)} of {COLOURS}: leave some to the rest")
    rest = sheet.quantize(COLOURS - len(fixed), method=Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in fixed for part in colour] + rest)
    return palette


def write_gif(path: Path, frames: Sequence[Frame], reserved: Sequence[str] = (), ground: str = "#ffffff") -> None:
    """Write frames of the same size, one after the other for ever; more than 3 MB are an error.

    `reserved` are colours such as `#c53f1a` that stay as they are however few pixels have them, `ground` is what lies
    below them.
    """
    drawn = [_drawn(frame, (k + 1) / len(frames)) for k, frame in enumerate(frames)]
    # One palette for all, of a sheet of all: colours do not flicker, and what stays the same is stored once.
    sheet = Image.new("RGB", (WIDTH, sum(one.height for one in drawn)))
    top = 0
    for one in drawn:
        sheet.paste(one, (0, top))
        top += one.height
    palette = _palette(sheet, reserved, ground)
    reduced = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in drawn]
    reduced[0].save(
        path,
        save_all=True,
        append_images=reduced[1:],
        duration=[round(1000 * frame.seconds) for frame in frames],
        loop=0,
        optimize=True,
    )
    if path.stat().st_size > BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size:,} bytes: take fewer frames")
