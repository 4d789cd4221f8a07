import { afterEach, describe, expect, it, vi } from "vitest";
import { Api } from "../src/api/client.ts";
import type { Feed } from "../src/app/feed.ts";
import { Player } from "../src/app/player.ts";
import type { Scene } from "../src/app/scene.ts";
import { createStore } from "../src/app/store.ts";
import { message, serve } from "./support.ts";

const LOG = Array.from({ length: 1200 }, (_, index) => message(index + 1));
const START = Date.parse(LOG[0]?.at ?? "");

afterEach(() => { vi.unstubAllGlobals(); });

/** A player over a server that holds LOG, one message a second. */
function openPlayer() {
  const asked = serve(({ url: { searchParams: query } }) => {
    const [to, after] = [Date.parse(query.get("to") ?? ""), query.get("after")];
    const limit = Number(query.get("limit"));
    const found = LOG.filter((one) => Date.parse(one.at) <= to && (after === null || one.sequence > Number(after)));
    return Response.json({ messages: after === null ? found.slice(-limit) : found.slice(0, limit), next: null, previous: null, complete: true });
  });
  const store = createStore();
  const drawn: number[] = [];
  const scene = {
    replaceMessages: () => { drawn.length = 0; },
    addMessages: (messages: { sequence: number }[]) => { drawn.push(...messages.map((one) => one.sequence)); },
  } as unknown as Scene;
  const feed = { latest: [], showLatest: vi.fn() } as unknown as Feed;
  const now = () => START + 1200_000;
  const player = new Player({ api: new Api("http://server/", () => null), store, feed, scene, announce: () => undefined, now });
  return { player, store, drawn, asked };
}

const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("Player", () => {
  it("jumps to a moment and shows the messages up to it", async () => {
    const { player, store } = openPlayer();
    await player.jump(START + 99_000);
    expect(store.time.value).toBe(START + 99_000);
    expect(store.messages.value.map((one) => one.sequence)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  it("plays every message once, in order, however fast", async () => {
    for (const speed of [1, 60, 300]) {
      const { player, store, drawn } = openPlayer();
      store.speed.value = speed;
      await player.jump(START + 99_000);
      for (let tick = 1; tick <= 30; tick++) {
        player.tick(tick * 100);
        await settle();
      }
      const last = drawn.at(-1) ?? 100;
      expect(drawn).toEqual(Array.from({ length: last - 100 }, (_, index) => index + 101));
      expect(last).toBeGreaterThan(100);
      expect(last).toBe(Math.floor(((store.time.value ?? 0) - START) / 1000) + 1);
    }
  });

  it("returns to the present at the end of the log, and when asked", async () => {
    const { player, store } = openPlayer();
    store.speed.value = 1800;
    await player.jump(START + 1_190_000);
    for (let tick = 1; tick <= 40 && store.time.value !== null; tick++) {
      player.tick(tick * 100);
      await settle();
    }
    expect(store.time.value).toBeNull();
    await player.jump(START);
    player.live();
    expect(store.time.value).toBeNull();
  });

  it("shows the latest of two jumps, whichever answer comes last", async () => {
    const { player, store } = openPlayer();
    await Promise.all([player.jump(START + 10_000), player.jump(START + 20_000)]);
    expect(store.messages.value.at(-1)?.sequence).toBe(21);
  });

  it("changes speed in steps", () => {
    const { player } = openPlayer();
    expect([player.setSpeed(1), player.setSpeed(1), player.setSpeed(1), player.setSpeed(-1)]).toEqual([300, 1800, 1800, 300]);
  });
});
