/** The map of a report. */
import { effect } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import workerCode from "maplibre-gl/dist/maplibre-gl-worker.mjs?raw";
import { theme } from "../app/theme.ts";
import { createMapView } from "../map/create.ts";
import { boundsOf, planeAround } from "../map/plane.ts";
import type { Feature, MapHost, MapView } from "../map/view.ts";
import { carriedBasemap } from "./basemap.ts";
import { overviewFeatures, shadeOverview } from "./drawing.ts";
import type { Header, SubscriptionLine } from "./format.ts";

const MARGIN = 40; // pixels around what is shown
const DETAILS_WIDTH = 320;
const NARROW = "(max-width: 50rem)"; // as in report.css
type Box = [number, number, number, number];

export interface ReportMap {
  view: MapView;
  /** Show all regions of the overview. */
  showAll: () => void;
  /** Keep the part of the map free that the details of a chosen message cover. */
  leaveRoom: () => void;
  /** Mark a match of the chosen message by its number; null marks none. */
  point: (number: number | null) => void;
}

/** Make the map as soon as the regions of the overview are there. */
export function useReportMap(
  header: Header,
  overview: SubscriptionLine[] | null,
  fail: (error: unknown) => void,
): { host: RefObject<MapHost | null>; map: ReportMap | null } {
  const host = useRef<MapHost>(null);
  const [map, setMap] = useState<ReportMap | null>(null);
  useEffect(() => {
    const element = host.current;
    if (element === null || overview === null) return;
    let end: (() => void) | null = null;
    let isOver = false;
    const make = async () => {
      const made = await makeMap(element, header, overview);
      if (isOver) made.view.destroy();
      else {
        element.contradaView = made.view;
        const stop = effect(() => {
          made.view.setTheme(theme.value);
        });
        end = () => {
          stop();
          made.view.destroy();
        };
        setMap(made);
      }
    };
    make().catch(fail);
    return () => {
      isOver = true;
      end?.();
    };
  }, [header, overview, fail]);
  return { host, map };
}

async function makeMap(host: HTMLElement, header: Header, overview: SubscriptionLine[]): Promise<ReportMap> {
  const features = overviewFeatures(overview);
  const regions = boundsOf(features.map(({ geometry }) => geometry));
  const bounds = regions ?? header.bounds;
  const all = regions === null || header.bounds === null ? bounds : unionOf(regions, header.bounds);
  const view = await createMapView(host, {
    plain: header.plain,
    ...(bounds === null ? {} : { bounds }),
    ...(all === null ? {} : { plane: planeAround(all) }),
    theme: theme.value,
    basemap: carriedBasemap(),
    workerUrl: URL.createObjectURL(new Blob([workerCode], { type: "text/javascript" })),
    label: "Map of subscriptions, and of the chosen message with its matches",
    cooperative: true,
  });
  view.setFeatures("subscriptions", features);
  shadeOverview(view, false);
  return {
    view,
    showAll: () => {
      showAll(view, features);
    },
    leaveRoom: () => {
      view.setPadding({ right: MARGIN + (matchMedia(NARROW).matches ? 0 : DETAILS_WIDTH) });
    },
    point: pointer(view),
  };
}

function unionOf(a: Box, b: Box): Box {
  return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])];
}

function showAll(view: MapView, features: Feature[]): void {
  view.setPadding({ right: MARGIN });
  if (features.length > 0) view.fit(features.map(({ geometry }) => geometry), { animate: false });
}

function pointer(view: MapView): (number: number | null) => void {
  let marked: string | null = null;
  return (number) => {
    if (marked !== null) view.setState("answer", marked, { selected: false });
    marked = number === null ? null : `${number}:0`;
    if (marked !== null) view.setState("answer", marked, { selected: true });
  };
}
