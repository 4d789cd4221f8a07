/**
 * From the server into the store: pages of subscriptions and messages first, then the live stream. Events are
 * collected and applied together at most every FLUSH_MILLISECONDS, in an animation frame, so that a hundred messages a
 * second cost a few short tasks and not a hundred renderings.
 */
import { type Api, ApiError } from "../api/client.ts";
import type { MapMessage, MapSettings, MapSubscription, MapTransition, SubscriptionPage } from "../api/types.ts";
import { followLive, type LiveEvent } from "./live.ts";
import { KEPT_MESSAGES, KEPT_TRANSITIONS, type Store } from "./store.ts";

const FLUSH_MILLISECONDS = 200;
const PAGE = 1000; // subscriptions
const FIRST_MESSAGES = 500;
const EXACT_SUBSCRIPTIONS = 2000; // with more of them shapes are simplified
const SIMPLIFICATION = 10_000; // the tolerance is the extent of everything divided by this

export interface FeedChanges {
  changed: MapSubscription[];
  removed: string[];
  /** Messages that came since the last call, oldest first. */
  messages: MapMessage[];
}

export interface FeedOptions {
  api: Api;
  store: Store;
  settings: MapSettings;
  /** Called after the store has been changed. */
  onChange(changes: FeedChanges): void;
  announce(text: string): void;
  /** How to wait for the next moment to apply events; tests pass their own. */
  schedule?: (run: () => void) => void;
}

