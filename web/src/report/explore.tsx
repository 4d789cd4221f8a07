/** The list of all messages, the map, and the chosen message with all its matches. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chunks } from "./chunks.ts";
import { Details } from "./details.tsx";
import { clearChosen, drawChosen, type Match, numberOf, shadeOverview } from "./drawing.ts";
import { type DetailLine, geometryOf, type Header, type ItemLine, type SubscriptionLine, subscriptionsOf } from "./format.ts";
import { List } from "./list.tsx";
import { type ReportMap, useReportMap } from "./map.ts";
import { findMessages, type Order, type Question, SHOWN, type Shown } from "./search.ts";
import { countOf, matchesOf, timeOf } from "./words.ts";

const ROW_HEIGHT = 58;

/** A message with everything that is known of it. */
export interface Chosen {
  row: number;
  item: ItemLine;
  detail: DetailLine;
  matches: Match[];
  drawn: number;
}

export function Explore({ header, chunks }: { header: Header; chunks: Chunks }): JSX.Element {
  const [problem, setProblem] = useState<string | null>(null);
  const fail = useCallback((error: unknown) => {
    setProblem(error instanceof Error ? error.message : String(error));
  }, []);
  const counts = useCounts(chunks, fail);
  const overview = useOverview(chunks, fail);
  const { host, map } = useReportMap(header, overview, fail);
  const [row, chosen, choose] = useChosen(header, chunks, map, fail);
  const [region, setRegion] = useState<SubscriptionLine | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);

  useEffect(() => {
    if (map === null) return;
    return map.view.onClick((hits) => {
      const match = hits.find(({ layer }) => layer === "answer");
      const known = hits.find(({ layer }) => layer === "subscriptions");
      if (match !== undefined) setPointed(numberOf(match.id));
      else if (known !== undefined) setRegion(overview?.[numberOf(known.id)] ?? null);
      else setRegion(null);
    });
  }, [map, overview]);

  return (
    <div class="explore" data-testid="explore" data-ready={map !== null && counts !== null}>
      {counts !== null && (
        <Messages header={header} chunks={chunks} counts={counts} chosen={row} onChoose={choose} fail={fail} />
      )}
      <div class={`explore-map${chosen === null ? "" : " has-details"}`}>
        <div class="map-host" ref={host} data-testid="map" />
        {chosen !== null && (
          <Details
            key={chosen.row}
            header={header}
            chosen={chosen}
            pointed={pointed}
            onPoint={(number) => map?.point(number)}
            onShow={(number) => {
              const shape = chosen.matches.find((match) => match.number === number)?.subscription[4] ?? null;
              const geometry = geometryOf(shape);
              if (geometry !== null) map?.view.fit([geometry], { maxZoom: 18 });
            }}
            onClose={() => {
              choose(null);
            }}
          />
        )}
        {chosen === null && region !== null && <RegionCard line={region} onClose={() => { setRegion(null); }} />}
        <Legend isChosen={chosen !== null} />
      </div>
      {problem !== null && <p class="problem" role="alert">{problem}</p>}
      <p class="unseen" aria-live="polite" data-testid="announcement">
        {chosen === null ? "" : `Message ${chosen.item[0] ?? ""}: ${matchesOf(chosen.matches.length)}, ${countOf(chosen.drawn)} drawn`}
      </p>
    </div>
  );
}

function useCounts(chunks: Chunks, fail: (error: unknown) => void): Int32Array | null {
  const [counts, setCounts] = useState<Int32Array | null>(null);
  useEffect(() => {
    const load = async () => {
      const all = new Int32Array(chunks.count("counts"));
      for (let chunk = 0; chunk < chunks.chunks("counts"); chunk++) {
        all.set(await chunks.chunk("counts", chunk), chunks.first("counts", chunk));
      }
      setCounts(all);
    };
    load().catch(fail);
  }, [chunks, fail]);
  return counts;
}

function useOverview(chunks: Chunks, fail: (error: unknown) => void): SubscriptionLine[] | null {
  const [lines, setLines] = useState<SubscriptionLine[] | null>(null);
  useEffect(() => {
    const numbers = Array.from({ length: chunks.count("overview") }, (_, number) => number);
    chunks.lines("overview", numbers).then(setLines, fail);
  }, [chunks, fail]);
  return lines;
}

