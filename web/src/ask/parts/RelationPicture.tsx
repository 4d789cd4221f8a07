/** A small drawing of two regions and their relation, with a legend; colours and patterns tell the two apart. */

import type { JSX } from "preact";
import { useId, useMemo } from "preact/hooks";
import type { RelationName } from "../../api/types.ts";
import type { Place } from "../../do/filter/model.ts";
import { RELATION_PHRASES } from "../../do/filter/relations.ts";
import { drawn, frameOf, pictureParts, type PictureKind } from "../picture.ts";

const WIDTH = 320;
const HEIGHT = 180;

const LEGEND: Record<PictureKind, string> = {
  asked: "subscription",
  found: "message",
  shared: "shared part",
  contact: "where they touch",
  gap: "shortest gap",
};

export function RelationPicture(props: {
  asked: Place | null;
  found: Place | null;
  relation: RelationName | null;
  plain: boolean;
}): JSX.Element | null {
  const { asked, found, relation, plain } = props;
  const id = useId();
  const parts = useMemo(() => pictureParts(asked, found, relation), [asked, found, relation]);
  const places = [asked, found].filter((place): place is Place => place !== null);
  if (places.length === 0) return null;
  const frame = frameOf(places, WIDTH, HEIGHT, { plain });
  const kinds = [...new Set(parts.map((part) => part.kind))];
  return (
    <figure class="relation-picture">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={pictureLabel(relation)}>
        <defs>
          <Hatch id={`${id}-asked`} kind="asked" angle={45} />
          <Hatch id={`${id}-found`} kind="found" angle={-45} />
        </defs>
        {parts.map((part, k) => {
          const { path, dots } = drawn(part.geometry, frame);
          const fill = part.kind === "asked" || part.kind === "found" ? `url(#${id}-${part.kind})` : undefined;
          return (
            <g key={k} class={`picture-${part.kind}`}>
              {path !== "" && <path d={path} fill={fill} fill-rule="evenodd" />}
              {dots.map(([x, y], place) => (
                <circle key={place} cx={x} cy={y} r={4} />
              ))}
            </g>
          );
        })}
      </svg>
      <figcaption>
        {relation !== null && <strong class="relation-name">{relation}</strong>}
        <ul class="picture-legend">
          {kinds.map((kind) => (
            <li key={kind} class={`picture-key picture-key-${kind}`}>
              {LEGEND[kind]}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

function Hatch({ id, kind, angle }: { id: string; kind: string; angle: number }): JSX.Element {
  return (
    <pattern id={id} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform={`rotate(${angle})`}>
      <line class={`hatch-${kind}`} x1="0" y1="0" x2="0" y2="7" stroke-width="3" />
    </pattern>
  );
}

function pictureLabel(relation: RelationName | null): string {
  if (relation === null) return "Region of the subscription; the message has none";
  return `Both regions drawn: the message ${RELATION_PHRASES[relation]}`;
}
