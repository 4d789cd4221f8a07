/** The network of brokers: a small graph, and a table with the same for those who cannot see it. */

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { ApiError } from "../../api/client.ts";
import type { NetworkView } from "../../api/types.ts";
import type { AppContext } from "../../app/context.ts";
import { problemOf } from "../ui/problems.ts";
import { count } from "../ui/words.ts";
import { HEIGHT, layoutNetwork, linkSentence, WIDTH, type BrokerNode, type NetworkLink } from "./layout.ts";

const REFRESH = 5_000; // milliseconds

export function NetworkPanel({ context }: { context: AppContext }): JSX.Element {
  const view = useSignal<NetworkView | null>(null);
  const problem = useSignal<string | null>(null);
  const isShown = useComputed(() => context.store.panel.value === "network");
  useSignalEffect(() => {
    if (!isShown.value) return undefined;
    let isCurrent = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      try {
        const answer = await context.api.network();
        if (!isCurrent) return;
        [view.value, problem.value] = [answer, null];
        timer = setTimeout(() => void load(), REFRESH);
      } catch (error) {
        if (isCurrent) problem.value = networkProblem(error);
      }
    };
    void load();
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  });
  return (
    <section class="network-panel" aria-label="Network of brokers">
      <h2>Network</h2>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {view.value === null ? problem.value === null && <p class="muted">Loading …</p> : <Network view={view.value} />}
    </section>
  );
}

function networkProblem(error: unknown): string {
  if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
    return "The network of brokers is shown with a key that has the scope admin.";
  }
  return problemOf(error, []).message;
}

function Network({ view }: { view: NetworkView }): JSX.Element {
  const linked = view.tenants.filter((tenant) => tenant.links.length > 0);
  return (
    <>
      {linked.length === 0 && (
        <p>
          This server, <strong>{view.name}</strong>, has no links to other brokers. Start it with <code>--link</code> to make one.
        </p>
      )}
      {linked.map((tenant) => (
        <section key={tenant.tenant} aria-label={`Tenant ${tenant.tenant}`}>
          <h3>
            Tenant {tenant.tenant}: {count(tenant.brokers.length, "broker")}
          </h3>
          <NetworkGraph self={view.name} links={tenant.links} />
          <LinkTable links={tenant.links} />
          {tenant.waits_for.length > 0 && <p>It waits for {tenant.waits_for.join(", ")} before it takes messages.</p>}
        </section>
      ))}
      <Calls calls={view.calls} />
      <Refused refused={view.refused} />
    </>
  );
}

function NetworkGraph({ self, links }: { self: string; links: readonly NetworkLink[] }): JSX.Element {
  const { nodes, edges } = layoutNetwork(self, links);
  return (
    <svg class="network-graph" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={links.map((link) => linkSentence(self, link)).join(" ")}>
      {edges.map(({ from, to, link }, k) => (
        <g key={k} class={link === null ? "edge edge-behind" : link.phase === "up" ? "edge edge-up" : "edge edge-down"}>
          <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
          {link !== null && (
            <text class="edge-label" x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - 4} text-anchor="middle">
              {link.forwards.toLocaleString("en")} → · {link.suppresses.toLocaleString("en")} held
            </text>
          )}
        </g>
      ))}
      {nodes.map((node) => (
        <Broker key={`${node.role} ${node.name}`} node={node} />
      ))}
    </svg>
  );
}

function Broker({ node }: { node: BrokerNode }): JSX.Element {
  const radius = node.role === "self" ? 11 : node.role === "neighbour" ? 8 : 6;
  return (
    <g class={`broker broker-${node.role}`}>
      <title>{node.name}</title>
      <circle cx={node.x} cy={node.y} r={radius} />
      <text x={node.x} y={node.y + radius + 13} text-anchor="middle">
        {node.name.length > 18 ? `${node.name.slice(0, 17)}…` : node.name}
      </text>
    </g>
  );
}

function LinkTable({ links }: { links: readonly NetworkLink[] }): JSX.Element {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Links">
      <table>
        <caption>Links of this broker. Suppressed subscriptions are covered by ones that were forwarded.</caption>
        <thead>
          <tr>
            {["Neighbour", "State", "Forwarded", "Suppressed", "Taken", "Waiting", "Dropped", "Brokers behind"].map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {links.map((link) => (
            <tr key={link.neighbour}>
              <th scope="row">{link.neighbour}</th>
              <td>{link.phase}</td>
              {[link.forwards, link.suppresses, link.takes, link.unacknowledged, link.dropped].map((number, k) => (
                <td key={k} class="number">
                  {number.toLocaleString("en")}
                </td>
              ))}
              <td>{link.behind.join(", ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Calls({ calls }: { calls: NetworkView["calls"] }): JSX.Element | null {
  const failing = calls.filter((call) => call.reason !== null && call.state !== "connected");
  if (failing.length === 0) return null;
  return (
    <>
      <h3>Calls that fail</h3>
      <ul>
        {failing.map((call) => (
          <li key={`${call.tenant} ${call.url}`}>
            {call.url}: {call.state}, {count(call.attempts, "attempt")}; {call.reason}
          </li>
        ))}
      </ul>
    </>
  );
}

function Refused({ refused }: { refused: NetworkView["refused"] }): JSX.Element | null {
  if (refused.length === 0) return null;
  return (
    <>
      <h3>Subscriptions that a broker on the way refuses</h3>
      <ul>
        {refused.map(({ tenant, key, reason }) => (
          <li key={`${tenant} ${key}`}>
            <strong>{key}</strong>: {reason}
          </li>
        ))}
      </ul>
    </>
  );
}
