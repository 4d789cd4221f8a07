/** One method per route of the server. Every failure is an ApiError with the server's own words. */
import type {
  Counts,
  Deleted,
  ExplainRequest,
  FilterAnswer,
  FilterRequest,
  MapExplanation,
  MapSettings,
  MatchedKeys,
  MessagePage,
  NetworkView,
  ProblemDetails,
  PublishedBatch,
  PublishedMessage,
  Subscriber,
  SubscriberList,
  Subscription,
  SubscriptionDetail,
  SubscriptionPage,
  SubscriptionRequest,
  TrackPage,
  TrialAnswer,
  TrialRequest,
} from "./types.ts";

export class ApiError extends Error {
  override name = "ApiError";
  /** HTTP status; 0 if the server could not be reached. */
  readonly status: number;
  readonly problem: ProblemDetails | null;

  constructor(message: string, status: number, problem: ProblemDetails | null = null) {
    super(message);
    this.status = status;
    this.problem = problem;
  }
}

type Parameters = Record<string, string | number | null | undefined>;

export class Api {
  /** Where the server is, ending in "/"; requests go to addresses relative to it. */
  readonly base: string;
  readonly #key: () => string | null;

  /** `key` returns the API key to send, or null; it travels in a header and never in an address. */
  constructor(base: string, key: () => string | null) {
    this.base = base;
    this.#key = key;
  }

  /** Headers that a request of this user needs. */
  headers(): Record<string, string> {
    const key = this.#key();
    return key === null ? {} : { Authorization: `Bearer ${key}` };
  }

  settings(): Promise<MapSettings> {
    return this.#get("map/settings");
  }

  subscriptions(parameters: { after?: string | null; limit?: number; simplify?: number } = {}): Promise<SubscriptionPage> {
    return this.#get("map/subscriptions", parameters);
  }

  subscription(key: string, parameters: { matches?: number; simplify?: number } = {}): Promise<SubscriptionDetail> {
    return this.#get(`map/subscriptions/${encodeURIComponent(key)}`, parameters);
  }

  messages(
    parameters: {
      from?: string;
      to?: string;
      after?: number;
      before?: number;
      limit?: number;
      simplify?: number;
    } = {},
  ): Promise<MessagePage> {
    return this.#get("map/messages", parameters);
  }

  /** A page of the keys of all subscriptions that a message matched. */
  matched(sequence: number, parameters: { after?: number; limit?: number } = {}): Promise<MatchedKeys> {
    return this.#get(`map/messages/${sequence}/matched`, parameters);
  }

  counts(parameters: { from: string; to: string; step: number }): Promise<Counts> {
    return this.#get("map/counts", parameters);
  }

  tracks(parameters: { limit?: number } = {}): Promise<TrackPage> {
    return this.#get("map/tracks", parameters);
  }

  explain(request: ExplainRequest): Promise<MapExplanation> {
    return this.#send("POST", "map/explain", request);
  }

  filter(request: FilterRequest): Promise<FilterAnswer> {
    return this.#send("POST", "map/filter", request);
  }

  /** A subscription with all members that it was put with. */
  storedSubscription(key: string): Promise<Subscription> {
    return this.#get(`subscriptions/${encodeURIComponent(key)}`);
  }

  /** Put a subscription. A new one is refused with 412 if the key is in use. */
  putSubscription(key: string, request: SubscriptionRequest, isNew: boolean): Promise<Subscription> {
    const headers = { "Content-Type": "application/json", ...(isNew ? { "If-None-Match": "*" } : {}) };
    return this.#request("PUT", `subscriptions/${encodeURIComponent(key)}`, headers, JSON.stringify(request));
  }

  pauseSubscription(key: string, paused: boolean): Promise<Subscription> {
    return this.#send("PATCH", `subscriptions/${encodeURIComponent(key)}`, { paused });
  }

  deleteSubscription(key: string): Promise<Deleted> {
    return this.#send("DELETE", `subscriptions/${encodeURIComponent(key)}`);
  }

  publish(message: Record<string, unknown>): Promise<PublishedMessage> {
    return this.#send("POST", "messages", message);
  }

  /** Publish a body as it is, such as a CAP alert, under its media type. */
  publishBody(body: string, mediaType: string): Promise<PublishedMessage | PublishedBatch> {
    return this.#request("POST", "messages", { "Content-Type": mediaType }, body);
  }

  dryRun(request: TrialRequest): Promise<TrialAnswer> {
    return this.#send("POST", "dry-run", request);
  }

  network(): Promise<NetworkView> {
    return this.#get("network");
  }

  subscribers(parameters: { after?: string; limit?: number } = {}): Promise<SubscriberList> {
    return this.#get("subscribers", parameters);
  }

  subscriber(name: string): Promise<Subscriber> {
    return this.#get(`subscribers/${encodeURIComponent(name)}`);
  }

  #get<T>(path: string, parameters: Parameters = {}): Promise<T> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null && value !== undefined) query.set(name, String(value));
    }
    const text = query.toString();
    return this.#request("GET", text === "" ? path : `${path}?${text}`, {}, null);
  }

  #send<T>(method: string, path: string, body?: unknown): Promise<T> {
    if (body === undefined) return this.#request(method, path, {}, null);
    return this.#request(method, path, { "Content-Type": "application/json" }, JSON.stringify(body));
  }

  async #request<T>(method: string, path: string, headers: Record<string, string>, body: string | null): Promise<T> {
    const options = { method, headers: { ...this.headers(), ...headers }, body, cache: "no-store" } as const;
    let answer: Response;
    try {
      answer = await fetch(this.base + path, options);
    } catch {
      throw new ApiError("The server cannot be reached.", 0);
    }
    if (!answer.ok) throw await errorOf(answer);
    return (await answer.json()) as T;
  }
}

/** The error that an answer describes: a problem document if it is one, else its status. */
export async function errorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text().catch(() => "");
  try {
    const problem = JSON.parse(text) as ProblemDetails;
    if (typeof problem.detail === "string") return new ApiError(problem.detail, answer.status, problem);
  } catch {
    // Not JSON: a proxy's page. The status says enough.
  }
  return new ApiError(`The server answered ${answer.status} ${answer.statusText}.`, answer.status);
}
