/** The filter as a form: spatial conditions, conditions on attributes, and groups of them. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AppContext } from "../../app/context.ts";
import { PlaceField } from "../draw/PlaceField.tsx";
import { CheckField, SelectField, TextField } from "../ui/Field.tsx";
import { ConditionFields } from "./ConditionFields.tsx";
import {
  newCondition,
  newSpatial,
  replaceAt,
  type FilterForm,
  type FormProblem,
  type Group,
  type Join,
  type Leaf,
  type SpatialCondition,
} from "./model.ts";
import { RELATION_CHOICES, RELATION_PHRASES, RELATIONS, relationsOfWord, relationWord } from "./relations.ts";

const JOINS: readonly { value: Join; label: string }[] = [
  { value: "and", label: "all of these hold (AND)" },
  { value: "or", label: "any of these holds (OR)" },
];

export interface FormViewProps {
  context: AppContext;
  form: FilterForm;
  problems: readonly FormProblem[];
  /** Names of attributes that messages have, as suggestions. */
  attributes: readonly string[];
  /** The attribute that a new region asks about. */
  regionAttribute: string;
  onForm: (form: FilterForm) => void;
}

export function FilterFormView(props: FormViewProps): JSX.Element {
  const { form, onForm } = props;
  const add = (term: Leaf | Group) => {
    onForm({ ...form, terms: [...form.terms, term] });
  };
  const missing = props.problems.find(({ field }) => field === "terms");
  return (
    <div class="filter-form">
      {form.terms.length > 1 && (
        <SelectField label="A message matches if" value={form.join} choices={JOINS} onValue={(join) => { onForm({ ...form, join }); }} />
      )}
      <ol class="terms">
        {form.terms.map((term, k) => (
          <li key={k}>
            {term.kind === "group" ? <GroupView {...props} group={term} path={[k]} /> : <LeafView {...props} leaf={term} path={[k]} />}
          </li>
        ))}
      </ol>
      {missing !== undefined && (
        <p class="problem" role="alert">
          {missing.message}
        </p>
      )}
      <AddButtons regionAttribute={props.regionAttribute} onAdd={add} onGroup={() => { add({ kind: "group", negated: false, join: form.join === "and" ? "or" : "and", leaves: [newCondition()] }); }} />
    </div>
  );
}

function AddButtons({ regionAttribute, onAdd, onGroup }: { regionAttribute: string; onAdd: (leaf: Leaf) => void; onGroup?: () => void }): JSX.Element {
  return (
    <div class="buttons" role="group" aria-label="Add to the filter">
      <button type="button" class="small" onClick={() => { onAdd(newSpatial(regionAttribute)); }}>
        Add a region
      </button>
      <button type="button" class="small" onClick={() => { onAdd(newCondition()); }}>
        Add a condition
      </button>
      {onGroup && (
        <button type="button" class="small" onClick={onGroup}>
          Add a group
        </button>
      )}
    </div>
  );
}

function GroupView(props: FormViewProps & { group: Group; path: number[] }): JSX.Element {
  const { form, group, path, onForm } = props;
  const change = (next: Group | null) => {
    onForm(replaceAt(form, path, next));
  };
  const problem = problemAt(props.problems, path, "leaves");
  return (
    <fieldset class="group">
      <legend>Group {(path[0] ?? 0) + 1}</legend>
      <SelectField label="The group holds if" value={group.join} choices={JOINS} problem={problem} onValue={(join) => { change({ ...group, join }); }} />
      <CheckField label="Negate the group (NOT)" checked={group.negated} onChecked={(negated) => { change({ ...group, negated }); }} />
      <ol class="terms">
        {group.leaves.map((leaf, j) => (
          <li key={j}>
            <LeafView {...props} leaf={leaf} path={[...path, j]} />
          </li>
        ))}
      </ol>
      <AddButtons regionAttribute={props.regionAttribute} onAdd={(leaf) => { change({ ...group, leaves: [...group.leaves, leaf] }); }} />
      <button type="button" class="small" onClick={() => { change(null); }}>
        Remove the group
      </button>
    </fieldset>
  );
}

function LeafView(props: FormViewProps & { leaf: Leaf; path: number[] }): JSX.Element {
  const { form, leaf, path, onForm } = props;
  const change = (next: Leaf) => {
    onForm(replaceAt(form, path, next));
  };
  return (
    <fieldset class="leaf">
      <legend>{`${leaf.kind === "spatial" ? "Region" : "Condition"} ${path.map((place) => place + 1).join(".")}`}</legend>
      {leaf.kind === "spatial" ? (
        <SpatialFields {...props} leaf={leaf} onLeaf={change} />
      ) : (
        <ConditionFields
          condition={leaf}
          attributes={props.attributes}
          attributeProblem={problemAt(props.problems, path, "attribute")}
          valueProblem={problemAt(props.problems, path, "values")}
          onCondition={change}
        />
      )}
      <button type="button" class="small" aria-label={`Remove ${leaf.kind === "spatial" ? "region" : "condition"} ${path.map((place) => place + 1).join(".")}`} onClick={() => { onForm(replaceAt(form, path, null)); }}>
        Remove
      </button>
    </fieldset>
  );
}

const CUSTOM = "custom";

function SpatialFields(props: FormViewProps & { leaf: SpatialCondition; path: number[]; onLeaf: (leaf: SpatialCondition) => void }): JSX.Element {
  const { leaf, onLeaf, path } = props;
  const word = relationWord(leaf.relations);
  const isNamed = RELATION_CHOICES.some((one) => one.word === word);
  const [isOpen, setOpen] = useState(false);
  const choice = isNamed && !isOpen ? (word ?? CUSTOM) : CUSTOM;
  const choices = [
    ...RELATION_CHOICES.map(({ word: value, label }) => ({ value, label })),
    { value: CUSTOM, label: "has one of the relations chosen below" },
  ];
  return (
    <>
      <TextField
        label="Attribute with the message's region or point"
        value={leaf.attribute}
        suggestions={props.attributes}
        problem={problemAt(props.problems, path, "attribute")}
        onValue={(attribute) => { onLeaf({ ...leaf, attribute }); }}
      />
      <SelectField
        label="It"
        value={choice}
        choices={choices}
        problem={problemAt(props.problems, path, "relations")}
        onValue={(value) => {
          const relations = relationsOfWord(value);
          setOpen(relations === null);
          if (relations !== null) onLeaf({ ...leaf, relations });
        }}
      />
      <details class="relations" open={choice === CUSTOM}>
        <summary>The eight relations, one by one</summary>
        {RELATIONS.map((relation) => (
          <CheckField
            key={relation}
            label={`${relation}: it ${RELATION_PHRASES[relation]}`}
            checked={leaf.relations.includes(relation)}
            onChecked={(checked) => {
              const relations = RELATIONS.filter((one) => (one === relation ? checked : leaf.relations.includes(one)));
              onLeaf({ ...leaf, relations });
            }}
          />
        ))}
      </details>
      <PlaceField
        context={props.context}
        label="The region"
        place={leaf.place}
        problem={problemAt(props.problems, path, "place")}
        onPlace={(place) => { onLeaf({ ...leaf, place }); }}
      />
    </>
  );
}

function problemAt(problems: readonly FormProblem[], path: readonly number[], field: FormProblem["field"]): string | null {
  const found = problems.find((problem) => problem.field === field && problem.path.join() === path.join());
  return found?.message ?? null;
}
