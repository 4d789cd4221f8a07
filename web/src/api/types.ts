/**
 * Answers of the server's routes, as JSON. The routes under `/map` are made for the map; the others are those of
 * docs/serve.md. Times are ISO 8601 text in UTC. Every text may hold any character: show it as text, never as HTML.
 */

/** xmin, ymin, xmax, ymax. */
export type Box = [number, number, number, number];

export interface Tiles {
  url: string;
  attribution: string;
}

/**
 * Plain coordinates on the square of the Mercator projection: (x, y) is its centre, `span` units its side. A point
 * (px, py) lies at (0.5 + (px - x) / span, 0.5 - (py - y) / span) of the square, counted from its upper left corner.
 */
export interface Plane {
  x: number;
  y: number;
  span: number;
}

/** `GET /map/settings`: no key is needed; with one it tells what that key may do. */
export interface MapSettings {
  title: string;
  tiles: Tiles | null;
  /** Coordinates are no degrees: show a grid in place of a base map. */
  plain: boolean;
  /** Given if `plain`. Pass it to tiles of subscriptions as `plane=x,y,span`. */
  plane: Plane | null;
  /** Of the subscriptions and the latest messages of the tenant; null if there are none, or a key is needed. */
  bounds: Box | null;
  /** This caller may change nothing. */
  read_only: boolean;
  demo: boolean;
  version: string;
  /** A key is needed to see anything: none was sent, and the map is not public. */
  needs_key: boolean;
  tenant: string | null;
  /** Some of publish, subscribe, link, admin; empty for a public screen. */
  scopes: string[];
  /** What a public screen is shown besides geometry: some of filters, attributes, subscribers. All with a key. */
  shows: string[];
  /** Number of subscriptions of the tenant; use tiles past `tiles_from`. */
  subscriptions: number;
  tiles_from: number;
  /** Attributes that name tracked objects. */
  tracks: string[];
  /** Sequence numbers of the messages that are kept; the log is empty if newest < oldest. */
  oldest: number;
  newest: number;
  now: string;
}

export type RelationName =
  | "disjoint"
  | "meets"
  | "overlaps"
  | "equals"
  | "inside"
  | "covered-by"
  | "contains"
  | "covers";

/** A region or point that a filter asks about. */
export interface SubscriptionShape {
  attribute: string;
  /** The operator as CQL2 writes it, such as S_INTERSECTS; RELATION for a set of relations without a name. */
  relation: string;
  /** `relation` is negated: the message must not have it. */
  negated: boolean;
  /** The relations of the message's value to `geometry` that satisfy the constraint (negation applied). */
  relations: RelationName[];
  geometry: GeoJSON.Geometry;
}

export type TrackKind = "enter" | "exit" | "change" | "cross" | "dwell";
export type AskedKind = Exclude<TrackKind, "dwell"> | { dwell: string | number };

/** An item of `GET /map/subscriptions`, and of events. */
export interface MapSubscription {
  key: string;
  /** null if a public screen is not shown subscribers. */
  subscriber: string | null;
  /** As it was written: CQL2 text or JSON; null if a public screen is not shown filters. */
  filter: string | Record<string, unknown> | null;
  paused: boolean;
  /** "match", or the kinds of events of a subscription that tracks objects. */
  on: string | AskedKind[];
  /** The attribute that names tracked objects. */
  track: string | null;
  applies_from: number;
  created: string;
  expires: string | null;
  shapes: SubscriptionShape[];
  /** The filter without its shapes, as CQL2 text; empty if there is nothing else, null if filters are not shown. */
  conditions: string | null;
  /** Box of all shapes; null without any. */
  bounds: Box | null;
}

/** `GET /map/subscriptions?after=KEY&limit=N&simplify=D`: by rising key, at most 1,000 (default 200). */
export interface SubscriptionPage {
  subscriptions: MapSubscription[];
  /** `after` of the next page; null on the last one. */
  next: string | null;
}

/** `GET /map/subscriptions/{key}?matches=N&simplify=D`. */
export interface SubscriptionDetail extends MapSubscription {
  /** Messages that its subscriber has not been given yet; null if subscribers are not shown. */
  lag: number | null;
  /** Latest messages that matched it, newest first, found among the latest messages of the log. */
  last: MapMessage[];
  /** How many messages of the log were looked at for `last`, and whether these were all that are kept. */
  examined: number;
  complete: boolean;
}

export interface MessageShape {
  attribute: string;
  geometry: GeoJSON.Geometry;
}

/** An event of a tracked object. */
export interface MapTransition {
  key: string;
  /** The object; null if a public screen is not shown attributes. */
  id: string | number | null;
  kind: TrackKind;
  before: RelationName | null;
  after: RelationName | null;
  time: string;
  /** Why, if no message made it: time, expired, ended, unsubscribed, replaced, expired-subscription. */
  reason?: string;
}

