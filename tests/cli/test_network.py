"""`contrada network`: the links of servers, as lines and as JSON."""

import asyncio
import json

from console import contrada
from linked import broker, until_settled
from serving import ADMIN, run


def test_links_are_shown_and_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTRADA_KEY", ADMIN)

    async def work():
        async with broker(tmp_path, "north") as north, broker(tmp_path, "south", north) as south:
            await south.subscribe("wide", "ann", "depth > 0")
            await south.subscribe("deep", "ann", "depth > 4")
            await until_settled(north, south)
            shown = await asyncio.to_thread(contrada, "network", "show", "--url", south.url)
            assert shown.exit_code == 0, shown.output
            lines = shown.output.splitlines()
            assert lines[:4] == [
                "broker south",
                "tenant default: 2 brokers: north, south",
                "  north: up; reaches north",
                "    forwards 1 subscription, suppresses 1, takes 0",
            ]
            assert lines[-1].startswith("call ws://127.0.0.1:")
            assert lines[-1].endswith(": connected, 1 attempt")
            shown = await asyncio.to_thread(contrada, "network", "show", "--url", north.url, "--json")
            assert json.loads(shown.output)["tenants"][0]["links"][0]["takes"] == 1
        async with broker(tmp_path, "north") as north:
            gone = await asyncio.to_thread(contrada, "network", "remove", "south", "--url", north.url)
            assert gone.exit_code == 0, gone.output
            shown = await asyncio.to_thread(contrada, "network", "show", "--url", north.url)
            assert shown.output == "broker north\n"
            gone = await asyncio.to_thread(contrada, "network", "remove", "south", "--url", north.url)
            assert gone.exit_code == 2

    run(work())
