/** The reasons of a verdict as an indented tree: subscription, filters, constraints, each with value and verdict. */

import type { JSX } from "preact";
import type { ExplainedConstraint, ExplainedFilter, MapExplanation } from "../../api/types.ts";
import { count, relationSentence, shortConstraint, valueText, VERDICT_WORDS, verdictOf, type Truth } from "../../do/ui/words.ts";

export function Verdict({ truth }: { truth: Truth }): JSX.Element {
  const verdict = verdictOf(truth);
  const { mark, word } = VERDICT_WORDS[verdict];
  return (
    <span class={`verdict verdict-${verdict}`}>
      <span aria-hidden="true">{mark}</span> {word}
    </span>
  );
}

/** Which constraint is drawn: its place among the filters. */
export interface ConstraintPlace {
  filter: number;
  constraint: number;
}

export function WhyTree(props: {
  explanation: MapExplanation;
  shown: ConstraintPlace | null;
  onShow: (place: ConstraintPlace) => void;
}): JSX.Element {
  const { explanation } = props;
  const { filters } = explanation;
  const only = filters.length === 1 ? filters[0] : undefined;
  return (
    <ul class="why-tree" aria-label="Reasons">
      <li>
        <Verdict truth={explanation.truth} />{" "}
        {only ? `${count(only.constraints.length, "constraint")} must hold` : `one of ${filters.length} filters must be true`}
        {only ? (
          <Constraints {...props} filter={only} place={0} />
        ) : (
          <ul>
            {filters.map((filter, k) => (
              <li key={k}>
                <Verdict truth={filter.truth} /> filter {k + 1}
                {k === explanation.nearest && (filter.truth ? ", the one that matches" : ", the nearest")}
                <Constraints {...props} filter={filter} place={k} />
              </li>
            ))}
          </ul>
        )}
      </li>
    </ul>
  );
}

function Constraints(props: {
  filter: ExplainedFilter;
  place: number;
  shown: ConstraintPlace | null;
  onShow: (place: ConstraintPlace) => void;
}): JSX.Element {
  return (
    <ul>
      {props.filter.constraints.map((constraint, k) => {
        const isShown = props.shown?.filter === props.place && props.shown.constraint === k;
        return (
          <li key={k} class={isShown ? "why-shown" : undefined}>
            <Constraint
              constraint={constraint}
              isShown={isShown}
              onShow={() => {
                props.onShow({ filter: props.place, constraint: k });
              }}
            />
          </li>
        );
      })}
    </ul>
  );
}

function Constraint({ constraint, isShown, onShow }: { constraint: ExplainedConstraint; isShown: boolean; onShow: () => void }): JSX.Element {
  const sentence = relationSentence(constraint);
  const short = shortConstraint(constraint);
  return (
    <>
      <Verdict truth={constraint.truth} /> <code>{short}</code>
      <p class="why-value">
        {sentence ?? (
          <>
            {constraint.attribute}: <strong>{valueText(constraint.value)}</strong>
          </>
        )}
      </p>
      {constraint.spatial !== null && (
        <button type="button" class="small" aria-pressed={isShown} onClick={onShow}>
          {isShown ? "Drawn on the map" : "Draw on the map"}
        </button>
      )}
      {short !== constraint.asked && (
        <details>
          <summary>Whole constraint</summary>
          <code class="wrapped">{constraint.asked}</code>
        </details>
      )}
    </>
  );
}
