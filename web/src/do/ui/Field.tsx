/** A labelled field with its help and its problem, tied together for screen readers. */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

/** Attributes that an input takes over from its field. */
export interface FieldAttributes {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: "true";
}

export function Field(props: {
  label: string;
  help?: ComponentChildren;
  problem?: string | null | undefined;
  class?: string;
  children: (attributes: FieldAttributes) => JSX.Element;
}): JSX.Element {
  const id = useId();
  const hasProblem = typeof props.problem === "string" && props.problem !== "";
  const describedBy = [props.help === undefined ? null : `${id}-help`, hasProblem ? `${id}-problem` : null].filter(Boolean).join(" ");
  const attributes: FieldAttributes = {
    id,
    ...(describedBy === "" ? {} : { "aria-describedby": describedBy }),
    ...(hasProblem ? { "aria-invalid": "true" as const } : {}),
  };
  return (
    <div class={`field ${props.class ?? ""}`}>
      <label for={id}>{props.label}</label>
      {props.children(attributes)}
      {props.help !== undefined && (
        <p id={`${id}-help`} class="field-help">
          {props.help}
        </p>
      )}
      {hasProblem && (
        <p id={`${id}-problem`} class="problem" role="alert">
          {props.problem}
        </p>
      )}
    </div>
  );
}

export function TextField(props: {
  label: string;
  value: string;
  onValue: (value: string) => void;
  help?: ComponentChildren;
  problem?: string | null | undefined;
  suggestions?: readonly string[];
  placeholder?: string;
  inputMode?: "text" | "decimal" | "numeric";
  disabled?: boolean;
  class?: string;
}): JSX.Element {
  const list = useId();
  const { suggestions = [] } = props;
  return (
    <Field label={props.label} help={props.help} problem={props.problem} class={props.class ?? ""}>
      {(attributes) => (
        <>
          <input
            {...attributes}
            type="text"
            value={props.value}
            autocomplete="off"
            spellcheck={false}
            {...(props.placeholder === undefined ? {} : { placeholder: props.placeholder })}
            {...(props.inputMode === undefined ? {} : { inputMode: props.inputMode })}
            {...(suggestions.length ? { list } : {})}
            disabled={props.disabled ?? false}
            onInput={(event) => {
              props.onValue(event.currentTarget.value);
            }}
          />
          {suggestions.length > 0 && (
            <datalist id={list}>
              {suggestions.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function SelectField<Value extends string>(props: {
  label: string;
  value: Value;
  choices: readonly { value: Value; label: string }[];
  onValue: (value: Value) => void;
  problem?: string | null | undefined;
  class?: string;
}): JSX.Element {
  return (
    <Field label={props.label} problem={props.problem} class={props.class ?? ""}>
      {(attributes) => (
        <select
          {...attributes}
          value={props.value}
          onChange={(event) => {
            const chosen = props.choices[event.currentTarget.selectedIndex];
            if (chosen !== undefined) props.onValue(chosen.value);
          }}
        >
          {props.choices.map(({ value, label }) => (
            <option key={value} value={value} selected={value === props.value}>
              {label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function CheckField(props: { label: string; checked: boolean; onChecked: (checked: boolean) => void }): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => {
          props.onChecked(event.currentTarget.checked);
        }}
      />{" "}
      {props.label}
    </label>
  );
}
