/** A message: its attributes, who matched, and why a subscription did not. */

import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { MapMessage, MatchedKeys } from "../api/types.ts";
import type { AppContext } from "../app/context.ts";
import { count, geometryText, messageTitle, relationStep, timeText, transitionText, valueText } from "../do/ui/words.ts";
import { useLoaded } from "./loading.ts";
import { KeySearch } from "./parts/KeySearch.tsx";

export function MessageView({ context, sequence }: { context: AppContext; sequence: number }): JSX.Element {
  const known = useComputed(() => context.store.messages.value.find((one) => one.sequence === sequence)).value;
  const loaded = useLoaded(`message ${sequence}`, () => (known === undefined ? loadMessage(context, sequence) : Promise.resolve(known)));
  const message = known ?? loaded.value;
  if (message === null) {
    return loaded.problem === null ? (
      <p class="muted">Loading …</p>
    ) : (
      <p class="problem" role="alert">
        {loaded.problem}
      </p>
    );
  }
  if (message === undefined) return <p>Message {sequence} is not kept any more.</p>;
  return (
    <article class="message" aria-label={`Message ${sequence}`}>
      <h3>{messageTitle(message)}</h3>
      <p class="muted">
        message {message.sequence} · <time dateTime={message.at}>{timeText(message.at)}</time>
        {message.id === null ? "" : ` · id ${message.id}`}
      </p>
      {message.own && <p class="note">The server made this message itself, to tell of a tracked object.</p>}
      {message.shapes.length > 0 && (
        <button type="button" class="small" onClick={() => { context.map.fit(message.shapes.map(({ geometry }) => geometry), { maxZoom: 14 }); }}>
          Show on the map
        </button>
      )}
      <Attributes message={message} />
      <Transitions context={context} message={message} />
      <Matched context={context} message={message} />
      <WhyNot context={context} sequence={message.sequence} />
    </article>
  );
}

async function loadMessage(context: AppContext, sequence: number): Promise<MapMessage | undefined> {
  const page = await context.api.messages({ after: sequence - 1, limit: 1 });
  return page.messages.find((one) => one.sequence === sequence);
}

function Attributes({ message }: { message: MapMessage }): JSX.Element {
  const rows = [
    ...message.shapes.map(({ attribute, geometry }) => [attribute, geometryText(geometry)] as const),
    ...Object.entries(message.attributes).map(([name, value]) => [name, valueText(value)] as const),
  ];
  if (rows.length === 0) return <p class="muted">No attributes are shown.</p>;
  return (
    <table class="attributes">
      <caption>Attributes</caption>
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Transitions({ context, message }: { context: AppContext; message: MapMessage }): JSX.Element | null {
  if (message.transitions.length === 0) return null;
  return (
    <>
      <h4>Tracked objects</h4>
      <ul class="links">
        {message.transitions.map((transition, k) => (
          <li key={k} class={`transition-${transition.kind}`}>
            <button type="button" class="link" onClick={() => { ask(context, transition.key, message.sequence); }}>
              {transitionText(transition)}
            </button>{" "}
            <span class="muted">{relationStep(transition.before, transition.after)}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const LISTED_AT_ONCE = 20;
const PAGE = 1_000;

/** Return all keys that a message matched, page by page. */
export async function loadMatched(api: AppContext["api"], message: MapMessage): Promise<string[]> {
  const keys: string[] = [];
  let after: number | null = 0;
  while (after !== null) {
    const page: MatchedKeys = await api.matched(message.sequence, { after, limit: PAGE });
    keys.push(...page.matched);
    after = page.next;
  }
  return keys;
}

function Matched({ context, message }: { context: AppContext; message: MapMessage }): JSX.Element {
  const search = useSignal("");
  const listed = useSignal(LISTED_AT_ONCE);
  const isWhole = message.matches <= message.matched.length;
  const { value, problem } = useLoaded(`matched ${message.sequence}`, () => (isWhole ? Promise.resolve(message.matched) : loadMatched(context.api, message)));
  const keys = value ?? message.matched;
  const words = search.value.trim().toLowerCase();
  const subscriptions = context.store.subscriptions.value;
  const found = keys.filter((key) => {
    const subscriber = subscriptions.get(key)?.subscriber ?? "";
    return words === "" || key.toLowerCase().includes(words) || subscriber.toLowerCase().includes(words);
  });
  const shown = found.slice(0, listed.value);
  return (
    <>
      <h4>{message.matches === 0 ? "No subscription matched" : `${count(message.matches, "subscription")} matched`}</h4>
      {keys.length > LISTED_AT_ONCE && (
        <label class="search">
          Search among them <input type="search" value={search.value} onInput={(event) => { search.value = event.currentTarget.value; listed.value = LISTED_AT_ONCE; }} />
        </label>
      )}
      <ul class="links" aria-label="Subscriptions that matched">
        {shown.map((key) => (
          <li key={key}>
            <button type="button" class="link" onClick={() => { ask(context, key, message.sequence); }}>
              <span>{key}</span> <span class="muted">{subscriptions.get(key)?.subscriber ?? ""} · why?</span>
            </button>
          </li>
        ))}
      </ul>
      {found.length > shown.length && (
        <button type="button" class="small" onClick={() => { listed.value += 10 * LISTED_AT_ONCE; }}>
          Show {Math.min(10 * LISTED_AT_ONCE, found.length - shown.length)} more of {found.length.toLocaleString("en")}
        </button>
      )}
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}

function WhyNot({ context, sequence }: { context: AppContext; sequence: number }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const pick = usePick(context, (key) => {
    ask(context, key, sequence);
  });
  return (
    <section class="why-not" aria-label="Why not another subscription?">
      <h4>Why, or why not?</h4>
      <p class="muted">Choose any subscription to see why this message matches it, or why not.</p>
      <div class="buttons">
        <button type="button" aria-expanded={isOpen} onClick={() => { setOpen(!isOpen); }}>
          Search a subscription
        </button>
        <button type="button" aria-pressed={pick.isActive} onClick={pick.toggle}>
          {pick.isActive ? "Click a subscription … (cancel)" : "Choose on the map"}
        </button>
      </div>
      {isOpen && <KeySearch context={context} label="Key or subscriber" action="Why?" onKey={(key) => { ask(context, key, sequence); }} />}
    </section>
  );
}

/** Take the next click on a subscription of the map; Escape cancels. */
function usePick(context: AppContext, onKey: (key: string) => void): { isActive: boolean; toggle: () => void } {
  const [isActive, setActive] = useState(false);
  const { map, store } = context;
  useEffect(() => {
    if (!isActive) return undefined;
    store.mapMode.value = "pick";
    const stopClicks = map.onClick((hits) => {
      const hit = hits.find(({ layer }) => layer === "subscriptions");
      if (hit === undefined) return;
      setActive(false);
      onKey(hit.id);
    });
    const cancel = (event: KeyboardEvent) => {
      if (event.key === "Escape") setActive(false);
    };
    window.addEventListener("keydown", cancel);
    return () => {
      stopClicks();
      window.removeEventListener("keydown", cancel);
      // The shell's own handler sees the same click after this one.
      setTimeout(() => { store.mapMode.value = "select"; }, 0);
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- onKey is new with every rendering and does the same
  }, [isActive, map, store]);
  return { isActive, toggle: () => { setActive(!isActive); } };
}

function ask(context: AppContext, key: string, sequence: number): void {
  context.store.selection.value = { kind: "match", key, sequence };
}
