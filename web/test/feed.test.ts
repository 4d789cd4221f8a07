import { afterEach, describe, expect, it, vi } from "vitest";
import { Api } from "../src/api/client.ts";
import type { MapSubscription } from "../src/api/types.ts";
import { Feed, type FeedChanges, simplificationOf } from "../src/app/feed.ts";
import { createStore, KEPT_MESSAGES } from "../src/app/store.ts";
import { eventText, message, openBody, serve, SETTINGS, subscription } from "./support.ts";

afterEach(() => { vi.unstubAllGlobals(); });

/** A feed over a server with these pages of subscriptions; frames run when the test says. */
function openFeed(pages: MapSubscription[][] = [[]], messages = [message(1), message(2)]) {
  const stream = openBody();
  const asked = serve(({ url }) => {
    if (url.pathname.endsWith("/map/events")) return new Response(stream.body);
    if (url.pathname.endsWith("/map/messages")) return Response.json({ messages, next: null, previous: null, complete: true });
    const index = Number(url.searchParams.get("after") ?? 0);
    return Response.json({ subscriptions: pages[index] ?? [], next: index + 1 < pages.length ? String(index + 1) : null });
  });
  const [store, changes, frames]: [ReturnType<typeof createStore>, FeedChanges[], (() => void)[]] = [createStore(), [], []];
  const feed = new Feed({
    api: new Api("http://server/", () => null),
    store,
    settings: SETTINGS,
    onChange: (change) => changes.push(change),
    announce: () => undefined,
    schedule: (run) => frames.push(run),
  });
  const frame = () => { for (const run of frames.splice(0)) run(); };
  return { feed, store, changes, frames, frame, stream, asked };
}

async function settle(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 10));
}

describe("Feed", () => {
  it("opens the stream before it loads pages, and loads all of them", async () => {
    const { feed, store, frame, asked } = openFeed([[subscription("a"), subscription("b")], [subscription("c")]]);
    await feed.start();
    frame();
    expect(asked[0]?.url.pathname).toBe("/map/events");
    expect([...store.subscriptions.value.keys()]).toEqual(["a", "b", "c"]);
    expect(store.messages.value.map((one) => one.sequence)).toEqual([1, 2]);
    feed.stop();
  });

  it("applies a hundred events in one frame, in order and each once", async () => {
    const { feed, store, changes, frames, frame, stream } = openFeed();
    await feed.start();
    for (let sequence = 1; sequence <= 100; sequence++) stream.push(eventText("message", message(sequence), sequence));
    await settle();
    expect(frames).toHaveLength(1);
    frame();
    expect(changes).toHaveLength(1);
    expect(store.messages.value.map((one) => one.sequence)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
    feed.stop();
  });

  it("takes a change of the stream for younger than a page", async () => {
    const { feed, store, frame, stream } = openFeed([[subscription("a"), subscription("b")]]);
    stream.push(eventText("subscription", { change: "deleted", key: "a", subscription: null }));
    stream.push(eventText("subscription", { change: "put", key: "b", subscription: subscription("b", { paused: true }) }));
    const started = feed.start();
    await settle();
    await started;
    frame();
    // The page may have been read before or after the change came; a deleted key never comes back afterwards.
    stream.push(eventText("subscription", { change: "deleted", key: "a", subscription: null }));
    stream.push(eventText("subscription", { change: "put", key: "b", subscription: subscription("b", { paused: true }) }));
    await settle();
    frame();
    expect([...store.subscriptions.value.values()].map((one) => [one.key, one.paused])).toEqual([["b", true]]);
    feed.stop();
  });

  it("loads subscriptions again after it lost some, and drops those that are gone", async () => {
    const pages = [[subscription("a"), subscription("b")]];
    const { feed, store, frame, stream } = openFeed(pages);
    await feed.start();
    frame();
    pages[0] = [subscription("b"), subscription("c")];
    stream.push(eventText("lost", { what: "subscriptions", reason: "slow" }));
    await settle();
    frame();
    expect([...store.subscriptions.value.keys()].sort()).toEqual(["b", "c"]);
    feed.stop();
  });

  it("keeps a bounded number of messages, and the past stays while the present goes on", async () => {
    const { feed, store, frame, stream } = openFeed();
    await feed.start();
    frame();
    store.time.value = 0;
    const shown = store.messages.value;
    const parts = Array.from({ length: KEPT_MESSAGES + 50 }, (_, index) => eventText("message", message(index + 3), index + 3));
    stream.push(parts.join(""));
    await settle();
    frame();
    expect(store.messages.value).toBe(shown);
    expect(feed.latest).toHaveLength(KEPT_MESSAGES);
    feed.showLatest();
    expect(store.messages.value.at(-1)?.sequence).toBe(KEPT_MESSAGES + 52);
    feed.stop();
  });

  it("asks for simpler shapes only if there are many", () => {
    expect(simplificationOf(SETTINGS)).toBeUndefined();
    expect(simplificationOf({ ...SETTINGS, subscriptions: 10_000 })).toBe(0.001);
  });
});
