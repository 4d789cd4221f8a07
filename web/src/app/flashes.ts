/**
 * Subscriptions that messages matched are bright for a moment. They are drawn a second time, as a layer of their own: a
 * feature state would send the vertices of all subscriptions in view to the graphics card again, 11 MB for 10,000.
 */
import type { MapSettings, MapSubscription } from "../api/types.ts";
import type { Feature, MapView } from "../map/view.ts";
import type { Store } from "./store.ts";

export const FLASH_MILLISECONDS = 1200;
const MOST = 300; // at a time

export class Flashes {
  readonly #map: MapView;
  readonly #store: Store;
  readonly #isTiled: boolean;
  readonly #draw: (subscription: MapSubscription) => Feature | null;
  readonly #ends = new Map<string, number>(); // key to when its flash ends, by rising time
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(map: MapView, store: Store, settings: MapSettings, draw: (subscription: MapSubscription) => Feature | null) {
    [this.#map, this.#store, this.#draw] = [map, store, draw];
    this.#isTiled = settings.subscriptions > settings.tiles_from;
  }

  /** Brighten these subscriptions; those that are bright stay so for longer. */
  add(keys: Iterable<string>): void {
    const [added, end]: [string[], number] = [[], performance.now() + FLASH_MILLISECONDS];
    for (const key of keys) {
      const isBright = this.#ends.delete(key);
      if (!isBright && this.#ends.size >= MOST) continue;
      this.#ends.set(key, end);
      if (!isBright) added.push(key);
    }
    this.#show(added, []);
    if (this.#ends.size > 0 && this.#timer === null) this.#endIn(FLASH_MILLISECONDS);
  }

  /** End all flashes whose time is over together: one update of the map, not one for each. */
  #end(): void {
    const now = performance.now();
    const ended = [...this.#ends].filter(([, end]) => end <= now).map(([key]) => key);
    for (const key of ended) this.#ends.delete(key);
    this.#show([], ended);
    const [next] = this.#ends.values();
    this.#timer = null;
    if (next !== undefined) this.#endIn(next - now);
  }

  #endIn(milliseconds: number): void {
    this.#timer = setTimeout(() => { this.#end(); }, milliseconds);
  }

  #show(added: string[], ended: string[]): void {
    if (this.#isTiled) {
      // The page has no shapes of its own: the server's tiles have them.
      for (const key of added) this.#map.setState("subscriptions", key, { flashing: true });
      for (const key of ended) this.#map.setState("subscriptions", key, { flashing: false });
      return;
    }
    const all = this.#store.subscriptions.value;
    const features = added.map((key) => all.get(key)).flatMap((one) => (one === undefined ? [] : (this.#draw(one) ?? [])));
    this.#map.update("flashes", features, ended);
  }
}
