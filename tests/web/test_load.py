"""The load test of the live map, small: it measures, and the page keeps up."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks.pictures.map_page import write_png
from benchmarks.pictures.moving import WIDTH, Frame, write_gif
from benchmarks.web.watching import Tasks, percentile, rise, tasks_of, watch_tasks
from browser import context
from console import python

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
WORKS = "setInterval(() => { const end = performance.now() + 30; while (performance.now() < end); }, 100)"


def test_a_small_run_of_the_benchmark(tmp_path):
    python("-m", "benchmarks.web", "--quick")
    found = json.loads((ROOT / "build" / "bench" / "web-part.json").read_text())
    values = {row["work"].rpartition(": ")[2]: row["value"] for row in found["rows"]}
    assert values["tasks"] > 0
    assert 0 < values["p95"] <= values["longest"]
    assert values["objects of JavaScript, at the end"] > 1
    assert values["objects of JavaScript of the map's worker, at the end"] > 1
    assert values["until a browser shows a match"] > 0
    assert values["published"] > 0
    assert "Chromium" in found["versions"]


def test_tasks_of_the_page_are_seen(chromium):
    with context(chromium) as window:
        page = window.new_page()
        page.evaluate(WORKS)
        found = watch_tasks(page, 2)
        assert isinstance(found, Tasks)
        assert percentile(found.work, 100) >= 29
        assert found.share(found.durations) > 0
    assert percentile(found.computing, 100) > 0


def test_waits_for_what_draws_are_no_work_of_the_page():
    thread = {"pid": 1, "tid": 2, "ph": "X"}
    events = [
        {"pid": 1, "tid": 2, "ph": "M", "name": "thread_name", "args": {"name": "CrRendererMain"}},
        {**thread, "name": "RunTask", "ts": 5_000, "dur": 9_000, "tdur": 2_000},
        {**thread, "name": "RunTask", "ts": 20_000, "dur": 3_000, "tdur": 3_000},
        {**thread, "name": "CommandBufferProxyImpl::WaitForToken", "ts": 6_000, "dur": 4_000},
        {**thread, "name": "CommandBufferProxyImpl::WaitForGetOffset", "ts": 11_000, "dur": 2_000},
        {**thread, "tid": 3, "name": "CommandBufferProxyImpl::WaitForToken", "ts": 6_000, "dur": 1_000},
    ]
    found = tasks_of(events, 1, 100)
    assert found.durations.tolist() == [9, 3]
    assert found.processor.tolist() == [2, 3]
    assert found.waits.tolist() == [6, 0]
    assert found.share(found.durations) == 12


def test_a_rise_is_seen():
    assert rise([100, 101, 99, 100]) == pytest.approx(-0.6)
    assert rise([100, 110, 120]) > 15


def test_frames_become_a_moving_picture(tmp_path):
    shots = []
    for shade in (0, 128, 255):
        path = tmp_path / f"{shade}.png"
        Image.new("RGB", (1280, 800), (shade, 80, 80)).save(path)
        shots.append(Frame(path.read_bytes(), f"shade {shade}", 0.5))
    write_gif(tmp_path / "tour.gif", shots)
    with Image.open(tmp_path / "tour.gif") as found:
        assert (found.n_frames, found.width, found.info["duration"]) == (3, WIDTH, 500)
    with pytest.raises(ValueError, match="reserved"):
        write_gif(tmp_path / "many.gif", shots, [f"#{number:06x}" for number in range(0, 1_000_000, 10_000)])
    with pytest.raises(ValueError, match="too long"):
        write_gif(tmp_path / "long.gif", [Frame(shots[0].png, "word " * 40, 1)])


RED, AMBER, GREEN = (197, 63, 26), (179, 118, 11), (24, 112, 58)
SOFT = (200, 156, 81)  # the edge of an amber line: two thirds of it over land


def crowded_picture():
    """A picture of thousands of colours, with a red area, a thin amber line and a small green dot."""
    across, down = np.meshgrid(np.linspace(0, 255, 1280), np.linspace(0, 255, 800))
    pixels = np.stack([across, down, (across + down) / 2], axis=2).astype(np.uint8)
    pixels[100:400, 100:400] = RED
    pixels[200:203, 500:560] = AMBER
    pixels[700:708, 700:708] = GREEN
    pixels[500:504, 500:560] = SOFT
    kept = BytesIO()
    Image.fromarray(pixels).save(kept, "PNG")
    return kept.getvalue()


def test_small_things_keep_their_colours_in_pictures(tmp_path):
    png = crowded_picture()
    write_png(tmp_path / "one.png", png)
    with Image.open(tmp_path / "one.png") as found:
        assert [found.getpixel(place) for place in ((703, 703), (530, 201), (200, 200))] == [GREEN, AMBER, RED]
    reserved = ["#c53f1a", "#b3760b", "#18703a"]
    write_gif(tmp_path / "one.gif", [Frame(png, "a storm", 1)], reserved, ground="#f8f6f1")
    with Image.open(tmp_path / "one.gif") as found:
        shown = found.convert("RGB")
        scale = WIDTH / 1280
        for place, colour in (((704, 704), GREEN), ((530, 201), AMBER), ((200, 200), RED)):
            assert shown.getpixel(tuple(round(part * scale) for part in place)) == colour
        edge = shown.getpixel((round(530 * scale), round(501.5 * scale)))
        assert max(abs(a - b) for a, b in zip(edge, SOFT, strict=True)) < 16