/**
 * The row of the chosen message, and the message once it is loaded and drawn. The row is in the address of the page, so
 * that a link can lead to it.
 */
function useChosen(
  header: Header,
  chunks: Chunks,
  map: ReportMap | null,
  fail: (error: unknown) => void,
): [number | null, Chosen | null, (row: number | null) => void] {
  const [row, setRow] = useState<number | null>(() => rowOfAddress(chunks.count("items")));
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const latest = useRef<number | null>(null);
  useEffect(() => {
    if (map === null) return;
    latest.current = row;
    rememberRow(row);
    if (row === null) {
      setChosen(null);
      clearChosen(map.view);
      shadeOverview(map.view, false);
      map.showAll();
      return;
    }
    const load = async () => {
      const [item, detail] = await Promise.all([chunks.line("items", row), chunks.line("details", row)]);
      const numbers = subscriptionsOf(detail);
      const subscriptions = await chunks.lines("subscriptions", numbers);
      if (latest.current !== row) return;
      const matches = subscriptions.map((subscription, place) => ({
        number: numbers[place] ?? 0,
        subscription,
        relation: header.relations[Number(detail[2][place])] ?? null,
      }));
      shadeOverview(map.view, true);
      map.leaveRoom();
      setChosen({ row, item, detail, matches, drawn: drawChosen(map.view, detail, matches) });
    };
    load().catch(fail);
  }, [row, map, chunks, header, fail]);
  return [row, chosen, setRow];
}

function rowOfAddress(count: number): number | null {
  const found = /^#message=(\d+)$/.exec(location.hash)?.[1];
  return found !== undefined && Number(found) < count ? Number(found) : null;
}

function rememberRow(row: number | null): void {
  const address = row === null ? `${location.pathname}${location.search}` : `#message=${row}`;
  if (row !== null || location.hash !== "") history.replaceState(null, "", address);
}

interface MessagesProps {
  header: Header;
  chunks: Chunks;
  counts: Int32Array;
  chosen: number | null;
  onChoose: (row: number | null) => void;
  fail: (error: unknown) => void;
}

const SHOWN_WORDS: Record<Shown, string> = {
  all: "All messages",
  matched: "With matches",
  unmatched: "Without a match",
  rejected: "Rejected",
};

function Messages({ header, chunks, counts, chosen, onChoose, fail }: MessagesProps): JSX.Element {
  const [question, setQuestion] = useState<Question>({ text: "", shown: "all", order: "time" });
  const [rows, share] = useFound(chunks, counts, question, fail);
  const [items, onView] = useItems(chunks, rows, fail);
  const position = useMemo(() => (chosen === null ? -1 : rows.indexOf(chosen)), [rows, chosen]);
  const change = (part: Partial<Question>) => {
    setQuestion((before) => ({ ...before, ...part }));
  };
  const found = `${countOf(rows.length)} of ${countOf(counts.length)} messages`;
  return (
    <div class="messages">
      <input
        type="search"
        placeholder="Search id and attributes"
        aria-label="Search messages"
        aria-controls="messages"
        value={question.text}
        onInput={(event) => {
          change({ text: event.currentTarget.value });
        }}
      />
      <div class="choices">
        <select
          aria-label="Which messages"
          value={question.shown}
          onChange={(event) => {
            change({ shown: SHOWN.find((one) => one === event.currentTarget.value) ?? "all" });
          }}
        >
          {SHOWN.map((one) => (
            <option key={one} value={one}>{SHOWN_WORDS[one]}</option>
          ))}
        </select>
        <select
          aria-label="Order"
          value={question.order}
          onChange={(event) => {
            change({ order: (event.currentTarget.value === "matches" ? "matches" : "time") satisfies Order });
          }}
        >
          <option value="time">By time</option>
          <option value="matches">By matches</option>
        </select>
      </div>
      <p class="found" role="status" data-testid="found">{share < 1 ? `${found}, searching…` : found}</p>
      <List
        id="messages"
        label="Messages"
        count={rows.length}
        rowHeight={ROW_HEIGHT}
        chosen={position}
        onChoose={(place) => {
          onChoose(rows[place] ?? null);
        }}
        onView={onView}
        empty={share < 1 ? "Searching…" : "No message contains this."}
        row={(place) => {
          const row = rows[place] ?? 0;
          return <MessageRow header={header} item={items.get(row)} matches={counts[row] ?? 0} />;
        }}
      />
    </div>
  );
}

