/** Files that are dropped on the map itself go to the form that is open. */

import { useEffect, useRef } from "preact/hooks";
import type { AppContext } from "../../app/context.ts";
import { ReadError } from "../places/checks.ts";
import { readFile, type ReadFile } from "../read/files.ts";

/** Give files that are dropped on the map to `onFile` while the panel is shown; faults are announced. */
export function useMapDrop(context: AppContext, onFile: (file: ReadFile, name: string, text: string) => void): void {
  const latest = useRef(onFile);
  latest.current = onFile;
  const { map, store, settings, announce } = context;
  useEffect(() => {
    const container = map.maplibre.getContainer();
    const allow = (event: DragEvent) => {
      if (store.panel.value === "do") event.preventDefault();
    };
    const take = async (file: File) => {
      try {
        const found = await readFile(file, { plain: settings.plain });
        announce(found.problems.length ? `${file.name}: ${found.problems.join("; ")}` : `Read ${file.name}.`);
        latest.current(found, file.name, await file.text());
      } catch (error) {
        if (!(error instanceof ReadError)) throw error;
        announce(error.message);
      }
    };
    const drop = (event: DragEvent) => {
      const file = event.dataTransfer?.files[0];
      if (store.panel.value !== "do" || file === undefined) return;
      event.preventDefault();
      void take(file);
    };
    container.addEventListener("dragover", allow);
    container.addEventListener("drop", drop);
    return () => {
      container.removeEventListener("dragover", allow);
      container.removeEventListener("drop", drop);
    };
  }, [map, store, settings, announce]);
}
