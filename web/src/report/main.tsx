/** The page of a report: fills the place of the map and the list; all other content is in the page already. */
import { render } from "preact";
import { followTheme } from "../app/theme.ts";
import { Chunks, type ChunkScope } from "./chunks.ts";
import { Explore } from "./explore.tsx";
import type { Header } from "./format.ts";
import "./report.css";

followTheme();
const place = document.getElementById("explore");
const data = document.getElementById("report-data");
if (place !== null && data !== null) {
  const header = JSON.parse(data.textContent) as Header;
  place.replaceChildren();
  render(<Explore header={header} chunks={new Chunks(header, window as ChunkScope)} />, place);
}
