/** Tracked objects for a panel: who is inside by the server's list, kept true by the transitions that come. */

import { useComputed, useSignal, useSignalEffect, type ReadonlySignal } from "@preact/signals";
import type { MapTransition, TrackPage } from "../../api/types.ts";
import type { AppContext } from "../../app/context.ts";
import type { PanelName } from "../../app/store.ts";
import { problemOf } from "../ui/problems.ts";
import { trackedObjects, type TrackedObject } from "./objects.ts";

const MOST_LOADED = 1_000;

export interface TrackedObjects {
  objects: ReadonlySignal<TrackedObject[]>;
  selected: ReadonlySignal<TrackedObject | undefined>;
  problem: ReadonlySignal<string | null>;
}

/** Return objects while `panel` is shown; nothing is computed or loaded while another one is. */
export function useObjects(context: AppContext, panel: PanelName): TrackedObjects {
  const { store, api, settings } = context;
  const page = useSignal<TrackPage["inside"]>([]);
  const loadedUpTo = useSignal<MapTransition | null>(null);
  const problem = useSignal<string | null>(null);
  const isShown = useComputed(() => store.panel.value === panel);
  useSignalEffect(() => {
    if (!isShown.value) return undefined;
    let isCurrent = true;
    const latest = store.transitions.peek().at(-1) ?? null;
    api.tracks({ limit: MOST_LOADED }).then(
      ({ inside }) => {
        if (isCurrent) [page.value, loadedUpTo.value, problem.value] = [inside, latest, null];
      },
      (error: unknown) => {
        if (isCurrent) problem.value = problemOf(error, []).message;
      },
    );
    return () => {
      isCurrent = false;
    };
  });
  const attributes = useComputed(() => {
    const found = new Set(settings.tracks);
    for (const { track } of store.subscriptions.value.values()) if (track !== null) found.add(track);
    return [...found];
  });
  const objects = useComputed(() => {
    if (!isShown.value) return [];
    const [only, ...others] = attributes.value;
    const transitions = store.transitions.value;
    // All of them count if the one up to which the list was loaded is not kept any more.
    const start = loadedUpTo.value === null ? 0 : transitions.indexOf(loadedUpTo.value) + 1;
    const trackOf = (key: string) => store.subscriptions.value.get(key)?.track ?? (others.length === 0 ? (only ?? null) : null);
    return trackedObjects(store.messages.value, attributes.value, page.value, transitions.slice(start), trackOf);
  });
  const selected = useComputed(() => {
    const selection = store.selection.value;
    if (selection?.kind !== "track") return undefined;
    return objects.value.find((one) => one.attribute === selection.attribute && one.id === selection.id);
  });
  return { objects, selected, problem };
}
