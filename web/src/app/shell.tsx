/** The page around the map: header, panels, time line, dialogs. */
import { effect, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import workerUrl from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import type { Api } from "../api/client.ts";
import type { MapSettings } from "../api/types.ts";
import { createMapView } from "../map/create.ts";
import { servedBasemap } from "../map/basemap/served.ts";
import type { MapHost, MapOptions } from "../map/view.ts";
import type { AppContext } from "./context.ts";
import { Header } from "./header.tsx";
import { HelpDialog } from "./help.tsx";
import { Panels } from "./panels.tsx";
import { parsePermalink } from "./permalink.ts";
import { type Running, run } from "./running.ts";
import { createStore } from "./store.ts";
import { theme } from "./theme.ts";
import { Timeline } from "./timeline.tsx";

interface ShellProps {
  api: Api;
  settings: MapSettings;
  canSignOut: boolean;
  onSignOut: () => void;
  onSignIn: () => void;
}

const NOTICE_MILLISECONDS = 6000;

export function Shell(props: ShellProps): JSX.Element {
  const host = useRef<MapHost>(null);
  const [running, setRunning] = useState<Running | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const notice = useSignal("");
  const isHelpOpen = useSignal(false);
  const { api, settings } = props;

  useEffect(() => {
    if (host.current === null) return undefined;
    let current: Running | null = null;
    let isGone = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const announce = (text: string) => {
      notice.value = text;
      clearTimeout(timer);
      timer = setTimeout(() => { notice.value = ""; }, NOTICE_MILLISECONDS);
    };
    const start = async (element: MapHost) => {
      const map = await createMapView(element, mapOptions(api, settings));
      if (isGone) {
        map.destroy();
        return;
      }
      element.contradaView = map;
      const context: AppContext = { api, map, store: createStore(), settings, announce };
      current = run(context, parsePermalink(location.hash), { openHelp: () => { isHelpOpen.value = true; } });
      setRunning(current);
    };
    start(host.current).catch((error: unknown) => {
      setFailure(error instanceof Error ? error.message : String(error));
    });
    return () => {
      isGone = true;
      clearTimeout(timer);
      current?.stop();
    };
  }, [api, settings, notice, isHelpOpen]);

  useEffect(() => (running === null ? undefined : effect(() => { running.context.map.setTheme(theme.value); })), [running]);

  return (
    <div class="shell">
      <a class="skip" href="#panels" onClick={(event) => { event.preventDefault(); document.getElementById("panels")?.focus(); }}>
        Skip to the panels
      </a>
      <Header
        settings={settings}
        running={running}
        canSignOut={props.canSignOut}
        onSignOut={props.onSignOut}
        onSignIn={props.onSignIn}
        onHelp={() => { isHelpOpen.value = true; }}
      />
      <main class="stage">
        <section class="map-area" aria-label="Map">
          <div ref={host} class="map" data-testid="map" />
          {failure !== null && <MapFailure reason={failure} />}
          {running !== null && <Timeline running={running} />}
        </section>
        {running !== null && <Panels context={running.context} />}
      </main>
      <div class="notice" role="status" aria-live="polite" data-testid="notice" data-empty={notice.value === ""}>
        {notice.value}
      </div>
      <HelpDialog isOpen={isHelpOpen} />
    </div>
  );
}

function MapFailure(props: { reason: string }): JSX.Element {
  return (
    <div class="map-failure" role="alert">
      <h2>The map cannot be drawn</h2>
      <p>It needs WebGL 2, which this browser does not offer at the moment.</p>
      <p class="muted">{props.reason}</p>
    </div>
  );
}

function mapOptions(api: Api, settings: MapSettings): MapOptions {
  const isTiled = settings.subscriptions > settings.tiles_from;
  const plane = settings.plane === null ? "" : `?plane=${settings.plane.x},${settings.plane.y},${settings.plane.span}`;
  return {
    plain: settings.plain,
    plane: settings.plane,
    theme: theme.peek(),
    basemap: servedBasemap(),
    workerUrl,
    label: "Map of subscriptions and messages",
    ...(settings.bounds && { bounds: settings.bounds }),
    ...(settings.tiles && { tiles: settings.tiles }),
    ...(isTiled && {
      subscriptionTiles: {
        url: `${api.base}map/tiles/subscriptions/{z}/{x}/{y}${plane}`,
        headers: () => api.headers(),
      },
    }),
  };
}
