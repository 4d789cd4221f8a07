/** The past: jump to a moment, play from there at a speed, return to the present. */
import { batch } from "@preact/signals";
import { type Api, ApiError } from "../api/client.ts";
import type { MapMessage } from "../api/types.ts";
import type { Feed } from "./feed.ts";
import { type Scene, WINDOW } from "./scene.ts";
import { KEPT_MESSAGES, type Store } from "./store.ts";

export const SPEEDS: readonly number[] = [1, 10, 60, 300, 1800];
const TICK_MILLISECONDS = 100;
const AHEAD_SECONDS = 4; // of playing, which are loaded before they are shown
const PAGE = 500;

interface PlayerParts {
  api: Api;
  store: Store;
  feed: Feed;
  scene: Scene;
  announce: (text: string) => void;
  /** The server's time in milliseconds since 1970. */
  now: () => number;
}

export class Player {
  readonly #api: Api;
  readonly #store: Store;
  readonly #feed: Feed;
  readonly #scene: Scene;
  readonly #announce: (text: string) => void;
  readonly #now: () => number;
  #timer: ReturnType<typeof setInterval> | null = null;
  #lastTick = 0;
  /** Messages that were loaded and whose time has not come, by rising sequence. */
  #coming: MapMessage[] = [];
  #lastSequence = 0;
  #loadedTo = 0;
  #isLoading = false;
  /** Counts jumps, so that the answer to an older one is dropped. */
  #jump = 0;

  constructor(parts: PlayerParts) {
    this.#api = parts.api;
    this.#store = parts.store;
    this.#feed = parts.feed;
    this.#scene = parts.scene;
    this.#announce = parts.announce;
    this.#now = parts.now;
  }

  /** Show the moment `time`, in milliseconds since 1970. */
  async jump(time: number): Promise<void> {
    const jump = ++this.#jump;
    this.#store.time.value = time;
    const page = await this.#load({ to: iso(time), limit: PAGE });
    if (page === null || jump !== this.#jump) return;
    this.#coming = [];
    this.#lastSequence = page.at(-1)?.sequence ?? 0;
    this.#loadedTo = time;
    this.#store.messages.value = page;
    this.#scene.replaceMessages(page, time, this.#window());
  }

  /** Follow the present. */
  live(): void {
    this.#jump++;
    this.pause();
    this.#store.time.value = null;
    this.#feed.showLatest();
    this.#scene.replaceMessages(this.#feed.latest, this.#now());
  }

  async play(): Promise<void> {
    if (this.#timer !== null) return;
    if (this.#store.time.value === null) await this.jump(this.#now() - 60 * 60_000);
    this.#store.playing.value = true;
    this.#lastTick = performance.now();
    this.#timer = setInterval(() => { this.tick(performance.now()); }, TICK_MILLISECONDS);
  }

  pause(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#store.playing.value = false;
  }

  toggle(): void {
    if (this.#store.playing.value) this.pause();
    else void this.play();
  }

  setSpeed(step: 1 | -1): number {
    const index = SPEEDS.indexOf(this.#store.speed.value) + step;
    this.#store.speed.value = SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, index))] ?? 60;
    return this.#store.speed.value;
  }

  /** Move on by the time that passed since the last call; `now` is in milliseconds of any clock. */
  tick(now: number): void {
    const { time, speed } = this.#store;
    if (time.value === null) return;
    const passed = (now - this.#lastTick) * speed.value;
    this.#lastTick = now;
    // Never pass the end of what was loaded: messages would be left out.
    const next = Math.min(time.value + passed, Math.max(this.#loadedTo, time.value));
    if (next >= this.#now()) {
      this.live();
      return;
    }
    const due = this.#takeDue(next);
    batch(() => {
      time.value = next;
      if (due.length > 0) this.#store.messages.value = [...this.#store.messages.value, ...due].slice(-KEPT_MESSAGES);
    });
    this.#scene.addMessages(due, next, this.#window());
    void this.#loadAhead(next);
  }

  #takeDue(time: number): MapMessage[] {
    const index = this.#coming.findIndex((message) => Date.parse(message.at) > time);
    return this.#coming.splice(0, index < 0 ? this.#coming.length : index);
  }

  async #loadAhead(time: number): Promise<void> {
    const to = time + AHEAD_SECONDS * 1000 * this.#store.speed.value;
    if (this.#isLoading || this.#loadedTo >= (time + to) / 2) return;
    this.#isLoading = true;
    const jump = this.#jump;
    try {
      const after = this.#lastSequence === 0 ? { from: iso(time) } : { after: this.#lastSequence };
      const page = await this.#load({ ...after, to: iso(to), limit: PAGE });
      if (page === null || jump !== this.#jump) return;
      this.#coming.push(...page);
      this.#lastSequence = page.at(-1)?.sequence ?? this.#lastSequence;
      const last = page.at(-1);
      this.#loadedTo = last !== undefined && page.length === PAGE ? Date.parse(last.at) : to;
    } finally {
      this.#isLoading = false;
    }
  }

  async #load(parameters: { from?: string; to: string; after?: number; limit: number }): Promise<MapMessage[] | null> {
    try {
      return (await this.#api.messages(parameters)).messages;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.pause();
      this.#announce(error.message);
      return null;
    }
  }

  /** The faster, the longer messages stay on the map: at least two seconds of playing. */
  #window(): number {
    return Math.max(WINDOW, this.#store.playing.value ? 2000 * this.#store.speed.value : 0);
  }
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
