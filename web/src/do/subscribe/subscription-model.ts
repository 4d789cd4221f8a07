/** The state of the form that makes or changes a subscription: filter, key, subscriber and events. */

import { signal } from "@preact/signals";
import type { Api } from "../../api/client.ts";
import { ApiError } from "../../api/client.ts";
import type { AskedKind, Subscription, SubscriptionRequest, TrackKind, TrialAnswer } from "../../api/types.ts";
import { problemOf, type FieldProblem } from "../ui/problems.ts";
import { FilterEditor } from "./filter-editor.ts";

export const FIELDS = ["key", "subscriber", "filter", "track", "on", "exit_buffer", "exit_after", "time", "ttl"] as const;
export type SubscriptionField = (typeof FIELDS)[number];
export type PlainKind = Exclude<TrackKind, "dwell">;

export const PLAIN_KINDS: readonly { kind: PlainKind; label: string }[] = [
  { kind: "enter", label: "enters the region" },
  { kind: "exit", label: "leaves it" },
  { kind: "change", label: "changes its relation to it" },
  { kind: "cross", label: "crosses it between two positions" },
];

/** What is typed beside the filter; empty text is left out of the request. */
export interface SubscriptionFields {
  key: string;
  subscriber: string;
  /** "match": every message that matches; "track": what happens to tracked objects. */
  hears: "match" | "track";
  track: string;
  kinds: PlainKind[];
  /** A duration such as 5m; empty for none. */
  dwell: string;
  exitBuffer: string;
  exitAfter: string;
  time: string;
  ttl: string;
}

export function newFields(): SubscriptionFields {
  return {
    key: "",
    subscriber: "",
    hears: "match",
    track: "",
    kinds: ["enter", "exit"],
    dwell: "",
    exitBuffer: "",
    exitAfter: "",
    time: "",
    ttl: "",
  };
}

/** How far back a dry run looks. */
export const TRIED_MILLISECONDS = 3_600_000;
export const MOST_SHOWN = 1_000;

const KEY_IN_USE = 412; // the status of a new subscription whose key another one has

type SubscriptionApi = Pick<Api, "filter" | "putSubscription" | "dryRun" | "storedSubscription">;

export class SubscriptionModel {
  readonly filter: FilterEditor;
  readonly fields = signal<SubscriptionFields>(newFields());
  readonly problem = signal<FieldProblem<SubscriptionField> | null>(null);
  readonly trial = signal<TrialAnswer | null>(null);
  readonly busy = signal<"trying" | "saving" | null>(null);
  /** The key that is in use already, until the person says to replace it. */
  readonly inUse = signal<string | null>(null);
  /** The key of the subscription that is being changed; a new one has none. */
  readonly editing = signal<string | null>(null);
  /** Members of the subscription that is being changed which the form has no fields for. */
  private kept: Partial<SubscriptionRequest> = {};

  private readonly api: SubscriptionApi;

  constructor(api: SubscriptionApi, delay?: number) {
    this.api = api;
    this.filter = new FilterEditor(api, delay);
  }

  change(change: Partial<SubscriptionFields>): void {
    this.fields.value = { ...this.fields.value, ...change };
    this.inUse.value = null;
    this.problem.value = null;
  }

  /** Fill the form with a subscription, to change it. */
  async edit(key: string): Promise<void> {
    this.reset();
    await this.attempt(null, async () => {
      const subscription = await this.api.storedSubscription(key);
      this.editing.value = key;
      this.fields.value = fieldsOf(subscription);
      this.kept = keptMembers(subscription);
      await this.filter.load(subscription.filter);
    });
  }

  reset(): void {
    this.fields.value = newFields();
    this.kept = {};
    this.filter.reset();
    this.trial.value = null;
    this.editing.value = null;
    this.inUse.value = null;
    this.problem.value = null;
  }

  /** Match the filter against the last hour. Return the answer, or null if there is a problem. */
  async tryFilter(now: number = Date.now()): Promise<TrialAnswer | null> {
    this.trial.value = null;
    const answer = await this.attempt("trying", async () => {
      if (!(await this.filter.isReady())) return null;
      const since = new Date(now - TRIED_MILLISECONDS).toISOString();
      const request = { filter: this.filter.text.value, since, limit: MOST_SHOWN, ...trackMembers(this.fields.value) };
      return this.api.dryRun(request);
    });
    this.trial.value = answer;
    return answer;
  }

