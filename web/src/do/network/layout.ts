/** Where brokers and links are drawn: this broker in the middle, its neighbours around it, those behind them outside. */

import type { NetworkView } from "../../api/types.ts";
import { count } from "../ui/words.ts";

export type NetworkLink = NetworkView["tenants"][number]["links"][number];

export interface BrokerNode {
  name: string;
  x: number;
  y: number;
  role: "self" | "neighbour" | "behind";
}

export interface BrokerEdge {
  from: BrokerNode;
  to: BrokerNode;
  /** null between a neighbour and a broker behind it: how many links are between them is not known here. */
  link: NetworkLink | null;
}

export interface NetworkLayout {
  nodes: BrokerNode[];
  edges: BrokerEdge[];
}

export const WIDTH = 360;
export const HEIGHT = 280;
const MIDDLE = { x: WIDTH / 2, y: HEIGHT / 2 };
const NEAR = { x: 105, y: 75 };
const FAR = { x: 150, y: 118 };

/** Lay out the network of one tenant. Every neighbour gets a share of the circle by the number of brokers behind it. */
export function layoutNetwork(self: string, links: readonly NetworkLink[]): NetworkLayout {
  const centre: BrokerNode = { name: self, ...MIDDLE, role: "self" };
  const found: NetworkLayout = { nodes: [centre], edges: [] };
  const behind = links.map((link) => link.behind.filter((name) => name !== link.neighbour && name !== self));
  const shares = behind.map((names) => Math.max(1, names.length));
  const whole = shares.reduce((sum, share) => sum + share, 0);
  let used = 0;
  links.forEach((link, k) => {
    const share = shares[k] ?? 1;
    const angle = (place: number) => -Math.PI / 2 + (2 * Math.PI * (used + place)) / whole;
    const neighbour = nodeAt(link.neighbour, angle(share / 2), NEAR, "neighbour");
    found.nodes.push(neighbour);
    found.edges.push({ from: centre, to: neighbour, link });
    (behind[k] ?? []).forEach((name, j) => {
      const far = nodeAt(name, angle(j + 0.5), FAR, "behind");
      found.nodes.push(far);
      found.edges.push({ from: neighbour, to: far, link: null });
    });
    used += share;
  });
  return found;
}

function nodeAt(name: string, angle: number, radius: { x: number; y: number }, role: BrokerNode["role"]): BrokerNode {
  return { name, x: MIDDLE.x + radius.x * Math.cos(angle), y: MIDDLE.y + radius.y * Math.sin(angle), role };
}

/** Return what a link does, in one sentence. */
export function linkSentence(self: string, link: NetworkLink): string {
  const waiting = link.unacknowledged === 0 ? "nothing waits" : `waiting: ${count(link.unacknowledged, "message")}`;
  const dropped = link.dropped === 0 ? "" : `, ${link.dropped.toLocaleString("en")} were dropped`;
  return (
    `${self} and ${link.neighbour}: ${link.phase}; ${count(link.forwards, "subscription")} forwarded, ` +
    `${link.suppresses.toLocaleString("en")} suppressed, ${link.takes.toLocaleString("en")} taken; ${waiting}${dropped}.`
  );
}
