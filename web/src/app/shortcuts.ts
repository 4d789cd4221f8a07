/** Single keys that work anywhere but in fields. Users may switch them off (WCAG 2.1.4). */
import { signal } from "@preact/signals";
import { openPanel, stepMessage } from "./actions.ts";
import type { AppContext } from "./context.ts";
import type { Player } from "./player.ts";
import { readPreference, writePreference } from "./session.ts";

export const SHORTCUTS: readonly [keys: string, meaning: string][] = [
  ["?", "Show this help"],
  ["1 … 5", "Open a panel: messages, ask, do, tracks, network"],
  ["/", "Search the messages"],
  ["j, k", "Select the older or the newer message"],
  ["Esc", "Clear the selection"],
  ["Space", "Play or pause"],
  ["[, ]", "Play slower or faster"],
  ["l", "Return to the present"],
  ["f", "Show everything on the map"],
  ["t", "Change the theme: as the system, light, dark"],
  ["Arrows, +, −", "Move and zoom, when the map has the focus"],
];

export const areShortcutsOn = signal(readPreference("shortcuts") !== "off");

export function setShortcuts(on: boolean): void {
  areShortcutsOn.value = on;
  writePreference("shortcuts", on ? "on" : "off");
}

interface Targets {
  context: AppContext;
  player: Player;
  fitAll: () => void;
  openHelp: () => void;
  nextTheme: () => string;
}

export function addShortcuts(targets: Targets): () => void {
  const listen = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (event.key !== "Escape" && !areShortcutsOn.value) return;
    if (document.querySelector("dialog[open]") !== null) return;
    if (act(event.key, event.target, targets)) event.preventDefault();
  };
  addEventListener("keydown", listen);
  return () => { removeEventListener("keydown", listen); };
}

/** Do what a key means; false if it means nothing. */
function act(key: string, target: EventTarget | null, { context, player, ...actions }: Targets): boolean {
  const { store, announce } = context;
  if (/^[1-5]$/.test(key)) openPanel(context, Number(key) - 1);
  else if (key === "?") actions.openHelp();
  else if (key === "/") focusSearch(context);
  else if (key === "j") stepMessage(context, -1);
  else if (key === "k") stepMessage(context, 1);
  else if (key === "l") player.live();
  else if (key === "f") actions.fitAll();
  else if (key === "t") announce(`Theme: ${actions.nextTheme()}`);
  else if (key === "[" || key === "]") announce(`Speed: ${player.setSpeed(key === "]" ? 1 : -1)} times`);
  else if (key === " " && !isControl(target)) player.toggle();
  else if (key === "Escape" && store.mapMode.value === "select") store.selection.value = null;
  else return false;
  return true;
}

function focusSearch({ store }: AppContext): void {
  store.panel.value = "messages";
  requestAnimationFrame(() => document.getElementById("message-search")?.focus());
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isField = target instanceof HTMLInputElement && !["range", "checkbox", "radio", "button"].includes(target.type);
  return isField || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

/** Does Space mean something to this element already? */
function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("button, a, input, summary, [role='tab'], [role='option']") !== null;
}
