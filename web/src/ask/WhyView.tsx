/** Why a message matches a subscription, or why not: both regions drawn, every constraint with value and verdict. */

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExplainedConstraint, MapExplanation } from "../api/types.ts";
import type { AppContext } from "../app/context.ts";
import { timeText } from "../do/ui/words.ts";
import type { Feature } from "../map/view.ts";
import { hatchRelation } from "./hatching.ts";
import { useLoaded } from "./loading.ts";
import { RelationPicture } from "./parts/RelationPicture.tsx";
import { WhyTree, type ConstraintPlace } from "./parts/WhyTree.tsx";
import { asPlace, pictureParts, type PicturePart } from "./picture.ts";

export function WhyView({ context, name, sequence }: { context: AppContext; name: string; sequence: number }): JSX.Element {
  const { value: explanation, problem } = useLoaded(`${sequence} ${name}`, () => context.api.explain({ key: name, sequence }));
  const { announce } = context;
  useEffect(() => {
    if (explanation !== null) announce(explanation.verdict);
  }, [explanation, announce]);
  return (
    <article class="why" aria-label={`Why message ${sequence} and ${name}`}>
      <nav class="buttons" aria-label="The pair">
        <button type="button" class="small" onClick={() => { context.store.selection.value = { kind: "message", sequence }; }}>
          Message {sequence}
        </button>
        <button type="button" class="small" onClick={() => { context.store.selection.value = { kind: "subscription", key: name }; }}>
          {name}
        </button>
      </nav>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {explanation === null ? problem === null && <p class="muted">Asking …</p> : <Explanation context={context} explanation={explanation} />}
    </article>
  );
}

function Explanation({ context, explanation }: { context: AppContext; explanation: MapExplanation }): JSX.Element {
  const first = useMemo(() => firstSpatial(explanation), [explanation]);
  const [chosen, setChosen] = useState<{ of: MapExplanation; place: ConstraintPlace } | null>(null);
  const shown = chosen?.of === explanation ? chosen.place : first;
  const constraint = shown === null ? null : constraintAt(explanation, shown);
  useRelationLayer(context, constraint);
  return (
    <>
      <p class={explanation.matches ? "verdict-line verdict-yes" : "verdict-line verdict-no"}>
        <strong>{explanation.matches ? "It matches." : "It does not match."}</strong> {explanation.verdict}
      </p>
      {explanation.note !== null && <p class="note">{explanation.note}</p>}
      {constraint?.spatial && (
        <RelationPicture asked={asPlace(constraint.spatial.asked)} found={asPlace(constraint.spatial.found)} relation={constraint.relation} plain={context.settings.plain} />
      )}
      <WhyTree explanation={explanation} shown={shown} onShow={(place) => { setChosen({ of: explanation, place }); }} />
      {explanation.track !== null && <TrackState track={explanation.track} />}
      {explanation.written !== null && (
        <details>
          <summary>Filter as written</summary>
          <code class="wrapped">{explanation.written}</code>
        </details>
      )}
    </>
  );
}

function TrackState({ track }: { track: NonNullable<MapExplanation["track"]> }): JSX.Element {
  if (track.id === null) return <p>The message names no tracked object.</p>;
  const state = track.inside ? `is inside now${track.since === null ? "" : `, since ${timeText(track.since)}`}` : "is outside now";
  return (
    <p>
      The object <strong>{String(track.id)}</strong> {state}.
    </p>
  );
}

/** Return the place of the spatial constraint that is drawn first: one of the nearest filter, else any. */
export function firstSpatial(explanation: MapExplanation): ConstraintPlace | null {
  const order = [explanation.nearest, ...explanation.filters.keys()];
  for (const filter of order) {
    const constraints = explanation.filters[filter]?.constraints ?? [];
    const constraint = constraints.findIndex((one) => one.spatial !== null);
    if (constraint >= 0) return { filter, constraint };
  }
  return null;
}

function constraintAt(explanation: MapExplanation, place: ConstraintPlace): ExplainedConstraint | null {
  return explanation.filters[place.filter]?.constraints[place.constraint] ?? null;
}

/** Draw the relation on the map while the panel shows it. */
function useRelationLayer(context: AppContext, constraint: ExplainedConstraint | null): void {
  const { map, store } = context;
  const isShown = store.panel.value === "ask";
  useEffect(() => {
    const spatial = constraint?.spatial ?? null;
    if (constraint === null || spatial === null || !isShown) return undefined;
    const { relation } = constraint;
    const features = relationFeatures(pictureParts(asPlace(spatial.asked), asPlace(spatial.found), relation), relation);
    hatchRelation(map.maplibre);
    map.setFeatures("relation", features);
    const places = [spatial.asked, spatial.found].filter((geometry) => geometry !== null);
    const linked = store.linked.peek();
    if (linked === null || linked !== store.selection.peek()) map.fit(places, { maxZoom: 14 });
    return () => {
      map.setFeatures("relation", []);
    };
  }, [map, store, constraint, isShown]);
}

/** Return the parts of a picture as features; the last one, which is on top, is labelled with the relation. */
export function relationFeatures(parts: readonly PicturePart[], relation: string | null): Feature[] {
  const kinds: Record<PicturePart["kind"], string> = { asked: "asked", found: "found", shared: "shared", contact: "shared", gap: "shared" };
  return parts.map((part, k) => {
    const isLabelled = relation !== null && k === parts.length - 1;
    return {
      id: `${part.kind} ${k}`,
      geometry: part.geometry,
      kind: kinds[part.kind],
      ...(isLabelled ? { properties: { label: relation } } : {}),
    };
  });
}
