/** A region or point: drawn on the map, typed as WKT or coordinates, or dropped as a file. */

import type { JSX } from "preact";
import { useEffect, useId, useMemo, useState } from "preact/hooks";
import type { AppContext } from "../../app/context.ts";
import { geometryText } from "../ui/words.ts";
import type { Place } from "../filter/model.ts";
import { writeWkt } from "../filter/text.ts";
import { ReadError } from "../places/checks.ts";
import { unionOf } from "../places/clipping.ts";
import { readFile, type ReadFile } from "../read/files.ts";
import { readWkt } from "../read/wkt.ts";
import { Field } from "../ui/Field.tsx";
import { DRAW_MODES, Drawing, type DrawMode } from "./drawing.ts";

export function PlaceField(props: {
  context: AppContext;
  label: string;
  place: Place | null;
  onPlace: (place: Place | null) => void;
  /** Takes what is wrong with text that was typed and is no place (the place is null then); null once it is mended. */
  onFault?: (fault: string | null) => void;
  /** Takes a whole file in place of its regions; without it the union of all regions is the place. */
  onFile?: (file: ReadFile, name: string, text: string) => void;
  problem?: string | null | undefined;
}): JSX.Element {
  const { context, place, onPlace } = props;
  const limits = { plain: context.settings.plain };
  const [typed, setTyped] = useState<TypedPlace | null>(null);
  const [fileFault, setFileFault] = useState<string | null>(null);
  // Typed text is for one place: a place that was drawn or came with a file since then takes its turn.
  const shown = typed?.place === place ? typed : null;
  const text = shown?.text ?? (place === null ? "" : writeWkt(place));

  const set = (next: Place | null, typedAs: TypedPlace | null) => {
    setTyped(typedAs);
    setFileFault(null);
    props.onFault?.(typedAs?.fault ?? null);
    if (next !== place) onPlace(next);
  };
  const take = (next: Place | null) => { set(next, null); };
  const drawing = useDrawing(context, take);
  // A place is taken while it is typed. If it were taken when a press of a button takes the focus away, the form would
  // grow under the mouse, and the button would not be below it any more when the mouse is released.
  const type = (next: string) => {
    const { place: found, fault } = readTyped(next, limits);
    // Text that is not whole yet says nothing; if it stays so, leaving the field tells it.
    if (fault === null) set(found, { text: next, place: found, fault });
    else setTyped({ text: next, place, fault: null });
  };
  const takeTyped = () => {
    if (shown === null) return;
    const { place: found, fault } = readTyped(shown.text, limits);
    if (fault === null) take(found);
    else set(null, { text: shown.text, place: null, fault });
  };
  const takeFile = async (file: File) => {
    try {
      const found = await readFile(file, limits);
      if (props.onFile) {
        set(place, null);
        props.onFile(found, file.name, await file.text());
      } else take(placeOfFile(found, file.name));
      setFileFault(found.problems.length ? `${file.name}: ${found.problems.join("; ")}` : null);
      context.announce(`Read ${file.name}.`);
    } catch (error) {
      if (!(error instanceof ReadError)) throw error;
      setFileFault(error.message);
    }
  };

  return (
    <fieldset class="place-field">
      <legend>{props.label}</legend>
      <DrawButtons drawing={drawing} place={place} onClear={() => { take(null); }} onShow={() => { if (place) context.map.fit([place], { maxZoom: 14 }); }} />
      <Field
        label="WKT or coordinates"
        help="POLYGON ((…)), POINT (x y), BBOX(xmin, ymin, xmax, ymax), or one x y on each line. Press Ctrl+Enter to use it."
        problem={shown?.fault ?? fileFault ?? props.problem}
      >
        {(attributes) => (
          <textarea
            {...attributes}
            rows={2}
            spellcheck={false}
            value={text}
            onInput={(event) => { type(event.currentTarget.value); }}
            onBlur={takeTyped}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                takeTyped();
              }
            }}
          />
        )}
      </Field>
      <DropZone onFile={(file) => void takeFile(file)} />
      {place !== null && <p class="muted">{geometryText(place)}</p>}
    </fieldset>
  );
}

/** Text as it was typed, the place that the form has with it, and what is wrong with the text. */
interface TypedPlace {
  text: string;
  place: Place | null;
  fault: string | null;
}

function readTyped(text: string, limits: { plain: boolean }): { place: Place | null; fault: string | null } {
  try {
    return { place: text.trim() === "" ? null : readWkt(text, limits), fault: null };
  } catch (error) {
    if (!(error instanceof ReadError)) throw error;
    return { place: null, fault: error.message };
  }
}

/** Return the union of the regions of a file. */
export function placeOfFile(file: ReadFile, name: string): Place {
  const places = file.items.map((item) => item.place).filter((place) => place !== null);
  if (places.length === 0) throw new ReadError(name, file.problems[0] ?? "it has no region and no point");
  return unionOf(places);
}

