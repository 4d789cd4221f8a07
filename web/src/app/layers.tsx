/** Which layers are shown, and what their colours mean. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LayerName } from "../map/view.ts";
import type { Kind } from "../map/style.ts";
import type { AppContext } from "./context.ts";
import { KEPT_MESSAGES } from "./store.ts";

interface Entry {
  layer: LayerName;
  title: string;
  kinds: [kind: Kind, meaning: string][];
}

export const LEGEND: readonly Entry[] = [
  {
    layer: "subscriptions",
    title: "Subscriptions",
    kinds: [["subscription", "of every message"], ["tracked", "of tracked objects"], ["paused", "paused"]],
  },
  {
    layer: "messages",
    title: `Messages of the last minute, ${KEPT_MESSAGES.toLocaleString("en")} at most`,
    kinds: [["match", "matched a subscription"], ["message", "matched nothing"]],
  },
  { layer: "tracks", title: "Tracked objects", kinds: [["object", "where it is"], ["trail", "where it was"]] },
  {
    layer: "answer",
    title: "Answers",
    kinds: [["asked", "the subscription's region"], ["found", "the message's region"]],
  },
  { layer: "relation", title: "How both relate", kinds: [["shared", "what they share"]] },
  { layer: "draft", title: "Drawing", kinds: [["draft", "not saved yet"]] },
];

export function LayerPopover({ context, onClose }: { context: AppContext; onClose: () => void }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const { visibleLayers } = context.store;
  useEffect(() => {
    host.current?.querySelector("input")?.focus();
    const close = (event: Event) => {
      const isOutside = event.target instanceof Node && host.current?.parentElement?.contains(event.target) === false;
      if (isOutside || (event instanceof KeyboardEvent && event.key === "Escape")) onClose();
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", close);
    };
  }, [onClose]);
  const toggle = (layer: LayerName, on: boolean) => {
    const layers = new Set(visibleLayers.value);
    if (on) layers.add(layer);
    else layers.delete(layer);
    visibleLayers.value = layers;
  };
  return (
    <div ref={host} class="popover" role="group" aria-label="Layers and legend" data-testid="layers">
      {LEGEND.map(({ layer, title, kinds }) => (
        <div class="legend-entry" key={layer}>
          <label class="check">
            <input
              type="checkbox"
              checked={visibleLayers.value.has(layer)}
              onChange={(event) => { toggle(layer, event.currentTarget.checked); }}
            />
            {title}
          </label>
          <ul class="legend">
            {kinds.map(([kind, meaning]) => (
              <li key={kind}><span class="swatch" data-kind={kind} aria-hidden="true" />{meaning}</li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}
