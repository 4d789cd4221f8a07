/** What the map shows of a filter that is being written, and of its dry run. */

import type { TrialAnswer } from "../../api/types.ts";
import type { Feature } from "../../map/view.ts";
import { spatialConditions } from "../filter/model.ts";
import { shapesOf } from "../messages.ts";
import type { FilterEditor } from "./filter-editor.ts";

/** Return the regions of the form, or of the text if the form cannot show it. */
export function draftFeatures(editor: FilterEditor): Feature[] {
  const form = editor.form.value;
  if (form === null) {
    return editor.shapes.value.map(({ geometry }, k) => ({ id: `shape-${k}`, geometry, kind: "draft" }));
  }
  return spatialConditions(form).flatMap(({ path, condition }) =>
    condition.place === null ? [] : [{ id: path.join("."), geometry: condition.place, kind: "draft" }],
  );
}

/** Return the regions of the messages that a dry run found. */
export function trialFeatures(trial: TrialAnswer): Feature[] {
  return trial.sample.flatMap((one, row) =>
    shapesOf(one.message).map((geometry, k) => ({
      id: `${one.sequence}-${row}-${k}`,
      geometry,
      kind: one.track === undefined ? "match" : one.track.kind === "exit" ? "exit" : "enter",
    })),
  );
}
