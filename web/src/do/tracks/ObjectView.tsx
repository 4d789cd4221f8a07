/** One tracked object: when it was seen, and what it is inside of. */

import type { JSX } from "preact";
import type { AppContext } from "../../app/context.ts";
import { agoText, count, timeText } from "../ui/words.ts";
import type { TrackedObject } from "./objects.ts";

export function ObjectView({ context, object }: { context: AppContext; object: TrackedObject }): JSX.Element {
  const { sequence, inside } = object;
  return (
    <article class="card" aria-label={`${object.attribute} ${object.id}`}>
      <h3>
        {object.attribute} {object.id}
      </h3>
      <p>
        {object.seen === null ? "No message of it is kept on this page." : `Last seen ${timeText(object.seen)}.`} Trail of{" "}
        {count(object.trail.length, "position")}.
      </p>
      {inside.length === 0 ? (
        <p>It is outside of all subscriptions.</p>
      ) : (
        <ul class="links" aria-label="Inside of">
          {inside.map(({ key, since }) => (
            <li key={key}>
              <KeyButton context={context} label={`inside ${key}`} subscription={key} /> <span class="muted">for {agoText(since)}</span>
            </li>
          ))}
        </ul>
      )}
      {sequence !== null && (
        <button
          type="button"
          class="small"
          onClick={() => {
            context.store.selection.value = { kind: "message", sequence };
            context.store.panel.value = "ask";
          }}
        >
          Its latest message
        </button>
      )}
    </article>
  );
}

/** A button that asks about a subscription. */
export function KeyButton({ context, label, subscription }: { context: AppContext; label: string; subscription: string }): JSX.Element {
  return (
    <button
      type="button"
      class="link"
      onClick={() => {
        context.store.selection.value = { kind: "subscription", key: subscription };
        context.store.panel.value = "ask";
      }}
    >
      {label}
    </button>
  );
}
