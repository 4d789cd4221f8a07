/** Panels that change things, and those of tracked objects and of the network of brokers. */

import "./do.css";

export { DoPanel } from "./DoPanel.tsx";
export { NetworkPanel } from "./network/NetworkPanel.tsx";
export { TracksPanel } from "./tracks/TracksPanel.tsx";
