import { expect, it } from "vitest";
import { StatedFeatures } from "../src/map/stated.ts";

it("knows which features of a layer have a state", () => {
  const stated = new StatedFeatures();
  stated.add("messages", "1");
  stated.add("messages", "2");
  expect(stated.remove("subscriptions", "1")).toBe(false);
  expect(stated.remove("messages", "1")).toBe(true);
  expect(stated.remove("messages", "1")).toBe(false);
  stated.clear("messages");
  expect(stated.remove("messages", "2")).toBe(false);
});
