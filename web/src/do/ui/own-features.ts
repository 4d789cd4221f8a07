/** Features that one panel puts into a layer which it shares with others: it removes no feature but its own. */

import type { Feature, LayerName, MapView } from "../../map/view.ts";

export class OwnFeatures {
  private readonly map: Pick<MapView, "update">;
  private readonly layer: LayerName;
  private ids: string[] = [];

  constructor(map: Pick<MapView, "update">, layer: LayerName) {
    this.map = map;
    this.layer = layer;
  }

  /** Show these features in place of those shown before. */
  set(features: Feature[]): void {
    const ids = features.map((feature) => feature.id);
    const kept = new Set(ids);
    const removed = this.ids.filter((id) => !kept.has(id));
    if (features.length + removed.length > 0) this.map.update(this.layer, features, removed);
    this.ids = ids;
  }
}