export class Feed {
  readonly #options: FeedOptions;
  readonly #simplify: number | undefined;
  readonly #schedule: (run: () => void) => void;
  #stopStream: () => void = () => undefined;
  #isStopped = false;
  #isScheduled = false;
  #messages: MapMessage[] = [];
  #changes = new Map<string, MapSubscription | null>();
  /** Keys that the stream told of since the first page was asked for: a page may be older than that. */
  readonly #touched = new Set<string>();
  #ring: MapMessage[] = [];
  /** Number of messages that came by the stream since the page was opened. */
  received = 0;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#schedule = options.schedule ?? inNextFrame;
    this.#simplify = simplificationOf(options.settings);
  }

  /** The latest messages, oldest first, whatever moment the page shows. */
  get latest(): readonly MapMessage[] {
    return this.#ring;
  }

  /** Open the stream, then load what was there before: nothing is missed between both. */
  async start(): Promise<void> {
    const { api, store } = this.#options;
    this.#stopStream = followLive(
      api,
      {
        event: (event) => { this.#take(event); },
        state: (state, reason) => {
          store.connection.value = state;
          if (state === "ended") this.#options.announce(`The stream has ended: ${reason ?? "no reason given"}`);
        },
      },
      this.#simplify === undefined ? {} : { simplify: this.#simplify },
    );
    await Promise.all([this.#loadMessages(), this.#loadSubscriptions()]);
  }

  stop(): void {
    this.#isStopped = true;
    this.#stopStream();
  }

  /** Show the present again after a moment of the past. */
  showLatest(): void {
    this.#options.store.messages.value = this.#ring.slice();
  }

  async #loadMessages(): Promise<void> {
    const page = await this.#try(() => this.#options.api.messages({ limit: FIRST_MESSAGES, ...this.#tolerance() }));
    if (page === null) return;
    this.#messages = [...page.messages, ...this.#messages];
    this.#flushSoon();
  }

  /** Load all pages; returns the keys found, or null if the server's tiles show them or a page failed. */
  async #loadSubscriptions(): Promise<Set<string> | null> {
    const { api, settings } = this.#options;
    if (settings.subscriptions > settings.tiles_from) return null;
    const keys = new Set<string>();
    this.#touched.clear();
    let after: string | null = null;
    do {
      const from: string | null = after;
      const page: SubscriptionPage | null = await this.#try(() => api.subscriptions({ after: from, limit: PAGE, ...this.#tolerance() }));
      if (page === null || this.#isStopped) return null;
      for (const one of page.subscriptions) {
        keys.add(one.key);
        if (!this.#touched.has(one.key)) this.#changes.set(one.key, one);
      }
      this.#flushSoon();
      after = page.next;
    } while (after !== null);
    return keys;
  }

  #tolerance(): { simplify?: number } {
    return this.#simplify === undefined ? {} : { simplify: this.#simplify };
  }

  async #try<T>(ask: () => Promise<T>): Promise<T | null> {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#options.announce(error.message);
      return null;
    }
  }

  #take(event: LiveEvent): void {
    if (event.name === "message") {
      this.received += 1;
      this.#messages.push(event.data);
      // A hidden tab applies nothing: keep no more than would be shown.
      if (this.#messages.length > 2 * KEPT_MESSAGES) this.#messages = this.#messages.slice(-KEPT_MESSAGES);
    } else if (event.name === "subscription") {
      this.#touched.add(event.data.key);
      this.#changes.set(event.data.key, event.data.subscription);
    } else if (event.name === "lost") {
      if (event.data.what === "messages") void this.#loadMessages();
      else void this.#loadAgain();
    }
    this.#flushSoon();
  }

  /** Load all subscriptions; those that are not there any more go. */
  async #loadAgain(): Promise<void> {
    const before = [...this.#options.store.subscriptions.value.keys()];
    const found = await this.#loadSubscriptions();
    if (found === null) return;
    for (const key of before) if (!found.has(key) && !this.#touched.has(key)) this.#changes.set(key, null);
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#isScheduled || this.#isStopped) return;
    this.#isScheduled = true;
    this.#schedule(() => {
      this.#isScheduled = false;
      if (!this.#isStopped) this.#flush();
    });
  }

  #flush(): void {
    const { store } = this.#options;
    const [messages, changes] = [this.#newMessages(), this.#changes];
    this.#messages = [];
    this.#changes = new Map();
    const changed = [...changes.values()].filter((one) => one !== null);
    const removed = [...changes].filter(([, one]) => one === null).map(([key]) => key);
    if (changes.size > 0) {
      const all = new Map(store.subscriptions.value);
      for (const one of changed) all.set(one.key, one);
      for (const key of removed) all.delete(key);
      store.subscriptions.value = all;
    }
    if (messages.length > 0) {
      this.#ring = [...this.#ring, ...messages].slice(-KEPT_MESSAGES);
      if (store.time.value === null) this.showLatest();
      const transitions = messages.flatMap((message) => message.transitions);
      if (transitions.length > 0) store.transitions.value = latest(store.transitions.value, transitions);
    }
    this.#options.onChange({ changed, removed, messages });
  }

  /** Messages that are not in the ring yet: pages and the stream may both bring one. */
  #newMessages(): MapMessage[] {
    const last = this.#ring.at(-1)?.sequence ?? 0;
    const found = new Map<number, MapMessage>();
    for (const message of this.#messages) if (message.sequence > last) found.set(message.sequence, message);
    return [...found.values()].sort((a, b) => a.sequence - b.sequence);
  }
}

function latest(kept: readonly MapTransition[], added: MapTransition[]): MapTransition[] {
  return [...kept, ...added].slice(-KEPT_TRANSITIONS);
}

/** Tolerance of shapes in the user's units; undefined if they are to be exact. */
export function simplificationOf({ subscriptions, bounds }: MapSettings): number | undefined {
  if (subscriptions <= EXACT_SUBSCRIPTIONS || bounds === null) return undefined;
  return Math.max(bounds[2] - bounds[0], bounds[3] - bounds[1]) / SIMPLIFICATION;
}

/** Run in an animation frame, FLUSH_MILLISECONDS from now. A hidden tab has no frames and waits until it is shown. */
function inNextFrame(run: () => void): void {
  setTimeout(() => requestAnimationFrame(run), FLUSH_MILLISECONDS);
}