interface DrawingState {
  /** What is being drawn, "edit", or null. */
  active: DrawMode | "edit" | null;
  problem: string | null;
  start: (mode: DrawMode) => void;
  edit: (place: Place) => void;
  stop: () => void;
}

/** Own a drawing on the map for as long as the component is there. */
function useDrawing(context: AppContext, onPlace: (place: Place) => void): DrawingState {
  const [active, setActive] = useState<DrawMode | "edit" | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const drawing = useMemo(() => new Drawing(context.map), [context.map]);
  const { mapMode, panel } = context.store;
  useEffect(
    () => () => {
      if (drawing.isActive) mapMode.value = "select";
      drawing.stop();
    },
    [drawing, mapMode],
  );
  useEffect(() => {
    if (active === null) return undefined;
    const cancel = (event: KeyboardEvent) => {
      if (event.key === "Escape") stop();
    };
    window.addEventListener("keydown", cancel);
    const stopWatching = panel.subscribe((name) => {
      if (name !== "do") stop();
    });
    return () => {
      window.removeEventListener("keydown", cancel);
      stopWatching();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `stop` is new with every rendering and does the same
  }, [active, panel]);
  const stop = () => {
    drawing.stop();
    setActive(null);
    // The click that ends a drawing reaches the map's own handlers after terra-draw's.
    setTimeout(() => { mapMode.value = "select"; }, 0);
  };
  const begin = (what: DrawMode | "edit") => {
    setProblem(null);
    setActive(what);
    mapMode.value = "draw";
  };
  const fail = (error: unknown) => {
    stop();
    setProblem(`Drawing does not work here: ${error instanceof Error ? error.message : String(error)}`);
  };
  return {
    active,
    problem,
    stop,
    start: (mode) => {
      begin(mode);
      const done = (place: Place) => {
        stop();
        onPlace(place);
        context.announce("The region is drawn.");
      };
      drawing.start(mode, done).catch(fail);
    },
    edit: (place) => {
      begin("edit");
      drawing.edit(place, onPlace).then((works) => {
        if (works) return;
        stop();
        setProblem("A region of several parts is edited as WKT, below.");
      }, fail);
    },
  };
}

function DrawButtons(props: { drawing: DrawingState; place: Place | null; onClear: () => void; onShow: () => void }): JSX.Element {
  const { drawing, place } = props;
  const hint = DRAW_MODES.find(({ mode }) => mode === drawing.active)?.hint;
  return (
    <>
      <div class="buttons" role="group" aria-label="Draw on the map">
        {DRAW_MODES.map(({ mode, label }) => (
          <button key={mode} type="button" class="small" aria-pressed={drawing.active === mode} onClick={() => { if (drawing.active === mode) drawing.stop(); else drawing.start(mode); }}>
            {label}
          </button>
        ))}
        {place !== null && (
          <>
            <button type="button" class="small" aria-pressed={drawing.active === "edit"} onClick={() => { if (drawing.active === "edit") drawing.stop(); else drawing.edit(place); }}>
              {drawing.active === "edit" ? "Done" : "Edit corners"}
            </button>
            <button type="button" class="small" onClick={props.onShow}>
              Show
            </button>
            <button type="button" class="small" onClick={() => { drawing.stop(); props.onClear(); }}>
              Clear
            </button>
          </>
        )}
      </div>
      {drawing.active !== null && (
        <p class="hint" role="status">
          {hint ?? "Drag corners; drag a point between two corners to add one; right-click a corner to remove it."}{" "}
          <button type="button" class="small" onClick={drawing.stop}>
            {drawing.active === "edit" ? "Done" : "Cancel"}
          </button>
        </p>
      )}
      {drawing.problem !== null && (
        <p class="problem" role="alert">
          {drawing.problem}
        </p>
      )}
    </>
  );
}

/** A place to drop a file on, which is a button to choose one as well. */
export function DropZone({ onFile }: { onFile: (file: File) => void }): JSX.Element {
  const id = useId();
  const [isOver, setOver] = useState(false);
  return (
    <div
      class={isOver ? "drop-zone drop-over" : "drop-zone"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => { setOver(false); }}
      onDrop={(event) => {
        event.preventDefault();
        event.stopPropagation();
        setOver(false);
        const file = event.dataTransfer?.files[0];
        if (file !== undefined) onFile(file);
      }}
    >
      <label for={id}>Drop a GeoJSON, WKT or CAP file here, or choose one:</label>{" "}
      <input
        id={id}
        type="file"
        accept=".geojson,.json,.wkt,.txt,.xml,.cap,application/geo+json,application/cap+xml"
        onChange={(event) => {
          const input = event.currentTarget;
          const file = input.files?.[0];
          if (file !== undefined) onFile(file);
          input.value = ""; // so that the same file can be chosen again
        }}
      />
    </div>
  );
}
