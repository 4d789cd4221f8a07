/** The chosen message: its attributes, and all its matches with their relation. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Match } from "./drawing.ts";
import type { Chosen } from "./explore.tsx";
import type { Header } from "./format.ts";
import { List } from "./list.tsx";
import { countOf, matchesOf, timeOf } from "./words.ts";

const ROW_HEIGHT = 52;

interface DetailsProps {
  header: Header;
  chosen: Chosen;
  /** Number of a subscription that was clicked on the map. */
  pointed: number | null;
  onPoint: (number: number | null) => void;
  onShow: (number: number) => void;
  onClose: () => void;
}

export function Details({ header, chosen, pointed, onPoint, onShow, onClose }: DetailsProps): JSX.Element {
  const { item, detail, matches } = chosen;
  const [relation, setRelation] = useState<string | null>(null);
  const [place, setPlace] = useState(-1);
  const listed = useMemo(
    () => (relation === null ? matches : matches.filter((match) => match.relation === relation)),
    [matches, relation],
  );
  useEffect(() => {
    const found = pointed === null ? -1 : listed.findIndex((match) => match.number === pointed);
    if (found >= 0) setPlace(found);
  }, [pointed, listed]);
  useEffect(() => {
    onPoint(listed[place]?.number ?? null);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- only a choice moves the mark; onPoint is new each time
  }, [place, listed]);
  const [id, time, ...values] = item;
  const title = header.title === null ? null : values[header.title];
  return (
    <aside class="details" aria-label="Chosen message" data-testid="details">
      <header>
        <h3>{title ?? "Message"} <span class="soft">{id}</span></h3>
        <button type="button" class="close" aria-label="Choose no message" onClick={onClose}>×</button>
      </header>
      <dl class="facts">
        {header.time === null && time !== null && <><dt>time</dt><dd>{timeOf(time)}</dd></>}
        {header.columns.map((name, column) => {
          const value = name === header.time && time !== null ? timeOf(time) : values[column];
          return column === header.title || value === null || value === undefined || value === "" ? null : (
            <div class="fact" key={name}><dt>{name}</dt><dd>{value}</dd></div>
          );
        })}
      </dl>
      {detail[3] !== undefined && <p class="reason">Rejected: {detail[3]}</p>}
      <p class="found" data-testid="drawn">{drawnWords(chosen)}</p>
      <Relations matches={matches} chosen={relation} onChoose={(name) => { setRelation(name); setPlace(-1); }} />
      {matches.length > 0 && (
        <List
          id="matches"
          label="Matches"
          count={listed.length}
          rowHeight={ROW_HEIGHT}
          chosen={place}
          onChoose={(position) => {
            setPlace(position);
            const match = listed[position];
            if (match !== undefined) onShow(match.number);
          }}
          onPoint={(position) => {
            onPoint(position === null ? (listed[place]?.number ?? null) : (listed[position]?.number ?? null));
          }}
          empty="No match has this relation."
          row={(position) => <MatchRow match={listed[position]} unit={header.unit} />}
        />
      )}
    </aside>
  );
}

function drawnWords({ matches, drawn, detail }: Chosen): string {
  const missing = matches.length - drawn;
  const whole = detail[0] === null ? `${matchesOf(matches.length)}; the message has no region` : matchesOf(matches.length);
  return missing > 0 ? `${whole}; ${countOf(missing)} without a region` : whole;
}

/** How many matches have which relation; a press lists only these. */
function Relations(props: {
  matches: readonly Match[];
  chosen: string | null;
  onChoose: (relation: string | null) => void;
}): JSX.Element | null {
  const counts = new Map<string, number>();
  for (const { relation } of props.matches) {
    if (relation !== null) counts.set(relation, (counts.get(relation) ?? 0) + 1);
  }
  if (counts.size === 0) return null;
  const ordered = [...counts].sort(([, a], [, b]) => b - a);
  return (
    <div class="relations" role="group" aria-label="Relation of the message to the regions">
      {ordered.map(([name, count]) => (
        <button
          key={name}
          type="button"
          aria-pressed={props.chosen === name}
          onClick={() => {
            props.onChoose(props.chosen === name ? null : name);
          }}
        >
          {name} <b>{countOf(count)}</b>
        </button>
      ))}
    </div>
  );
}

function MatchRow({ match, unit }: { match: Match | undefined; unit: Header["unit"] }): JSX.Element | null {
  if (match === undefined) return null;
  const [key, subscriber, filter] = match.subscription;
  return (
    <>
      <span class="row-head">
        <b>{key}</b>
        {match.relation !== null && <span class="badge">{match.relation}</span>}
      </span>
      <span class="row-text" title={filter}>{[unit === "key" ? subscriber : null, filter].filter(Boolean).join(" · ")}</span>
    </>
  );
}
