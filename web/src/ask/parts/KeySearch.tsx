/** Find a subscription by its key or subscriber, in what the page has loaded and by exact key on the server. */

import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { ApiError } from "../../api/client.ts";
import type { MapSubscription } from "../../api/types.ts";
import type { AppContext } from "../../app/context.ts";
import { problemOf } from "../../do/ui/problems.ts";
import { count } from "../../do/ui/words.ts";

const MOST_FOUND = 50;

export function KeySearch(props: { context: AppContext; label: string; action: string; onKey: (key: string) => void }): JSX.Element {
  const { context, onKey } = props;
  const id = useId();
  const search = useSignal("");
  const problem = useSignal<string | null>(null);
  const found = useComputed(() => findSubscriptions(context.store.subscriptions.value, search.value)).value;
  const openExact = async () => {
    const key = search.value.trim();
    const [only] = found;
    if (key === "" && only !== undefined) return;
    if (context.store.subscriptions.value.has(key)) {
      onKey(key);
      return;
    }
    if (found.length === 1 && only !== undefined) {
      onKey(only.key);
      return;
    }
    try {
      await context.api.subscription(key, { matches: 0 });
      onKey(key);
    } catch (error) {
      const isUnknown = error instanceof ApiError && error.status === 404;
      problem.value = isUnknown ? `No subscription has the key ${key}.` : problemOf(error, []).message;
    }
  };
  return (
    <form
      class="key-search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        void openExact();
      }}
    >
      <label for={id}>{props.label}</label>
      <div class="row">
        <input
          id={id}
          type="search"
          value={search.value}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => {
            search.value = event.currentTarget.value;
            problem.value = null;
          }}
        />
        <button type="submit" class="small">
          {props.action}
        </button>
      </div>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      <p class="muted" role="status">
        {foundText(found.length, search.value)}
      </p>
      <ul class="links key-list">
        {found.slice(0, MOST_FOUND).map((one) => (
          <li key={one.key}>
            <button type="button" class="link" onClick={() => { onKey(one.key); }}>
              <span>{one.key}</span> <span class="muted">{one.subscriber ?? ""}{one.paused ? " · paused" : ""}</span>
            </button>
          </li>
        ))}
      </ul>
    </form>
  );
}

function foundText(number: number, search: string): string {
  const text = search.trim() === "" ? count(number, "subscription") : `${number.toLocaleString("en")} found`;
  return number > MOST_FOUND ? `${text}, the first ${MOST_FOUND} shown` : text;
}

/** Return subscriptions whose key or subscriber holds the text, those whose key begins with it first. */
export function findSubscriptions(all: ReadonlyMap<string, MapSubscription>, search: string): MapSubscription[] {
  const words = search.trim().toLowerCase();
  if (words === "") return [...all.values()];
  const rank = (one: MapSubscription): number => {
    const key = one.key.toLowerCase();
    if (key.startsWith(words)) return 0;
    if (key.includes(words)) return 1;
    return one.subscriber?.toLowerCase().includes(words) ? 2 : 3;
  };
  return [...all.values()]
    .map((one) => ({ one, place: rank(one) }))
    .filter(({ place }) => place < 3)
    .sort((a, b) => a.place - b.place || a.one.key.localeCompare(b.one.key))
    .map(({ one }) => one);
}
