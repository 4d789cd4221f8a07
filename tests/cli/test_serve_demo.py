"""`contrada serve --demo`: a district that lives, seen through the map."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import shapely

from contrada.cli.serving_demo import LivingDistrict
from contrada.demo.live import LiveDistrict
from serving import is_problem, run, site

SECONDS = 120.0  # that a busy machine may take


def some_ticks(seed, count):
    return list(itertools.islice(LiveDistrict(seed).ticks(), count))


def test_equal_seeds_give_equal_districts():
    assert LiveDistrict(7).subscriptions == LiveDistrict(7).subscriptions
    assert some_ticks(7, 30) == some_ticks(7, 30)
    assert some_ticks(7, 30) != some_ticks(8, 30)


def test_the_district_has_everything_that_a_newcomer_should_see():
    district, messages = LiveDistrict(7), [one for tick in some_ticks(7, 200) for one in tick]
    assert len({one.subscriber for one in district.subscriptions}) > 20
    assert len({one.key for one in district.subscriptions}) == len(district.subscriptions)
    words = {
        word for one in district.subscriptions for word in re.findall(r"\b(S_\w+|overlaps|relation)\(", one.filter)
    }
    assert words >= {"S_INTERSECTS", "S_WITHIN", "S_DISJOINT", "S_TOUCHES", "overlaps", "relation"}
    assert {kind for one in district.subscriptions for kind in map(str, one.on)} >= {"enter", "exit", "change"}
    assert {one.get("event", "vehicle") for one in messages} == {"storm", "lightning", "closure", "vehicle"}
    storms = {}
    for one in messages:
        if one.get("event") == "storm":
            storms.setdefault(one["storm"], []).append(shapely.from_geojson(json.dumps(one["area"])))
    for outlines in storms.values():
        assert all(outline.is_valid for outline in outlines)
    longest = max(storms.values(), key=len)
    assert max(one.area for one in longest) > 1.5 * min(one.area for one in longest)  # it grows and decays
    assert longest[0].centroid.distance(longest[-1].centroid) > 0.002  # and drifts
    stopped = [one for one in messages if one.get("speed") == 0]
    assert 0.1 < len(stopped) / sum("vehicle" in one for one in messages) < 0.9


def test_matches_and_events_of_the_district_are_real(tmp_path):
    quick = LivingDistrict(lambda text: None, seed=7, second=0.01)
    regions = {}
    for one in LiveDistrict(7).subscriptions:
        if (found := re.fullmatch(r"S_INTERSECTS\(area, (POLYGON.*\)\))\) AND severity >= 2", one.filter)) is not None:
            regions[one.key] = shapely.from_wkt(found[1])
    assert regions

    async def work():
        async with site(tmp_path, options={"companion": quick}, map_public="default") as here:
            messages, end = [], time.monotonic() + SECONDS
            while len(messages) < 600 and time.monotonic() < end:
                await asyncio.sleep(0.2)
                after = messages[-1]["sequence"] if messages else 0
                messages += (await here.ask("GET", f"/map/messages?after={after}&limit=1000")).body["messages"]
            kinds = {one["kind"] for each in messages for one in each["transitions"]}
            assert kinds >= {"enter", "exit"}
            applies = max(
                one["applies_from"]
                for one in (await here.ask("GET", "/map/subscriptions?limit=1000")).body["subscriptions"]
            )
            count = 0
            for one in messages:
                if "area" not in {shape["attribute"] for shape in one["shapes"]} or one["sequence"] < applies:
                    continue
                area = shapely.from_geojson(json.dumps(one["shapes"][0]["geometry"]))
                expected = {key for key, region in regions.items() if region.intersects(area)}
                expected = expected if one["attributes"]["severity"] >= 2 else set()
                assert set(one["matched"]) & set(regions) == expected
                count += len(expected)
            assert count > 0
            settings = (await here.ask("GET", "/map/settings", key=None)).body
            assert (settings["demo"], settings["needs_key"], settings["read_only"]) == (True, False, True)
            assert is_problem(await here.ask("POST", "/messages", {"a": 1}, key=None), 401, "unauthorized")

    run(work())


def started(folder, *flags):
    command = [sys.executable, "-m", "contrada_command", "serve", "--demo", "--port", "0", *flags]
    environment = {**os.environ, "TMPDIR": str(folder)}
    environment.pop("CONTRADA_ADMIN_KEY", None)
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd=folder)


@pytest.mark.parametrize("is_given", [False, True])
def test_the_command_says_where_to_look_and_leaves_nothing_behind(tmp_path, is_given):
    flags = ["--state", str(tmp_path / "state")] if is_given else []
    process = started(tmp_path, *flags)
    try:
        said = []
        while not said or "no key is needed" not in said[-1]:
            said.append(process.stderr.readline())
            assert said[-1], said
        address = next(found[1] for line in said if (found := re.match(r"ready on (http://127\.0\.0\.1:\d+)", line)))
        assert any(line.startswith("admin key, shown only now: ctr_") for line in said)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with urllib.request.urlopen(f"{address}/map/messages") as answer:
                if json.load(answer)["messages"]:
                    break
        else:
            pytest.fail("no message came")
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(SECONDS)
        process.stderr.close()
    assert code == 0
    left = [path.name for path in Path(tmp_path).iterdir()]
    assert [name for name in left if name.startswith("contrada-demo")] == []
    assert ("state" in left) == is_given


def test_a_demonstration_for_others_needs_a_key(tmp_path):
    from contrada.cli.serving_demo import demo_flags, demo_settings

    here = demo_settings(None, demo_flags({"state": str(tmp_path)}), {})
    assert here.map.public == "default"
    everywhere = demo_settings(None, demo_flags({"state": str(tmp_path), "host": "0.0.0.0"}), {})
    assert everywhere.map.public is None
    asked = demo_settings(None, demo_flags({"state": str(tmp_path), "host": "0.0.0.0", "map_public": "plaza"}), {})
    assert asked.map.public == "plaza"
