import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import type { MapSettings } from "../api/types.ts";
import { Icon, Mark } from "./icons.tsx";
import { LayerPopover } from "./layers.tsx";
import type { Running } from "./running.ts";
import type { Store } from "./store.ts";
import { nextTheme, themeChoice } from "./theme.ts";

interface HeaderProps {
  settings: MapSettings;
  running: Running | null;
  canSignOut: boolean;
  onSignOut: () => void;
  onSignIn: () => void;
  onHelp: () => void;
}

export function Header({ settings, running, canSignOut, onSignOut, onSignIn, onHelp }: HeaderProps): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <header class="header">
      <Mark />
      <h1 class="title">{settings.title}</h1>
      {settings.demo && <span class="badge">Demonstration</span>}
      {settings.read_only && <span class="badge">Read-only</span>}
      {running !== null && <Connection store={running.context.store} />}
      <div class="header-actions">
        <HeaderButton label="Show everything" icon="fit" onClick={() => { running?.fitAll(); }} />
        <div class="popover-anchor">
          <HeaderButton
            label="Layers and legend"
            icon="layers"
            expanded={isOpen.value}
            onClick={() => { isOpen.value = !isOpen.value; }}
          />
          {isOpen.value && running !== null && (
            <LayerPopover context={running.context} onClose={() => { isOpen.value = false; }} />
          )}
        </div>
        <HeaderButton label={`Theme: ${themeChoice.value}`} icon="theme" onClick={() => { nextTheme(); }} />
        <HeaderButton label="Help and shortcuts" icon="help" onClick={onHelp} />
        {canSignOut ? (
          <HeaderButton label="Sign out" icon="exit" onClick={onSignOut} />
        ) : (
          <HeaderButton label="Sign in" icon="enter" onClick={onSignIn} />
        )}
      </div>
    </header>
  );
}

function HeaderButton(props: {
  label: string;
  icon: "fit" | "layers" | "theme" | "help" | "exit" | "enter";
  expanded?: boolean;
  onClick: () => void;
  children?: ComponentChildren;
}): JSX.Element {
  const expansion = props.expanded === undefined ? {} : { "aria-expanded": props.expanded };
  return (
    <button
      class="icon-button"
      type="button"
      aria-label={props.label}
      title={props.label}
      onClick={() => { props.onClick(); }}
      {...expansion}
    >
      <Icon name={props.icon} />
    </button>
  );
}

const STATES = {
  connecting: "Connecting…",
  live: "Live",
  retrying: "Connection lost, trying again…",
  ended: "Disconnected: sign in again",
} as const;

function Connection({ store }: { store: Store }): JSX.Element {
  const state = store.connection.value;
  const text = state === "live" && store.time.value !== null ? "Connected" : STATES[state];
  return (
    <span class="connection" data-state={state} data-testid="connection" role="status">
      <span class="connection-dot" aria-hidden="true" />
      <span class="connection-text">{text}</span>
    </span>
  );
}