/** An item of `GET /map/messages`, and the data of an event `message`. */
export interface MapMessage {
  sequence: number;
  at: string;
  /** The id that the publisher gave; null if there is none, or a public screen is not shown attributes. */
  id: string | null;
  /** Made by the server to tell of a tracked object (a dwell, an expiry): it has transitions and no shape. */
  own: boolean;
  shapes: MessageShape[];
  /** Other attributes by dotted name; empty if a public screen is not shown attributes. */
  attributes: Record<string, unknown>;
  /** Keys of matching subscriptions, the first 100; not those that track objects: see `transitions`. */
  matched: string[];
  /** How many there are. */
  matches: number;
  /** The first 100. */
  transitions: MapTransition[];
}

/**
 * `GET /map/messages?from=&to=&after=&before=&limit=&simplify=`: `from` and `to` are times (ISO 8601 or seconds since
 * 1970), `after` and `before` sequence numbers. By rising sequence; the latest ones if neither from nor after is given.
 */
export interface MessagePage {
  messages: MapMessage[];
  /** `after` of the next page; null if there is no later message in the range now. */
  next: number | null;
  /** `before` of the page before; null if none is kept. */
  previous: number | null;
  /** False if messages of the range are not kept any more. */
  complete: boolean;
}

/** `GET /map/messages/{sequence}/matched?after=N&limit=M`: all of `matched`; `after` is how many were listed before. */
export interface MatchedKeys {
  matched: string[];
  /** `after` of the next page; null on the last one. */
  next: number | null;
  count: number;
}

/** `GET /map/counts?from=&to=&step=SECONDS`: item k counts messages from `from` + k * step on. */
export interface Counts {
  from: string;
  to: string;
  step: number;
  messages: number[];
  /** Pairs of a message and a subscription, events of tracked objects included. */
  matches: number[];
  /** False if older messages of the range are gone or were too many to count. */
  complete: boolean;
}

/** `GET /map/tracks?limit=N`: objects that are inside of subscriptions now; none if there are too many to list. */
export interface TrackPage {
  inside: { attribute: string; id: string | number | null; key: string; since: string }[];
  /** How many pairs there are in all. */
  count: number;
}

/**
 * Events of `GET /map/events?simplify=D&after=SEQUENCE&token=`. Open the stream first, then load pages, then apply
 * what came meanwhile: nothing is missed. `message` events have ids; send the last one as Last-Event-ID (or `after`)
 * to go on there.
 */
export interface MapEvents {
  /** First event of every stream: later messages follow `newest`. */
  hello: { newest: number; now: string };
  message: MapMessage;
  subscription: SubscriptionChange;
  /** What this client was not told: load it again. */
  lost: Lost;
  /** The stream ends for good, such as when its key was revoked. */
  end: { reason: string };
}

export interface SubscriptionChange {
  change: "put" | "deleted";
  key: string;
  /** As it is now; null if it was deleted. A pause is a put. */
  subscription: MapSubscription | null;
}

export interface Lost {
  what: "messages" | "subscriptions";
  /** slow: this client, or the link to it. many: more came than are shown. gone: retention removed them.
   * resumed: changes of subscriptions while nobody was connected are not told again. */
  reason: "slow" | "many" | "gone" | "resumed";
  /** First and last sequence number of the gap, for messages. */
  from?: number;
  to?: number;
}

/** `POST /map/token`: opens one `/map/events` within `expires_in` seconds, for EventSource. */
export interface MapToken {
  token: string;
  expires_in: number;
  url: string;
}

/** `POST /map/explain`. */
export type ExplainRequest =
  | { key: string; sequence: number }
  /** A message as it would be published: an object, a Feature or a CloudEvent. */
  | { key: string; message: Record<string, unknown> }
  /** A filter that is not subscribed. */
  | { filter: string | Record<string, unknown>; sequence: number }
  | { filter: string | Record<string, unknown>; message: Record<string, unknown> };

export interface ExplainedConstraint {
  attribute: string;
  /** The constraint as CQL2 text. */
  asked: string;
  /** What the message has; null if absent, GeoJSON for geometry. */
  value: unknown;
  /** null: unknown, as the attribute is absent or of another kind. */
  truth: boolean | null;
  /** The relation found of the message's geometry to that of the filter. */
  relation: RelationName | null;
  /** The value and how it relates, in words. */
  reason: string;
  /** Given if the constraint is spatial: what would satisfy it, and the filter's geometry, exact. */
  spatial: {
    operator: string;
    negated: boolean;
    relations: RelationName[];
    asked: GeoJSON.Geometry;
    /** The message's geometry; null if it has none. */
    found: GeoJSON.Geometry | null;
  } | null;
}

export interface ExplainedFilter {
  truth: boolean | null;
  constraints: ExplainedConstraint[];
}

export interface MapExplanation {
  matches: boolean;
  /** One sentence. */
  verdict: string;
  key: string | null;
  subscriber: string | null;
  written: string | null;
  truth: boolean | null;
  /** Which of `filters` is nearest: it matches, or fails in the fewest constraints. */
  nearest: number;
  /** A message matches if one of these is true; a filter is true if all its constraints are. */
  filters: ExplainedFilter[];
  /** For a subscription that tracks objects: is the object inside now? */
  track: { id: string | number | null; inside: boolean; since: string | null } | null;
  /** Why a message of the log did not reach the subscription although its filter is satisfied, or the contrary: it was
   * put, replaced or paused later. null if the answer agrees with the log, or no sequence was given. */
  note: string | null;
}

