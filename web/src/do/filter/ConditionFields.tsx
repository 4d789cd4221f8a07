/** The fields of a condition on an attribute. */

import type { JSX } from "preact";
import { CheckField, SelectField, TextField } from "../ui/Field.tsx";
import { OPERATOR_LABELS, OPERATORS_OF, withOperator, withType, type Condition, type ValueType } from "./model.ts";

const TYPES: readonly { value: ValueType; label: string }[] = [
  { value: "text", label: "text" },
  { value: "number", label: "number" },
  { value: "boolean", label: "true or false" },
  { value: "timestamp", label: "time" },
  { value: "decimal", label: "exact decimal" },
];
const BOOLEANS = [
  { value: "true", label: "true" },
  { value: "false", label: "false" },
] as const;

export function ConditionFields(props: {
  condition: Condition;
  attributes: readonly string[];
  attributeProblem: string | null;
  valueProblem: string | null;
  onCondition: (condition: Condition) => void;
}): JSX.Element {
  const { condition, onCondition } = props;
  const change = (part: Partial<Condition>) => {
    onCondition({ ...condition, ...part });
  };
  const operators = OPERATORS_OF[condition.type].map((value) => ({ value, label: OPERATOR_LABELS[value] }));
  return (
    <>
      <div class="row">
        <TextField label="Attribute" value={condition.attribute} suggestions={props.attributes} problem={props.attributeProblem} onValue={(attribute) => { change({ attribute }); }} />
        <SelectField label="Type" value={condition.type} choices={TYPES} onValue={(type) => { onCondition(withType(condition, type)); }} />
      </div>
      <SelectField label="Operator" value={condition.operator} choices={operators} onValue={(operator) => { onCondition(withOperator(condition, operator)); }} />
      <ValueFields {...props} />
      <div class="checks">
        <CheckField label="Negate (NOT)" checked={condition.negated} onChecked={(negated) => { change({ negated }); }} />
        {condition.type === "text" && condition.operator !== "isNull" && (
          <>
            <CheckField label="Ignore case" checked={condition.ignoreCase} onChecked={(ignoreCase) => { change({ ignoreCase }); }} />
            <CheckField label="Ignore accents" checked={condition.ignoreAccents} onChecked={(ignoreAccents) => { change({ ignoreAccents }); }} />
          </>
        )}
      </div>
    </>
  );
}

function ValueFields(props: { condition: Condition; valueProblem: string | null; onCondition: (condition: Condition) => void }): JSX.Element {
  const { condition, onCondition } = props;
  const setValue = (k: number, value: string | null) => {
    const values = value === null ? condition.values.filter((_, place) => place !== k) : condition.values.map((old, place) => (place === k ? value : old));
    onCondition({ ...condition, values });
  };
  const isList = condition.operator === "in";
  return (
    <div class="values">
      {condition.values.map((value, k) => (
        <div key={k} class="value">
          <ValueField
            type={condition.type}
            label={valueLabel(condition, k)}
            value={value}
            problem={k === condition.values.length - 1 ? props.valueProblem : null}
            onValue={(next) => { setValue(k, next); }}
          />
          {isList && condition.values.length > 1 && (
            <button type="button" class="small" aria-label={`Remove value ${k + 1}`} onClick={() => { setValue(k, null); }}>
              ×
            </button>
          )}
        </div>
      ))}
      {isList && (
        <button type="button" class="small" onClick={() => { onCondition({ ...condition, values: [...condition.values, condition.type === "boolean" ? "true" : ""] }); }}>
          Add a value
        </button>
      )}
    </div>
  );
}

function valueLabel({ operator }: Condition, k: number): string {
  if (operator === "between") return k === 0 ? "From" : "To";
  return operator === "in" ? `Value ${k + 1}` : "Value";
}

function ValueField(props: { type: ValueType; label: string; value: string; problem: string | null; onValue: (value: string) => void }): JSX.Element {
  const { type, value, ...rest } = props;
  if (type === "boolean") return <SelectField {...rest} value={value === "false" ? "false" : "true"} choices={BOOLEANS} />;
  const placeholder = type === "timestamp" ? "2024-05-01T12:00:00Z" : type === "text" ? "" : "0";
  return <TextField {...rest} value={value} placeholder={placeholder} {...(type === "number" || type === "decimal" ? { inputMode: "decimal" as const } : {})} />;
}
