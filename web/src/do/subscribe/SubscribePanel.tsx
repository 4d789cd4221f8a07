/** Make or change a subscription: filter, dry run, key, subscriber and events. */

import { useComputed, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { TrialAnswer } from "../../api/types.ts";
import type { AppContext } from "../../app/context.ts";
import { useMapDrop } from "../draw/map-drop.ts";
import { placeOfFile } from "../draw/PlaceField.tsx";
import { FilterFormView } from "../filter/FilterFormView.tsx";
import { CheckField, TextField } from "../ui/Field.tsx";
import { OwnFeatures } from "../ui/own-features.ts";
import { count, timeText } from "../ui/words.ts";
import { useAttributes } from "../use-attributes.ts";
import { draftFeatures, trialFeatures } from "./features.ts";
import { FilterText } from "./FilterText.tsx";
import { PLAIN_KINDS, type SubscriptionField, type SubscriptionModel } from "./subscription-model.ts";

export function SubscribePanel({ context, model }: { context: AppContext; model: SubscriptionModel }): JSX.Element {
  useDraft(context, model);
  const { names: attributes, region } = useAttributes(context);
  useEffect(() => {
    model.filter.suggestAttribute(region);
  }, [model, region]);
  const { filter } = model;
  useMapDrop(context, (read, name) => {
    const isTaken = filter.setPlace(placeOfFile(read, name));
    if (!isTaken) context.announce("The filter is text that the form cannot show: write the region into the text.");
  });
  const form = filter.form.value;
  const editing = model.editing.value;
  return (
    <form
      class="panel-form"
      aria-label={editing === null ? "New subscription" : `Change ${editing}`}
      onSubmit={(event) => {
        event.preventDefault();
        void subscribe(context, model, false);
      }}
    >
      <h3>{editing === null ? "New subscription" : `Change ${editing}`}</h3>
      {form === null ? (
        <FormReason reason={filter.reason.value ?? ""} onForm={() => { filter.reset(); }} />
      ) : (
        <FilterFormView
          key={filter.resets.value}
          context={context}
          form={form}
          problems={filter.showsMissing.value ? filter.missing.value : []}
          attributes={attributes}
          regionAttribute={region}
          onForm={(next) => { filter.setForm(next); }}
        />
      )}
      <FilterText editor={filter} problem={problemOf(model, "filter")} />
      <TrialView context={context} model={model} />
      <Recipient context={context} model={model} attributes={attributes} />
      <SubmitButtons context={context} model={model} />
    </form>
  );
}

function FormReason({ reason, onForm }: { reason: string; onForm: () => void }): JSX.Element {
  return (
    <div class="note">
      <p>The form cannot show this filter: it has {reason}. The filter stays as the text below.</p>
      <button type="button" class="small" onClick={onForm}>
        Start again with an empty form
      </button>
    </div>
  );
}

/** Draw the regions of the filter while the panel is there. */
function useDraft(context: AppContext, model: SubscriptionModel): void {
  const { map, store } = context;
  const answers = useMemo(() => new OwnFeatures(map, "answer"), [map]);
  const isShown = useComputed(() => store.panel.value === "do");
  useSignalEffect(() => {
    map.setFeatures("draft", isShown.value ? draftFeatures(model.filter) : []);
  });
  useSignalEffect(() => {
    const trial = model.trial.value;
    const features = isShown.value && trial !== null ? trialFeatures(trial) : [];
    answers.set(features);
    if (features.length) map.fit(features.map((feature) => feature.geometry), { maxZoom: 13 });
  });
  useEffect(
    () => () => {
      map.setFeatures("draft", []);
      answers.set([]);
    },
    [map, answers],
  );
}

function TrialView({ context, model }: { context: AppContext; model: SubscriptionModel }): JSX.Element {
  const trial = model.trial.value;
  const isBusy = model.busy.value === "trying";
  const run = async () => {
    const answer = await model.tryFilter();
    if (answer !== null) context.announce(trialSentence(answer));
  };
  return (
    <section class="trial" aria-label="Dry run">
      <button type="button" disabled={isBusy} onClick={() => void run()}>
        {isBusy ? "Trying …" : "Dry run over the last hour"}
      </button>
      {trial !== null && (
        <>
          <p>
            <strong>{trialSentence(trial)}</strong>
            {!trial.complete && " Older messages of the hour are gone or were too many."}
          </p>
          <TrialList context={context} trial={trial} />
        </>
      )}
    </section>
  );
}

export function trialSentence(trial: TrialAnswer): string {
  const what = trial.sample.some((one) => one.track !== undefined) ? count(trial.count, "event") : count(trial.count, "message");
  return `${what} of ${trial.examined.toLocaleString("en")} would have been told.`;
}

const MOST_LISTED = 20;

function TrialList({ context, trial }: { context: AppContext; trial: TrialAnswer }): JSX.Element | null {
  const latest = trial.sample.toReversed().slice(0, MOST_LISTED);
  if (latest.length === 0) return null;
  return (
    <ul class="links" aria-label="Messages of the dry run">
      {latest.map((one, k) => (
        <li key={k}>
          <button
            type="button"
            class="link"
            onClick={() => {
              context.store.selection.value = { kind: "message", sequence: one.sequence };
              context.store.panel.value = "ask";
            }}
          >
            {timeText(one.at)} message {one.sequence}
            {one.track === undefined ? "" : `: ${String(one.track.id)} ${one.track.kind}`}
          </button>
        </li>
      ))}
      {trial.count > latest.length && <li class="muted">and {(trial.count - latest.length).toLocaleString("en")} more</li>}
    </ul>
  );
}

function Recipient({ context, model, attributes }: { context: AppContext; model: SubscriptionModel; attributes: readonly string[] }): JSX.Element {
  const fields = model.fields.value;
  const subscribers = useComputed(() => {
    const names = [...context.store.subscriptions.value.values()].map((one) => one.subscriber);
    return [...new Set(names.filter((name) => name !== null))].sort().slice(0, 200);
  }).value;
  return (
    <>
      <div class="row">
        <TextField label="Key" value={fields.key} problem={problemOf(model, "key")} disabled={model.editing.value !== null} onValue={(key) => { model.change({ key }); }} />
        <TextField label="Subscriber" value={fields.subscriber} suggestions={subscribers} problem={problemOf(model, "subscriber")} onValue={(subscriber) => { model.change({ subscriber }); }} />
      </div>
      <fieldset class="hears">
        <legend>Tell the subscriber</legend>
        <Hears model={model} value="match" label="every message that matches" />
        <Hears model={model} value="track" label="what tracked objects do" />
        {fields.hears === "track" && <TrackFields context={context} model={model} attributes={attributes} />}
      </fieldset>
      <details>
        <summary>More</summary>
        <TextField label="Expires after (seconds)" value={fields.ttl} inputMode="decimal" problem={problemOf(model, "ttl")} onValue={(ttl) => { model.change({ ttl }); }} />
      </details>
    </>
  );
}

function Hears({ model, value, label }: { model: SubscriptionModel; value: "match" | "track"; label: string }): JSX.Element {
  return (
    <label class="check">
      <input type="radio" name="hears" checked={model.fields.value.hears === value} onChange={() => { model.change({ hears: value }); }} /> {label}
    </label>
  );
}

function TrackFields({ context, model, attributes }: { context: AppContext; model: SubscriptionModel; attributes: readonly string[] }): JSX.Element {
  const fields = model.fields.value;
  const names = [...new Set([...context.settings.tracks, ...attributes])];
  const kindProblem = problemOf(model, "on");
  return (
    <>
      <TextField label="Attribute that names the object" value={fields.track} suggestions={names} problem={problemOf(model, "track")} onValue={(track) => { model.change({ track }); }} />
      <fieldset class="kinds">
        <legend>When the object</legend>
        {PLAIN_KINDS.map(({ kind, label }) => (
          <CheckField
            key={kind}
            label={label}
            checked={fields.kinds.includes(kind)}
            onChecked={(checked) => {
              const kinds = PLAIN_KINDS.map((one) => one.kind).filter((one) => (one === kind ? checked : fields.kinds.includes(one)));
              model.change({ kinds });
            }}
          />
        ))}
        <TextField label="stays in it for (such as 5m; empty for no event)" value={fields.dwell} problem={kindProblem} onValue={(dwell) => { model.change({ dwell }); }} />
      </fieldset>
      <details>
        <summary>Against flapping, and time</summary>
        <TextField label="Leaves once it is farther outside than (units of the coordinates)" value={fields.exitBuffer} inputMode="decimal" problem={problemOf(model, "exit_buffer")} onValue={(exitBuffer) => { model.change({ exitBuffer }); }} />
        <TextField label="and for at least (such as 30s)" value={fields.exitAfter} problem={problemOf(model, "exit_after")} onValue={(exitAfter) => { model.change({ exitAfter }); }} />
        <TextField label="Attribute with the time of a position (empty: time of arrival)" value={fields.time} suggestions={attributes} problem={problemOf(model, "time")} onValue={(time) => { model.change({ time }); }} />
      </details>
    </>
  );
}

function SubmitButtons({ context, model }: { context: AppContext; model: SubscriptionModel }): JSX.Element {
  const isBusy = model.busy.value === "saving";
  const { inUse } = model;
  const whole = model.problem.value?.field === null ? model.problem.value.message : null;
  return (
    <>
      {whole !== null && (
        <p class="problem" role="alert">
          {whole}
        </p>
      )}
      {inUse.value !== null && (
        <div class="note" role="alert">
          <p>The key {inUse.value} is in use. Replace that subscription, or choose another key.</p>
          <button type="button" class="danger" onClick={() => void subscribe(context, model, true)}>
            Replace {inUse.value}
          </button>
        </div>
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Saving …" : model.editing.value === null ? "Subscribe" : "Save changes"}
        </button>
        <button type="button" onClick={() => { model.reset(); }}>
          {model.editing.value === null ? "Clear" : "Cancel"}
        </button>
      </div>
    </>
  );
}

async function subscribe(context: AppContext, model: SubscriptionModel, replace: boolean): Promise<void> {
  const key = await model.subscribe(replace);
  if (key === null) return;
  context.announce(`Subscribed: ${key}.`);
  model.reset();
  if (context.store.panel.value !== "do") return; // Another panel was opened before the answer came: it stays.
  context.store.selection.value = { kind: "subscription", key };
  context.store.panel.value = "ask";
}

function problemOf(model: SubscriptionModel, field: SubscriptionField): string | null {
  const problem = model.problem.value;
  return problem?.field === field ? problem.message : null;
}
