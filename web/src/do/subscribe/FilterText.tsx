/** The filter as CQL2 text, which may be edited; what the server cannot read is named with its line and column. */

import type { JSX } from "preact";
import type { FilterProblem } from "../../api/types.ts";
import { Field } from "../ui/Field.tsx";
import type { FilterEditor } from "./filter-editor.ts";

export function FilterText({ editor, problem }: { editor: FilterEditor; problem: string | null }): JSX.Element {
  const fault = editor.problem.value;
  const text = editor.text.value;
  return (
    <>
      <Field
        label="Filter as CQL2"
        help="The form writes this text. Edit it, and the form follows."
        problem={problem ?? (fault === null ? null : fault.detail)}
      >
        {(attributes) => (
          <textarea
            {...attributes}
            class="code"
            rows={Math.min(10, Math.max(3, Math.ceil(text.length / 38)))}
            spellcheck={false}
            value={text}
            onInput={(event) => { editor.setText(event.currentTarget.value); }}
          />
        )}
      </Field>
      {fault !== null && <FaultPlace text={text} fault={fault} />}
      <p class="muted" role="status">
        {editor.isChecking.value ? "Checking …" : ""}
      </p>
    </>
  );
}

const AROUND = 40;

/** The part of the text at which a fault was found, with a mark below it. */
export function FaultPlace({ text, fault }: { text: string; fault: FilterProblem }): JSX.Element | null {
  const { line, column } = fault;
  const row = line === undefined ? undefined : text.split("\n")[line - 1];
  if (row === undefined || column === undefined) return null;
  const start = Math.max(0, column - 1 - AROUND);
  const part = row.slice(start, column - 1 + AROUND);
  return (
    <pre class="fault-place" aria-hidden="true">
      {part}
      {"\n"}
      {" ".repeat(column - 1 - start)}^
    </pre>
  );
}
