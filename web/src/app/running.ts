/** A page that is up: the feed, the scene, clicks, shortcuts and the permalink, tied together. */
import { effect } from "@preact/signals";
import type { Hit } from "../map/view.ts";
import type { AppContext } from "./context.ts";
import { Feed } from "./feed.ts";
import { formatPermalink, parsePermalink, type Permalink } from "./permalink.ts";
import { Player } from "./player.ts";
import { Scene } from "./scene.ts";
import { addShortcuts } from "./shortcuts.ts";
import type { Selection } from "./store.ts";
import { nextTheme } from "./theme.ts";

export interface Running {
  context: AppContext;
  /** The server's time: messages have its times, and this computer's clock may differ. */
  now: () => number;
  feed: Feed;
  player: Player;
  fitAll: () => void;
  stop: () => void;
}

const EXPIRY_MILLISECONDS = 1000;
const HASH_MILLISECONDS = 300;
const LARGEST_DELAY = 5000; // milliseconds; a smaller difference of clocks may be the time that an answer took

export function run(context: AppContext, link: Permalink, actions: { openHelp: () => void }): Running {
  const { api, map, store, settings, announce } = context;
  const ahead = Date.parse(settings.now) - Date.now();
  const now = () => Date.now() + (Math.abs(ahead) > LARGEST_DELAY ? ahead : 0);
  const scene = new Scene(map, store, settings);
  const feed = new Feed({
    api,
    store,
    settings,
    announce,
    onChange: ({ changed, removed, messages }) => {
      if (changed.length + removed.length > 0) scene.changeSubscriptions(changed, removed);
      if (messages.length > 0 && store.time.value === null) scene.addMessages(messages, now());
    },
  });
  const player = new Player({ api, store, feed, scene, announce, now });
  const fitAll = () => { fitEverything(context); };
  applyLink(context, player, link); // before followHash writes the address
  const stops = [
    () => { feed.stop(); },
    () => { player.pause(); },
    followSelection(context, scene),
    followLayers(context),
    followClicks(context, scene),
    followHash(context, player),
    keepExpiring(context, scene, now),
    addShortcuts({ context, player, fitAll, openHelp: actions.openHelp, nextTheme }),
  ];
  void feed.start();
  return {
    context,
    now,
    feed,
    player,
    fitAll,
    stop: () => {
      for (const stop of stops) stop();
      map.destroy();
    },
  };
}

/** Show what an address says. */
function applyLink({ map, store }: AppContext, player: Player, { view, time, selection, panel }: Permalink): void {
  if (view !== null) {
    const [lng, lat] = map.project([view.x, view.y]);
    map.maplibre.jumpTo({ center: [lng, lat], zoom: view.zoom });
  }
  if (time !== null) void player.jump(time);
  else if (store.time.value !== null) player.live();
  store.linked.value = view === null ? null : selection;
  store.selection.value = selection;
  store.panel.value = panel ?? (selection === null ? "messages" : "ask");
}

function fitEverything({ map, store, settings }: AppContext): void {
  const boxes = [...store.subscriptions.value.values()].flatMap(({ bounds }) => (bounds === null ? [] : [bounds]));
  const shown = boxes.length > 0 ? boxes : settings.bounds === null ? [] : [settings.bounds];
  map.fit(shown.map(([x1, y1, x2, y2]) => ({ type: "MultiPoint", coordinates: [[x1, y1], [x2, y2]] })));
}

function followSelection({ store }: AppContext, scene: Scene): () => void {
  return effect(() => { scene.select(store.selection.value); });
}

function followLayers({ map, store }: AppContext): () => void {
  const shown = new Map(([...store.visibleLayers.peek()]).map((name) => [name, true]));
  return effect(() => {
    const visible = store.visibleLayers.value;
    for (const [name, was] of shown) {
      const is = visible.has(name === "flashes" ? "subscriptions" : name);
      if (was !== is) map.show(name, is);
      shown.set(name, is);
    }
  });
}

function followClicks({ map, store }: AppContext, scene: Scene): () => void {
  return map.onClick((hits) => {
    if (store.mapMode.value !== "select") return;
    const choices = selectionsOf(hits, store.selection.value, scene);
    const index = choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(store.selection.value));
    // Clicking again takes the next of those that lie above each other.
    store.selection.value = choices[(index + 1) % Math.max(1, choices.length)] ?? null;
    if (store.selection.value !== null) store.panel.value = "ask";
  });
}

/**
 * What a click may select, best first. A subscription that is clicked while a message is selected is asked about
 * together with that message: why does it match, or why not?
 */
export function selectionsOf(hits: Hit[], current: Selection | null, scene: Pick<Scene, "trackOf">): Selection[] {
  const sequence = current !== null && "sequence" in current ? current.sequence : null;
  return hits.flatMap(({ layer, id }): Selection[] => {
    if (layer === "messages") return [{ kind: "message", sequence: Number(id) }];
    if (layer === "tracks") {
      const found = scene.trackOf(id);
      return found === null ? [] : [{ kind: "track", attribute: found.attribute, id: found.id }];
    }
    if (layer !== "subscriptions") return [];
    return [sequence === null ? { kind: "subscription", key: id } : { kind: "match", key: id, sequence }];
  });
}

/** Keep the address at what is shown, and follow it when the user changes it or goes back. */
function followHash(context: AppContext, player: Player): () => void {
  const { map, store } = context;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const write = (..._changes: unknown[]) => {
    clearTimeout(timer);
    const { lng, lat } = map.maplibre.getCenter();
    const [x, y] = map.unproject([lng, lat]);
    const time = store.playing.peek() ? null : store.time.peek();
    const link = { view: { x, y, zoom: map.maplibre.getZoom() }, time, selection: store.selection.peek(), panel: store.panel.peek() };
    history.replaceState(null, "", formatPermalink(link));
  };
  const writeSoon = (..._changes: unknown[]) => {
    clearTimeout(timer);
    timer = setTimeout(write, HASH_MILLISECONDS);
  };
  // Not `location.hash`: a write that was due may have replaced the new address before this event came.
  const read = (event: HashChangeEvent) => {
    clearTimeout(timer);
    applyLink(context, player, parsePermalink(new URL(event.newURL).hash));
  };
  // A choice is in the address at once, so that a reload finds it; the view and the time change many times a second.
  const stops = [
    effect(() => { write(store.selection.value, store.panel.value); }),
    effect(() => { writeSoon(store.playing.value || store.time.value); }),
  ];
  map.maplibre.on("moveend", writeSoon);
  addEventListener("hashchange", read);
  return () => {
    for (const stop of stops) stop();
    clearTimeout(timer);
    removeEventListener("hashchange", read);
  };
}

function keepExpiring({ store }: AppContext, scene: Scene, now: () => number): () => void {
  const timer = setInterval(() => {
    if (store.time.value === null) scene.expire(now());
  }, EXPIRY_MILLISECONDS);
  return () => { clearInterval(timer); };
}
