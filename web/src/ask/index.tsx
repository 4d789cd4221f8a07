/** The panel that answers why. */

import "./ask.css";

export { AskPanel } from "./AskPanel.tsx";
