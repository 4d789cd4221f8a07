/** What keys and buttons do to the store. */
import type { AppContext } from "./context.ts";
import { PANELS } from "./permalink.ts";

/** Choose the next message of the list, or the one before. */
export function stepMessage({ store }: AppContext, step: 1 | -1): void {
  const messages = store.messages.value;
  const current = store.selection.value;
  const sequence = current !== null && "sequence" in current ? current.sequence : null;
  const index = messages.findIndex((message) => message.sequence === sequence);
  const next = index < 0 ? messages.at(-1) : messages[index + step];
  if (next !== undefined) store.selection.value = { kind: "message", sequence: next.sequence };
}

export function openPanel({ store }: AppContext, number: number): void {
  store.panel.value = PANELS[number] ?? store.panel.value;
}
