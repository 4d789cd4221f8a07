import { afterEach, describe, expect, it, vi } from "vitest";
import { Api } from "../src/api/client.ts";
import { followLive, type LiveEvent } from "../src/app/live.ts";
import { eventText, message, openBody, serve } from "./support.ts";

const api = new Api("http://server/base/", () => "secret");

function follow(options = { firstPause: 5, longestPause: 20 }) {
  const [events, states]: [LiveEvent[], string[]] = [[], []];
  const stop = followLive(api, { event: (event) => events.push(event), state: (state) => states.push(state) }, options);
  return { events, states, stop };
}

afterEach(() => { vi.unstubAllGlobals(); });

describe("followLive", () => {
  it("sends the key in a header and never in the address", async () => {
    const asked = serve(() => new Response(openBody().body));
    const { stop, states } = follow();
    await vi.waitFor(() => { expect(states).toContain("live"); });
    stop();
    expect(asked[0]?.headers.get("Authorization")).toBe("Bearer secret");
    expect(asked[0]?.url.href).toBe("http://server/base/map/events");
  });

  it("goes on after the last event when a stream breaks", async () => {
    const bodies = [openBody(), openBody()];
    const asked = serve(() => new Response(bodies[asked.length - 1]?.body ?? null));
    const { events, states, stop } = follow();
    bodies[0]?.push(eventText("message", message(6), 6) + eventText("message", message(7), 7));
    await vi.waitFor(() => { expect(events).toHaveLength(2); });
    bodies[0]?.end();
    await vi.waitFor(() => { expect(asked).toHaveLength(2); });
    expect(asked[0]?.headers.has("Last-Event-ID")).toBe(false);
    expect(asked[1]?.headers.get("Last-Event-ID")).toBe("7");
    bodies[1]?.push(eventText("message", message(8), 8));
    await vi.waitFor(() => { expect(events).toHaveLength(3); });
    stop();
    expect(states.slice(0, 3)).toEqual(["connecting", "live", "retrying"]);
  });

  it("tries again, with growing pauses, while the server is away", async () => {
    const asked = serve(() => Promise.reject(new TypeError("network")));
    const { states, stop } = follow();
    await vi.waitFor(() => { expect(asked.length).toBeGreaterThan(3); });
    stop();
    expect(states).not.toContain("live");
    const count = asked.length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(asked).toHaveLength(count);
  });

  it("gives up when the key is refused or the server ends the stream", async () => {
    const asked = serve(() => new Response(JSON.stringify({ detail: "no such key" }), { status: 401 }));
    const refused = follow();
    await vi.waitFor(() => { expect(refused.states.at(-1)).toBe("ended"); });
    expect(asked).toHaveLength(1);
    const { body, push } = openBody();
    serve(() => new Response(body));
    const ended = follow();
    push(eventText("end", { reason: "the key was revoked" }));
    await vi.waitFor(() => { expect(ended.states.at(-1)).toBe("ended"); });
  });

  it("takes a silent stream for dead", async () => {
    const asked = serve((_, signal) => {
      const { body, fail } = openBody();
      signal?.addEventListener("abort", fail); // as fetch does
      return new Response(body);
    });
    const stop = followLive(api, { event: () => undefined, state: () => undefined }, { firstPause: 1, silence: 20 });
    await vi.waitFor(() => { expect(asked.length).toBeGreaterThan(1); });
    stop();
  });
});