const NO_ROWS = new Uint32Array(0);

/** Rows that answer the question, and which share of the messages was searched. */
function useFound(
  chunks: Chunks,
  counts: Int32Array,
  question: Question,
  fail: (error: unknown) => void,
): [Uint32Array, number] {
  const [answer, setAnswer] = useState<[Uint32Array, number]>([NO_ROWS, 0]);
  const latest = useRef(question);
  useEffect(() => {
    latest.current = question;
    const isCurrent = () => latest.current === question;
    const tell = (rows: Uint32Array, share: number) => {
      if (isCurrent()) setAnswer([rows, share]);
    };
    // Wait until the user stops typing.
    const timer = setTimeout(() => {
      findMessages(chunks, counts, question, isCurrent, tell).then((rows) => {
        if (rows !== null) tell(rows, 1);
      }, fail);
    }, question.text === "" ? 0 : 120);
    return () => {
      clearTimeout(timer);
    };
  }, [chunks, counts, question, fail]);
  return answer;
}

/** Items of the rows in view, loaded as they come into view. */
function useItems(
  chunks: Chunks,
  rows: Uint32Array,
  fail: (error: unknown) => void,
): [Map<number, ItemLine>, (first: number, last: number) => void] {
  const [items, setItems] = useState(new Map<number, ItemLine>());
  const onView = useCallback(
    (first: number, last: number) => {
      const needed = [...rows.subarray(first, last)].sort((a, b) => a - b);
      chunks.lines("items", needed).then((lines) => {
        setItems(new Map(lines.map((line, place) => [needed[place] ?? 0, line])));
      }, fail);
    },
    [chunks, rows, fail],
  );
  return [items, onView];
}

function MessageRow(props: { header: Header; item: ItemLine | undefined; matches: number }): JSX.Element {
  const { header, item, matches } = props;
  if (item === undefined) return <span class="loading">…</span>;
  const [id, time, ...values] = item;
  const title = header.title === null ? null : values[header.title];
  const rest = values.filter((value, place) => value !== null && place !== header.title);
  return (
    <>
      <span class="row-head">
        <b>{title ?? `Message ${id ?? "without an id"}`}</b>
        <Badge matches={matches} />
      </span>
      <span class="row-text">{[time === null ? null : timeOf(time), id, ...rest].filter(Boolean).join(" · ")}</span>
    </>
  );
}

function Badge({ matches }: { matches: number }): JSX.Element {
  if (matches < 0) return <span class="badge badge-bad">rejected</span>;
  return <span class={matches > 0 ? "badge badge-hit" : "badge"}>{matchesOf(matches)}</span>;
}

function RegionCard({ line, onClose }: { line: SubscriptionLine; onClose: () => void }): JSX.Element {
  const [key, subscriber, filter, matches] = line;
  return (
    <aside class="details" aria-label="Subscription">
      <header>
        <h3>{key}</h3>
        <button type="button" class="close" aria-label="Close" onClick={onClose}>×</button>
      </header>
      <dl class="facts">
        <dt>Subscriber</dt><dd>{subscriber}</dd>
        <dt>Matches</dt><dd>{countOf(matches)}</dd>
        {filter !== "" && <><dt>Filter</dt><dd><code>{filter}</code></dd></>}
      </dl>
    </aside>
  );
}

function Legend({ isChosen }: { isChosen: boolean }): JSX.Element {
  return (
    <ul class="legend" aria-label="Legend">
      {isChosen ? (
        <>
          <li><i class="swatch swatch-message" />message</li>
          <li><i class="swatch swatch-match" />matched</li>
        </>
      ) : (
        <>
          <li><i class="swatch swatch-none" />no match</li>
          <li><i class="swatch swatch-few" />few</li>
          <li><i class="swatch swatch-many" />many matches</li>
        </>
      )}
    </ul>
  );
}
