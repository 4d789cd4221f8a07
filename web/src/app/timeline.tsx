/** Counts per minute as bars; a slider over them jumps in time; play, speed and the way back to the present. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Counts } from "../api/types.ts";
import { count as countOf } from "../do/ui/words.ts";
import { Icon } from "./icons.tsx";
import { SPEEDS } from "./player.ts";
import type { Running } from "./running.ts";

const RANGES: readonly [seconds: number, title: string][] = [
  [900, "15 minutes"],
  [3600, "1 hour"],
  [6 * 3600, "6 hours"],
  [24 * 3600, "1 day"],
  [7 * 24 * 3600, "7 days"],
];
const BARS = 60;
const REFRESH_MILLISECONDS = 10_000;

/** The range of the time line that ends at `now`, on whole steps, and its step in seconds: at least BARS bars. */
export function rangeOf(now: number, seconds: number): { from: number; to: number; step: number } {
  const step = Math.max(15, seconds / BARS);
  const to = Math.ceil(now / 1000 / step) * step * 1000;
  return { from: to - seconds * 1000, to, step };
}

export function Timeline({ running }: { running: Running }): JSX.Element {
  const { api, store } = running.context;
  const seconds = useSignal(3600);
  const counts = useSignal<Counts | null>(null);
  const range = useSignal(rangeOf(running.now(), 3600));
  useEffect(() => {
    let isGone = false;
    const load = async () => {
      const wanted = rangeOf(running.now(), seconds.value);
      const query = { from: iso(wanted.from), to: iso(wanted.to), step: wanted.step };
      const answer = await api.counts(query).catch(() => null); // the header tells of a lost connection
      if (answer === null || isGone) return;
      range.value = wanted;
      counts.value = answer;
    };
    const stop = seconds.subscribe(() => { void load(); });
    const timer = setInterval(() => { if (!document.hidden) void load(); }, REFRESH_MILLISECONDS);
    return () => {
      isGone = true;
      stop();
      clearInterval(timer);
    };
  }, [api, running, seconds, counts, range]);
  const { from, to } = range.value;
  const time = store.time.value;
  return (
    <section class="timeline" aria-label="Time line" data-testid="timeline">
      <div class="timeline-controls">
        <PlayButton running={running} />
        <button
          type="button"
          class="live-button"
          aria-pressed={time === null}
          data-testid="live"
          onClick={() => { running.player.live(); }}
        >
          Live
        </button>
        <Choice label="Speed" value={store.speed.value} options={SPEEDS.map((speed) => [speed, `${speed}×`])} onChange={(speed) => { store.speed.value = speed; }} />
        <Choice label="Range" value={seconds.value} options={RANGES} onChange={(chosen) => { seconds.value = chosen; }} />
        <output class="timeline-time" data-testid="time">{time === null ? "Now" : timeText(time)}</output>
      </div>
      <div class="timeline-track">
        <Bars counts={counts.value} />
        <input
          type="range"
          class="timeline-slider"
          aria-label="Moment shown"
          aria-valuetext={time === null ? "Now" : timeText(time)}
          min={from}
          max={to}
          step={1000}
          value={Math.min(to, time ?? to)}
          onInput={(event) => {
            const chosen = Number(event.currentTarget.value);
            if (chosen >= Math.min(to, running.now())) running.player.live();
            else void running.player.jump(chosen);
          }}
        />
        <Axis from={from} to={to} />
      </div>
    </section>
  );
}

function PlayButton({ running: { player, context } }: { running: Running }): JSX.Element {
  const isPlaying = context.store.playing.value;
  return (
    <button type="button" class="icon-button" aria-label={isPlaying ? "Pause" : "Play"} data-testid="play" onClick={() => { player.toggle(); }}>
      <Icon name={isPlaying ? "pause" : "play"} />
    </button>
  );
}

function Choice(props: {
  label: string;
  value: number;
  options: readonly (readonly [number, string])[];
  onChange(value: number): void;
}): JSX.Element {
  return (
    <select
      class="choice"
      aria-label={props.label}
      title={props.label}
      value={props.value}
      onChange={(event) => { props.onChange(Number(event.currentTarget.value)); }}
    >
      {props.options.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
    </select>
  );
}

function Bars({ counts }: { counts: Counts | null }): JSX.Element {
  const bars = counts?.messages ?? [];
  const most = Math.max(1, ...bars);
  const perMinute = counts === null ? 0 : Math.round((Math.max(0, ...bars) * 60) / counts.step);
  const label = counts === null ? "Counts are being loaded" : `At most ${countOf(perMinute, "message")} per minute`;
  return (
    <>
      <svg class="bars" viewBox={`0 0 ${Math.max(1, bars.length)} 100`} preserveAspectRatio="none" role="img" aria-label={label}>
        {bars.map((count, index) => {
          const height = (count / most) * 100;
          // Matches may outnumber messages: a bar shows which part of its messages could have matched.
          const matched = count === 0 ? 0 : Math.min(1, (counts?.matches[index] ?? 0) / count) * height;
          return (
            <g key={index}>
              <rect class="bar" x={index + 0.1} width={0.8} y={100 - height} height={height} />
              <rect class="bar-matched" x={index + 0.1} width={0.8} y={100 - matched} height={matched} />
            </g>
          );
        })}
      </svg>
      <span class="bars-most" aria-hidden="true">{perMinute.toLocaleString("en-US")}/min</span>
    </>
  );
}

function Axis({ from, to }: { from: number; to: number }): JSX.Element {
  const marks = [0, 0.25, 0.5, 0.75, 1].map((part) => from + part * (to - from));
  const options: Intl.DateTimeFormatOptions =
    to - from > 24 * 3600_000
      ? { weekday: "short", hour: "2-digit", minute: "2-digit", hour12: false }
      : { hour: "2-digit", minute: "2-digit", hour12: false };
  return (
    <div class="axis" aria-hidden="true">
      {marks.map((mark) => <span key={mark}>{new Date(mark).toLocaleTimeString(undefined, options)}</span>)}
    </div>
  );
}

function timeText(time: number): string {
  return new Date(time).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium", hour12: false });
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
