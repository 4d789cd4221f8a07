/** A subscription: its filter, lag and messages; pause, change and delete. */

import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { MapSubscription, SubscriptionDetail } from "../api/types.ts";
import type { AppContext } from "../app/context.ts";
import { editSubscription } from "../do/DoPanel.tsx";
import { Confirm } from "../do/ui/Confirm.tsx";
import { problemOf } from "../do/ui/problems.ts";
import { count, kindsText, messageTitle, timeText } from "../do/ui/words.ts";
import { useLoaded } from "./loading.ts";

const SHOWN_MESSAGES = 50;
const RELOAD_AFTER = 1_500; // milliseconds after a message that matched

export function SubscriptionView({ context, name }: { context: AppContext; name: string }): JSX.Element {
  const { value, problem, reload } = useLoaded(`subscription ${name}`, () => context.api.subscription(name, { matches: SHOWN_MESSAGES }));
  useReload(context, name, reload);
  if (value === null) {
    return problem === null ? (
      <p class="muted">Loading …</p>
    ) : (
      <p class="problem" role="alert">
        {problem}
      </p>
    );
  }
  const mayChange = !context.settings.read_only && context.settings.scopes.includes("subscribe");
  return (
    <article class="subscription" aria-label={`Subscription ${name}`}>
      <h3>{value.key}</h3>
      {value.paused && <p class="note">Paused: it matches nothing.</p>}
      <Facts detail={value} />
      {value.shapes.length > 0 && (
        <button type="button" class="small" onClick={() => { context.map.fit(value.shapes.map(({ geometry }) => geometry), { maxZoom: 14 }); }}>
          Show on the map
        </button>
      )}
      {value.filter !== null && (
        <details open>
          <summary>Filter</summary>
          <code class="wrapped filter-text">{typeof value.filter === "string" ? value.filter : JSON.stringify(value.filter, null, 1)}</code>
        </details>
      )}
      {mayChange && <Changes context={context} detail={value} onChanged={reload} />}
      <LastMessages context={context} detail={value} />
    </article>
  );
}

/** Load again some time after a message that concerns the subscription, and when it was changed. */
function useReload(context: AppContext, name: string, reload: () => void): void {
  const known = useRef<MapSubscription | undefined>(undefined);
  useSignalEffect(() => {
    const [before, now] = [known.current, context.store.subscriptions.value.get(name)];
    known.current = now;
    if (before !== undefined && now !== undefined && now !== before) reload();
  });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const seen = useRef<number | null>(null);
  useSignalEffect(() => {
    const messages = context.store.messages.value;
    const newest = messages.at(-1)?.sequence ?? 0;
    const before = seen.current;
    seen.current = newest;
    if (before === null || newest <= before) return;
    const concerns = messages.some(
      (message) => message.sequence > before && (message.matched.includes(name) || message.transitions.some(({ key }) => key === name)),
    );
    if (!concerns || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      reload();
    }, RELOAD_AFTER);
  });
}

function Facts({ detail }: { detail: SubscriptionDetail }): JSX.Element {
  const rows: [string, string][] = [
    ["Subscriber", detail.subscriber ?? "not shown"],
    ["Told of", detail.track === null ? "every match" : `${kindsText(detail.on)} of ${detail.track}`],
    ["Lag", detail.lag === null ? "not shown" : detail.lag === 0 ? "none: all was delivered" : `${count(detail.lag, "message")} behind`],
    ["Since", `${timeText(detail.created)}, message ${detail.applies_from}`],
    ...(detail.expires === null ? [] : [["Until", timeText(detail.expires)] as [string, string]]),
    ...(detail.shapes.length ? [["Asks for", shapesText(detail)] as [string, string]] : []),
  ];
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function shapesText(detail: SubscriptionDetail): string {
  return detail.shapes.map((shape) => `${shape.attribute} ${shape.relations.join(" or ")}`).join("; ");
}

function Changes({ context, detail, onChanged }: { context: AppContext; detail: SubscriptionDetail; onChanged: () => void }): JSX.Element {
  const isBusy = useSignal(false);
  const problem = useSignal<string | null>(null);
  const change = async (work: () => Promise<unknown>, done: string) => {
    [isBusy.value, problem.value] = [true, null];
    try {
      await work();
      context.announce(done);
      onChanged();
    } catch (error) {
      problem.value = problemOf(error, []).message;
    } finally {
      isBusy.value = false;
    }
  };
  const pause = () => change(() => context.api.pauseSubscription(detail.key, !detail.paused), detail.paused ? "Resumed." : "Paused.");
  const remove = () =>
    change(async () => {
      await context.api.deleteSubscription(detail.key);
      context.store.selection.value = null;
    }, `Deleted ${detail.key}.`);
  return (
    <>
      <div class="buttons" role="group" aria-label="Change the subscription">
        <button type="button" disabled={isBusy.value} onClick={() => void pause()}>
          {detail.paused ? "Resume" : "Pause"}
        </button>
        <button type="button" onClick={() => { editSubscription(context, detail.key); }}>
          Change
        </button>
        <Confirm label="Delete" question={`Delete ${detail.key} for good?`} confirm="Delete" disabled={isBusy.value} onConfirm={() => void remove()} />
      </div>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
    </>
  );
}

function LastMessages({ context, detail }: { context: AppContext; detail: SubscriptionDetail }): JSX.Element {
  const { last } = detail;
  return (
    <>
      <h4>Latest messages</h4>
      {last.length === 0 ? (
        <p class="muted">
          {detail.complete ? "No message that is kept matched." : `None of the latest ${count(detail.examined, "message")} matched.`}
        </p>
      ) : (
        <ul class="links" aria-label="Messages that matched">
          {last.map((message) => (
            <li key={message.sequence}>
              <button type="button" class="link" onClick={() => { context.store.selection.value = { kind: "match", key: detail.key, sequence: message.sequence }; }}>
                <time dateTime={message.at}>{timeText(message.at)}</time> <span>{messageTitle(message)}</span>{" "}
                <span class="muted">{eventText(message.transitions.find(({ key }) => key === detail.key))}why?</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function eventText(transition: { kind: string; id: string | number | null } | undefined): string {
  return transition === undefined ? "" : `${transition.id === null ? "" : `${transition.id} `}${transition.kind} · `;
}
