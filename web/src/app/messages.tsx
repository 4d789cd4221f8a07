/** The list of messages, newest first, with a search. */
import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { memo } from "preact/compat";
import type { MapMessage } from "../api/types.ts";
import { count as countOf } from "../do/ui/words.ts";
import type { AppContext } from "./context.ts";
import type { Store } from "./store.ts";

const ROWS = 60; // at first, and how many more a click shows
const ATTRIBUTES = 4; // in a row

export function MessagesPanel({ context }: { context: AppContext }): JSX.Element {
  const { store } = context;
  const search = useSignal("");
  const onlyMatches = useSignal(false);
  const rows = useSignal(ROWS);
  // Nothing is computed or drawn while another panel is shown.
  const found = useComputed(() =>
    store.panel.value === "messages" ? findMessages(store.messages.value, search.value, onlyMatches.value) : [],
  );
  const shown = found.value.slice(0, rows.value);
  return (
    <div class="messages">
      <div class="messages-tools">
        <input
          id="message-search"
          type="search"
          placeholder="Attribute, id or key"
          aria-label="Search messages"
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value;
            rows.value = ROWS;
          }}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={onlyMatches.value}
            onChange={(event) => { onlyMatches.value = event.currentTarget.checked; }}
          />
          Only matches
        </label>
      </div>
      <p class="muted small" data-testid="message-count">{countText(store, found.value.length)}</p>
      <ul class="message-list" aria-label="Messages, newest first" data-testid="messages">
        {shown.map((message) => (
          <MessageRow key={message.sequence} message={message} isSelected={isSelected(store, message)} context={context} />
        ))}
      </ul>
      {found.value.length > shown.length && (
        <button type="button" class="wide" onClick={() => { rows.value += ROWS; }}>
          Show {Math.min(ROWS, found.value.length - shown.length)} more
        </button>
      )}
      {shown.length === 0 && <EmptyList hasSearch={search.value !== "" || onlyMatches.value} />}
    </div>
  );
}

function EmptyList({ hasSearch }: { hasSearch: boolean }): JSX.Element {
  return (
    <p class="empty">{hasSearch ? "No message has that." : "No messages yet. They appear here as they are published."}</p>
  );
}

function countText(store: Store, count: number): string {
  const time = store.time.value;
  const when = time === null ? "the latest" : `before ${new Date(time).toLocaleTimeString()}`;
  return `${countOf(count, "message")}, ${when}`;
}

function isSelected({ selection }: Store, message: MapMessage): boolean {
  const chosen = selection.value;
  return chosen !== null && "sequence" in chosen && chosen.sequence === message.sequence;
}

/** Messages that have `text` anywhere, newest first. */
export function findMessages(messages: readonly MapMessage[], text: string, onlyMatches: boolean): MapMessage[] {
  const sought = text.trim().toLowerCase();
  return messages
    .filter((message) => !onlyMatches || message.matches + message.transitions.length > 0)
    .filter((message) => sought === "" || wordsOf(message).includes(sought))
    .reverse();
}

function wordsOf(message: MapMessage): string {
  const keys = [...message.matched, ...message.transitions.map((transition) => transition.key)];
  return `${message.sequence} ${message.id ?? ""} ${JSON.stringify(message.attributes)} ${keys.join(" ")}`.toLowerCase();
}

interface RowProps {
  message: MapMessage;
  isSelected: boolean;
  context: AppContext;
}

const MessageRow = memo(
  function MessageRow({ message, isSelected, context }: RowProps): JSX.Element {
    const attributes = Object.entries(message.attributes);
    return (
      <li>
        <button
          type="button"
          class="message-row"
          aria-pressed={isSelected}
          data-testid={`message-${message.sequence}`}
          onClick={() => {
            context.store.selection.value = { kind: "message", sequence: message.sequence };
            context.store.panel.value = "ask";
          }}
        >
          <span class="message-head">
            <span class="message-id">{message.id ?? `#${message.sequence}`}</span>
            <MatchBadge message={message} />
            <time dateTime={message.at}>{timeText(message.at)}</time>
          </span>
          <span class="message-attributes">
            {attributes.slice(0, ATTRIBUTES).map(([name, value]) => (
              <span key={name}>
                <b>{name}</b> {valueText(value)}
              </span>
            ))}
            {attributes.length > ATTRIBUTES && <span class="muted">+{attributes.length - ATTRIBUTES}</span>}
          </span>
        </button>
      </li>
    );
  },
  (before, after) => before.message === after.message && before.isSelected === after.isSelected,
);

function MatchBadge({ message }: { message: MapMessage }): JSX.Element {
  const [transition] = message.transitions;
  if (transition !== undefined) return <span class="pill" data-kind={transition.kind}>{transition.kind}</span>;
  if (message.matches === 0) return <span class="pill" data-kind="none">no match</span>;
  return (
    <span class="pill" data-kind="match">{message.matches === 1 ? "1 match" : `${message.matches} matches`}</span>
  );
}

function timeText(at: string): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}

export function valueText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(Math.round(value * 1e6) / 1e6);
  return JSON.stringify(value);
}
