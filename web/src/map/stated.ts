/**
 * Which features of the map have a state. MapLibre keeps an entry for every feature whose state is removed, also if it
 * had none, and goes through all of them for every tile: with a hundred messages a second these entries never end.
 */
export class StatedFeatures {
  readonly #ids = new Map<string, Set<string>>(); // by layer

  /** A feature gets a state. */
  add(layer: string, id: string): void {
    const ids = this.#ids.get(layer) ?? new Set();
    this.#ids.set(layer, ids.add(id));
  }

  /** Forget a feature; true if it had a state. */
  remove(layer: string, id: string): boolean {
    return this.#ids.get(layer)?.delete(id) ?? false;
  }

  /** Forget all features of a layer. */
  clear(layer: string): void {
    this.#ids.delete(layer);
  }
}