/** `POST /map/filter`: CQL2 as text or JSON, to both forms. Answered with 200 also if the filter is bad. */
export type FilterRequest = { text: string } | { json: Record<string, unknown> };

export interface FilterAnswer {
  valid: boolean;
  /** Normalised CQL2 text, null if the filter is bad. */
  text: string | null;
  json: Record<string, unknown> | null;
  shapes: SubscriptionShape[];
  conditions: string | null;
  bounds: Box | null;
  /** The filter as OR of ANDs, for a form; `shape` is the place of a spatial constraint in `shapes`, else null. */
  filters: FormConstraint[][];
  problem: FilterProblem | null;
}

export interface FormConstraint {
  attribute: string;
  /** =, <>, <, <=, >, >=, between, in, like, is null, with "not " before it if negated; or the spatial operator. */
  operator: string;
  /** Number, text, boolean, list, GeoJSON, or {timestamp: text}, as in CQL2 JSON. */
  value: unknown;
  casei: boolean;
  accenti: boolean;
  shape: number | null;
  /** The constraint as CQL2 text. */
  text: string;
}

export interface FilterProblem {
  detail: string;
  line?: number;
  column?: number;
  /** What could stand there. */
  expected?: string[];
  /** JSON pointer, of a filter in JSON. */
  path?: string;
}

// --- routes that the map shares with other clients (docs/serve.md) ---

/** `PUT /subscriptions/{key}`. */
export interface SubscriptionRequest {
  subscriber: string;
  filter: string | Record<string, unknown>;
  expires?: string;
  ttl?: number;
  paused?: boolean;
  track?: string;
  on?: AskedKind[];
  exit_buffer?: number;
  exit_after?: string | number;
  time?: string;
  first?: "enter" | "silent";
  late?: "ignore" | "arrival";
}

/** Answer of PUT, GET and PATCH (`{"paused": boolean}`) of `/subscriptions/{key}`. */
export interface Subscription {
  key: string;
  subscriber: string;
  filter: string | Record<string, unknown>;
  on: string | AskedKind[];
  applies_from: number;
  created: string;
  expires: string | null;
  paused: boolean;
  track?: string;
  exit_buffer?: number;
  exit_after?: string | number;
  time?: string;
  first?: string;
  late?: string;
}

/** `DELETE /subscriptions/{key}`. */
export interface Deleted {
  applies_until: number;
}

/** `POST /messages` with one message, 201 or 200. */
export interface PublishedMessage {
  sequence: number;
  duplicate?: boolean;
}

/** `POST /messages` with several. */
export interface PublishedBatch {
  first: number | null;
  last: number | null;
  count: number;
  duplicates: { row: number; sequence: number }[];
  rejected: { row: number; reason: string }[];
  lost: unknown[];
}

/** `POST /dry-run`. */
export interface TrialRequest {
  filter: string | Record<string, unknown>;
  since?: string;
  from?: number;
  limit?: number;
  track?: string;
  on?: AskedKind[];
}

export interface TrialAnswer {
  count: number;
  examined: number;
  from: number;
  to: number;
  since: string | null;
  complete: boolean;
  sample: { sequence: number; at: string; message: Record<string, unknown>; track?: MapTransition }[];
}

/** `GET /subscribers?after=&limit=`. */
export interface SubscriberList {
  subscribers: string[];
  links: { rel: string; href: string }[];
}

/** `GET /subscribers/{name}`. */
export interface Subscriber {
  name: string;
  acknowledged: string | null;
  lag: number;
  oldest_undelivered: number | null;
  oldest_undelivered_age: number | null;
  dropped: number;
  readers: number;
  oldest: number;
  retention: { age?: number; bytes?: number; messages?: number } | null;
}

/** `GET /network`, with a key that has the scope admin. */
export interface NetworkView {
  name: string;
  tenants: {
    tenant: string;
    brokers: string[];
    links: {
      neighbour: string;
      phase: string;
      forwards: number;
      suppresses: number;
      takes: number;
      unacknowledged: number;
      unacknowledged_bytes: number;
      dropped: number;
      behind: string[];
    }[];
    waits_for: string[];
  }[];
  refused: { tenant: string; key: string; reason: string }[];
  calls: {
    url: string;
    tenant: string;
    state: string;
    neighbour: string | null;
    attempts: number;
    reason: string | null;
  }[];
}

/** An error after RFC 9457, with the media type application/problem+json. */
export interface ProblemDetails {
  type: string;
  title: string;
  status: number;
  detail: string;
  line?: number;
  column?: number;
  expected?: string[];
  path?: string;
  attribute?: string;
  row?: number;
  scope?: string;
  retry_after?: number;
  [member: string]: unknown;
}
