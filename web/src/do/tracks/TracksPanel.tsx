/** Tracked objects: where they are, what they are inside of, and what they do as it happens. */

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { AppContext } from "../../app/context.ts";
import { OwnFeatures } from "../ui/own-features.ts";
import { count, relationStep, timeText, transitionText } from "../ui/words.ts";
import { KeyButton, ObjectView } from "./ObjectView.tsx";
import { objectName, trailFeatures, type TrackedObject } from "./objects.ts";
import { useObjects } from "./use-objects.ts";

const MOST_EVENTS = 50;
const MOST_OBJECTS = 300;

export function TracksPanel({ context }: { context: AppContext }): JSX.Element {
  const { objects, selected: selectedObject, problem } = useObjects(context, "tracks");
  const answers = useMemo(() => new OwnFeatures(context.map, "answer"), [context.map]);
  const search = useSignal("");
  const shown = useComputed(() => matching(objects.value, search.value)).value;
  useSignalEffect(() => {
    answers.set(trailFeatures(selectedObject.value));
  });
  const selected = selectedObject.value;
  return (
    <section class="tracks-panel" aria-label="Tracked objects">
      <h2>Tracked objects</h2>
      {problem.value !== null && (
        <p class="problem" role="alert">
          {problem.value}
        </p>
      )}
      {selected !== undefined && <ObjectView context={context} object={selected} />}
      <TransitionList context={context} />
      <h3>{count(objects.value.length, "object")}</h3>
      {objects.value.length === 0 ? (
        <p class="muted">
          No messages of tracked objects yet. A subscription with a tracking attribute makes objects appear here.
        </p>
      ) : (
        <>
          <label class="search">
            Search <input type="search" value={search.value} onInput={(event) => { search.value = event.currentTarget.value; }} />
          </label>
          <ul class="links objects">
            {shown.slice(0, MOST_OBJECTS).map((object) => (
              <ObjectItem key={objectName(object.attribute, object.id)} context={context} object={object} isSelected={object === selected} />
            ))}
            {shown.length > MOST_OBJECTS && <li class="muted">and {(shown.length - MOST_OBJECTS).toLocaleString("en")} more: search for them</li>}
          </ul>
        </>
      )}
    </section>
  );
}

function matching(objects: readonly TrackedObject[], search: string): TrackedObject[] {
  const words = search.trim().toLowerCase();
  if (words === "") return [...objects];
  return objects.filter((object) => [object.id, ...object.inside.map(({ key }) => key)].some((text) => text.toLowerCase().includes(words)));
}

function ObjectItem({ context, object, isSelected }: { context: AppContext; object: TrackedObject; isSelected: boolean }): JSX.Element {
  return (
    <li>
      <button
        type="button"
        class="link"
        aria-pressed={isSelected}
        onClick={() => {
          context.store.selection.value = { kind: "track", attribute: object.attribute, id: object.id };
          if (object.at !== null) context.map.fit([{ type: "Point", coordinates: object.at }], { maxZoom: 12 });
        }}
      >
        <span>{object.id}</span> <span class="muted">{stateText(object)}</span>
      </button>
    </li>
  );
}

function stateText(object: TrackedObject): string {
  if (object.inside.length === 0) return "outside of all";
  const [first, ...others] = object.inside;
  return `inside ${first?.key ?? ""}${others.length ? ` and ${others.length} more` : ""}`;
}

function TransitionList({ context }: { context: AppContext }): JSX.Element {
  const transitions = context.store.transitions.value;
  const latest = useMemo(() => transitions.slice(-MOST_EVENTS).toReversed(), [transitions]);
  return (
    <>
      <h3>Enters and leaves</h3>
      {latest.length === 0 ? (
        <p class="muted">Nothing has happened since this page was opened.</p>
      ) : (
        <ol class="transitions" aria-label="Enters and leaves, latest first">
          {latest.map((transition, k) => (
            <li key={`${transition.time} ${String(transition.id)} ${transition.key} ${transition.kind} ${k}`} class={`transition-${transition.kind}`}>
              <time dateTime={transition.time}>{timeText(transition.time)}</time> <KeyButton context={context} label={transitionText(transition)} subscription={transition.key} />{" "}
              <span class="muted">{relationStep(transition.before, transition.after)}</span>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}