  /** Subscribe. Return the key, or null if there is a problem or the key is in use (`inUse`). */
  async subscribe(replace = false): Promise<string | null> {
    const fields = this.fields.value;
    const key = fields.key.trim();
    const missing = missingField(fields);
    if (missing !== null) {
      this.problem.value = missing;
      this.filter.showsMissing.value = true;
      return null;
    }
    return this.attempt("saving", async () => {
      if (!(await this.filter.isReady())) return null;
      const isEdited = key === this.editing.value;
      const request = { ...(isEdited ? this.kept : {}), ...requestOf(fields, this.filter.text.value) };
      try {
        await this.api.putSubscription(key, request, !replace && !isEdited);
      } catch (error) {
        if (!(error instanceof ApiError && error.status === KEY_IN_USE)) throw error;
        this.inUse.value = key;
        return null;
      }
      this.inUse.value = null;
      return key;
    });
  }

  private async attempt<T>(busy: "trying" | "saving" | null, work: () => Promise<T>): Promise<T | null> {
    this.problem.value = null;
    this.busy.value = busy;
    try {
      return await work();
    } catch (error) {
      this.problem.value = problemOf(error, FIELDS);
      return null;
    } finally {
      this.busy.value = null;
    }
  }
}

/** Return the first field that must be filled in before the server is asked. */
function missingField(fields: SubscriptionFields): FieldProblem<SubscriptionField> | null {
  if (fields.key.trim() === "") return { field: "key", message: "Give the subscription a key." };
  if (fields.subscriber.trim() === "") return { field: "subscriber", message: "Name who is told." };
  if (fields.hears === "match") return null;
  if (fields.track.trim() === "") return { field: "track", message: "Name the attribute that tells objects apart." };
  if (fields.kinds.length === 0 && fields.dwell.trim() === "") return { field: "on", message: "Choose at least one event." };
  return null;
}

/** Return the members of a request that say which events of tracked objects are told. */
export function trackMembers(fields: SubscriptionFields): { track?: string; on?: AskedKind[] } {
  if (fields.hears === "match") return {};
  const dwell = fields.dwell.trim();
  const on: AskedKind[] = [...fields.kinds, ...(dwell === "" ? [] : [{ dwell }])];
  return { track: fields.track.trim(), on };
}

export function requestOf(fields: SubscriptionFields, filter: string): SubscriptionRequest {
  const request: SubscriptionRequest = { subscriber: fields.subscriber.trim(), filter, ...trackMembers(fields) };
  if (fields.ttl.trim() !== "") request.ttl = Number(fields.ttl);
  if (fields.hears === "match") return request;
  if (fields.exitBuffer.trim() !== "") request.exit_buffer = Number(fields.exitBuffer);
  if (fields.exitAfter.trim() !== "") request.exit_after = fields.exitAfter.trim();
  if (fields.time.trim() !== "") request.time = fields.time.trim();
  return request;
}

function fieldsOf(subscription: Subscription): SubscriptionFields {
  const kinds = typeof subscription.on === "string" ? [] : subscription.on;
  const dwell = kinds.find((kind): kind is { dwell: string | number } => typeof kind === "object");
  const isTracking = subscription.track !== undefined;
  return {
    ...newFields(),
    key: subscription.key,
    subscriber: subscription.subscriber,
    hears: isTracking ? "track" : "match",
    track: subscription.track ?? "",
    kinds: isTracking ? kinds.filter((kind) => typeof kind === "string") : newFields().kinds,
    dwell: dwell === undefined ? "" : String(dwell.dwell),
    exitBuffer: subscription.exit_buffer ? String(subscription.exit_buffer) : "",
    exitAfter: subscription.exit_after === undefined ? "" : String(subscription.exit_after),
    time: subscription.time ?? "",
  };
}

function keptMembers(subscription: Subscription): Partial<SubscriptionRequest> {
  const { expires, paused, first, late } = subscription;
  return {
    ...(expires === null ? {} : { expires }),
    ...(paused ? { paused } : {}),
    ...(first === "silent" ? { first } : {}),
    ...(late === "arrival" ? { late } : {}),
  };
}
