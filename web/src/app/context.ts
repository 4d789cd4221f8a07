import type { Api } from "../api/client.ts";
import type { MapSettings } from "../api/types.ts";
import type { MapView } from "../map/view.ts";
import type { Store } from "./store.ts";

/** All that a panel needs. */
export interface AppContext {
  api: Api;
  map: MapView;
  store: Store;
  settings: MapSettings;
  /** Say a sentence to screen readers, and show it for a few seconds. */
  announce: (text: string) => void;
}
