/** The panels beside the map as tabs; at phone width a sheet at the bottom. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { AskPanel } from "../ask/index.tsx";
import { DoPanel, NetworkPanel, TracksPanel } from "../do/index.tsx";
import type { AppContext } from "./context.ts";
import { Icon } from "./icons.tsx";
import { MessagesPanel } from "./messages.tsx";
import type { PanelName } from "./store.ts";

type PanelComponent = (props: { context: AppContext }) => JSX.Element;
const TABS: readonly [name: PanelName, title: string, component: PanelComponent][] = [
  ["messages", "Messages", MessagesPanel],
  ["ask", "Ask", AskPanel],
  ["do", "Do", DoPanel],
  ["tracks", "Tracks", TracksPanel],
  ["network", "Network", NetworkPanel],
];

/** The panels that this user may use. */
export function allowedPanels({ settings }: AppContext): readonly PanelName[] {
  return TABS.map(([name]) => name).filter(
    (name) => !(name === "do" && settings.read_only) && !(name === "network" && !settings.scopes.includes("admin")),
  );
}

export function Panels({ context }: { context: AppContext }): JSX.Element {
  const { store } = context;
  const allowed = allowedPanels(context);
  const current = allowed.includes(store.panel.value) ? store.panel.value : "messages";
  const visited = useRef(new Set<PanelName>());
  visited.current.add(current); // a panel keeps its state once it was opened
  const isRaised = useSignal(false);
  useEffect(() => store.selection.subscribe((selection) => { if (selection !== null) isRaised.value = true; }), [store, isRaised]);
  const tabs = TABS.filter(([name]) => allowed.includes(name));
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const index = (allowed.indexOf(current) + step + allowed.length) % allowed.length;
    store.panel.value = allowed[index] ?? current;
    document.getElementById(`tab-${store.panel.value}`)?.focus();
  };
  return (
    <aside class="panels" id="panels" tabIndex={-1} aria-label="Panels" data-raised={isRaised.value}>
      <div class="tabs">
        <div role="tablist" aria-label="Panels" class="tablist" onKeyDown={move}>
          {tabs.map(([name, title]) => (
            <button
              key={name}
              type="button"
              role="tab"
              id={`tab-${name}`}
              class="tab"
              aria-selected={name === current}
              aria-controls={`panel-${name}`}
              tabIndex={name === current ? 0 : -1}
              onClick={() => {
                store.panel.value = name;
                isRaised.value = true;
              }}
            >
              {title}
            </button>
          ))}
        </div>
        <button
          type="button"
          class="icon-button sheet-button"
          aria-label={isRaised.value ? "Lower the panel" : "Raise the panel"}
          aria-expanded={isRaised.value}
          onClick={() => { isRaised.value = !isRaised.value; }}
        >
          <Icon name="sheet" />
        </button>
      </div>
      {tabs.map(([name, , Component]) => (
        <div
          key={name}
          role="tabpanel"
          id={`panel-${name}`}
          class="tabpanel"
          aria-labelledby={`tab-${name}`}
          tabIndex={0}
          hidden={name !== current}
          data-testid={`panel-${name}`}
        >
          {visited.current.has(name) && <Component context={context} />}
        </div>
      ))}
    </aside>
  );
}
