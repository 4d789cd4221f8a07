"""SIGKILL of a process that sends webhooks: nothing that was published is left out, and ids stay the same."""

import asyncio
import random
import sys
from pathlib import Path

import pytest

import webhook_child
from webhook_receivers import SECRET, receiving, until

CHILD = Path(webhook_child.__file__)


async def run_and_kill(directory, url, seconds):
    """Run the child, kill it some time after its first message, and return the last sequence number it answered."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, CHILD, directory, url, SECRET), stdout=asyncio.subprocess.PIPE
    )
    lines = [await child.stdout.readline()]
    await asyncio.sleep(seconds)
    child.kill()
    lines += (await child.stdout.read()).splitlines(keepends=True)
    await child.wait()
    return max(int(line) for line in lines if line.endswith(b"\n"))


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 12])
def test_a_killed_process_sends_everything_in_the_end(tmp_path, kills):
    async def run():
        chance = random.Random(kills)
        async with receiving() as receiver:
            answered = 0
            for _ in range(kills):
                answered = await run_and_kill(tmp_path, receiver.url("a"), chance.uniform(0.05, 1.5))
            last = await asyncio.create_subprocess_exec(
                *(sys.executable, CHILD, tmp_path, receiver.url("a"), SECRET), stdout=asyncio.subprocess.DEVNULL
            )
            await until(lambda: any(one.json["sequence"] > answered for one in receiver.got["a"]))
            last.kill()
            await last.wait()
            return receiver.got["a"], answered

    got, answered = asyncio.run(run())
    sequences = [one.json["sequence"] for one in got]
    reached = 0
    for sequence in sequences:  # a repetition may come at any time, a gap never
        assert sequence <= reached + 1
        reached = max(reached, sequence)
    assert reached > answered
    bodies = {}
    for one in got:
        assert one.id == f"{one.json['sequence']}.1"
        assert bodies.setdefault(one.id, one.body) == one.body
