import { describe, expect, it } from "vitest";
import { EventParser, type ServerEvent } from "../src/app/sse.ts";

const TEXT = [
  ": hello\n",
  'event: message\nid: 7\ndata: {"a": 1}\n\n',
  "data: one\r\ndata: two\r\n\r\n",
  "retry: 250\n\n",
  "event: lost\n\n",
  "id: 8\nevent: subscription\ndata:  x\n\n",
  "data: cut off",
].join("");
const EVENTS: ServerEvent[] = [
  { name: "message", data: '{"a": 1}', id: "7" },
  { name: "message", data: "one\ntwo", id: "7" },
  { name: "subscription", data: " x", id: "8" },
];

describe("EventParser", () => {
  it("reads whole events, ids that stay, comments and the pause that the server asks for", () => {
    const parser = new EventParser();
    expect(parser.feed(TEXT)).toEqual(EVENTS);
    expect(parser.retry).toBe(250);
  });

  it("reads the same wherever the text is cut into parts", () => {
    for (let cut = 0; cut <= TEXT.length; cut++) {
      const parser = new EventParser();
      expect([...parser.feed(TEXT.slice(0, cut)), ...parser.feed(TEXT.slice(cut))]).toEqual(EVENTS);
    }
    const parser = new EventParser();
    expect(Array.from(TEXT).flatMap((character) => parser.feed(character))).toEqual(EVENTS);
  });
});
