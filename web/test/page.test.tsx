import { type ComponentChild, render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Api, ApiError } from "../src/api/client.ts";
import type { AppContext } from "../src/app/context.ts";
import { Login } from "../src/app/login.tsx";
import { findMessages, MessagesPanel } from "../src/app/messages.tsx";
import { allowedPanels } from "../src/app/panels.tsx";
import { createStore } from "../src/app/store.ts";
import { rangeOf } from "../src/app/timeline.tsx";
import { escapeHtml } from "../src/map/create.ts";
import { message, serve, SETTINGS } from "./support.ts";

const HOSTILE = '<img src=x onerror="alert(1)">';

afterEach(() => { vi.unstubAllGlobals(); });

/** Show a component in an element of its own. */
function show(component: ComponentChild): HTMLElement {
  const host = document.createElement("div");
  document.body.replaceChildren(host);
  render(component, host);
  return host;
}

function contextOf(more: Partial<AppContext["settings"]> = {}): AppContext {
  return { store: createStore(), settings: { ...SETTINGS, ...more } } as AppContext;
}

describe("the list of messages", () => {
  it("shows HTML in ids, names and values as text", () => {
    const context = contextOf();
    context.store.messages.value = [message(1, { id: HOSTILE, attributes: { [HOSTILE]: HOSTILE, list: [HOSTILE] } })];
    show(<MessagesPanel context={context} />);
    expect(document.querySelectorAll("img")).toHaveLength(0);
    expect(document.querySelector(".message-id")?.textContent).toBe(HOSTILE);
    expect(document.body.textContent.split(HOSTILE)).toHaveLength(4);
  });

  it("selects a message that is clicked", () => {
    const context = contextOf();
    context.store.messages.value = [message(1), message(2)];
    show(<MessagesPanel context={context} />);
    document.querySelector<HTMLButtonElement>('[data-testid="message-2"]')?.click();
    expect(context.store.selection.value).toEqual({ kind: "message", sequence: 2 });
    expect(context.store.panel.value).toBe("ask");
  });

  it("finds by attributes, ids and keys, newest first", () => {
    const messages = [
      message(1, { attributes: { event: "Flood" } }),
      message(2, { matched: ["flood-zone"], matches: 1 }),
      message(3),
    ];
    const found = (text: string, onlyMatches = false) => findMessages(messages, text, onlyMatches).map((one) => one.sequence);
    expect(found("")).toEqual([3, 2, 1]);
    expect(found("FLOOD")).toEqual([2, 1]);
    expect(found("flood", true)).toEqual([2]);
    expect(found("storm")).toEqual([]);
  });
});

describe("signing in", () => {
  it("shows the server's refusal, and keeps the key that was typed", async () => {
    const signIn = vi.fn(() => Promise.reject(new ApiError("unknown key", 401)));
    show(<Login message={null} signIn={signIn} />);
    const input = document.querySelector("input");
    if (input === null) throw new Error("there is no field");
    input.value = " ctr_1 ";
    input.dispatchEvent(new Event("input", { bubbles: true }));
    await vi.waitFor(() => { expect(document.querySelector("button")?.disabled).toBe(false); });
    document.querySelector("form")?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    await vi.waitFor(() => { expect(document.querySelector("[role=alert]")?.textContent).toBe("unknown key"); });
    expect(signIn).toHaveBeenCalledWith("ctr_1");
  });
});

describe("what a user may open", () => {
  it("depends on scopes and read-only mode", () => {
    expect(allowedPanels(contextOf())).toEqual(["messages", "ask", "do", "tracks", "network"]);
    expect(allowedPanels(contextOf({ read_only: true, scopes: [] }))).toEqual(["messages", "ask", "tracks"]);
  });
});

describe("Api", () => {
  const api = new Api("http://server/", () => "k");

  it("encodes keys in paths, and leaves out parameters that are not given", async () => {
    const asked = serve(() => Response.json({}));
    await api.subscription("a/b?c d");
    await api.messages({ limit: 5 });
    expect(asked.map(({ url }) => url.href)).toEqual([
      "http://server/map/subscriptions/a%2Fb%3Fc%20d",
      "http://server/map/messages?limit=5",
    ]);
  });

  it("fails with the words of the server", async () => {
    serve(() => new Response(JSON.stringify({ detail: "line 1: unexpected '>'", status: 400 }), { status: 400 }));
    await expect(api.settings()).rejects.toMatchObject({ message: "line 1: unexpected '>'", status: 400 });
    serve(() => new Response("<html>", { status: 502, statusText: "Bad Gateway" }));
    await expect(api.settings()).rejects.toMatchObject({ message: "The server answered 502 Bad Gateway.", status: 502 });
    serve(() => Promise.reject(new TypeError("x")));
    await expect(api.settings()).rejects.toMatchObject({ message: "The server cannot be reached.", status: 0 });
  });
});

it("an attribution of the settings never becomes markup", () => {
  expect(escapeHtml(`${HOSTILE}&'`)).toBe("&lt;img src=x onerror=&quot;alert(1)&quot;&gt;&amp;&#39;");
});

it("the range of the time line ends at the present and has whole steps", () => {
  expect(rangeOf(1_000_001, 3600)).toEqual({ from: 1_020_000 - 3_600_000, to: 1_020_000, step: 60 });
  expect(rangeOf(1_000_001, 900).step).toBe(15);
});
