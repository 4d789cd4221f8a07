/** Publish a message that is drawn, typed or dropped. */

import { useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { PublishedBatch, PublishedMessage } from "../../api/types.ts";
import type { AppContext } from "../../app/context.ts";
import { useMapDrop } from "../draw/map-drop.ts";
import { PlaceField } from "../draw/PlaceField.tsx";
import { SelectField, TextField } from "../ui/Field.tsx";
import { count } from "../ui/words.ts";
import { useAttributes } from "../use-attributes.ts";
import type { AttributeRow, AttributeType, LoadedFile, PublishField, PublishModel } from "./publish-model.ts";

const TYPES: readonly { value: AttributeType; label: string }[] = [
  { value: "text", label: "text" },
  { value: "number", label: "number" },
  { value: "boolean", label: "true or false" },
  { value: "json", label: "JSON" },
];

export function PublishPanel({ context, model }: { context: AppContext; model: PublishModel }): JSX.Element {
  const { names } = useAttributes(context);
  useMapDrop(context, (read, name, text) => {
    model.take(read, name, text);
  });
  useSignalEffect(() => {
    const place = context.store.panel.value === "do" ? model.place.value : null;
    context.map.setFeatures("draft", place === null ? [] : [{ id: "message", geometry: place, kind: "draft" }]);
  });
  useEffect(
    () => () => {
      context.map.setFeatures("draft", []);
    },
    [context],
  );
  const file = model.file.value;
  return (
    <form
      class="panel-form"
      aria-label="New message"
      onSubmit={(event) => {
        event.preventDefault();
        void publish(context, model);
      }}
    >
      <h3>New message</h3>
      <PlaceField
        key={model.resets.value}
        context={context}
        label="Region or point of the message"
        place={model.place.value}
        problem={problemOf(model, "place")}
        onPlace={(place) => { model.place.value = place; }}
        onFault={(fault) => { model.placeFault.value = fault; }}
        onFile={(read, name, text) => { model.take(read, name, text); }}
      />
      {file !== null && <FileChoice context={context} model={model} file={file} />}
      {model.place.value !== null && (
        <TextField label="Attribute of the region" value={model.attribute.value} suggestions={names} problem={problemOf(model, "attribute")} onValue={(attribute) => { model.attribute.value = attribute; }} />
      )}
      <Attributes model={model} names={names} />
      {model.problem.value?.field === null && (
        <p class="problem" role="alert">
          {model.problem.value.message}
        </p>
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={model.isBusy.value}>
          {model.isBusy.value ? "Publishing …" : "Publish"}
        </button>
        <button type="button" onClick={() => { model.reset(); }}>
          Clear
        </button>
      </div>
    </form>
  );
}

function FileChoice({ context, model, file }: { context: AppContext; model: PublishModel; file: LoadedFile }): JSX.Element {
  const choices = file.items.map((item, k) => ({ value: String(k), label: `${k + 1}: ${item.name || "without a name"}` }));
  const [first] = choices;
  const chosen = file.items.findIndex((item) => item.place === model.place.value);
  return (
    <div class="note">
      <p>
        {file.name} has {count(file.items.length, "message")}.
      </p>
      {choices.length > 1 && first !== undefined && (
        <SelectField
          label="Message in the form"
          value={String(Math.max(0, chosen))}
          choices={choices}
          onValue={(value) => {
            const item = file.items[Number(value)];
            if (item !== undefined) model.choose(item);
          }}
        />
      )}
      <button type="button" class="small" disabled={model.isBusy.value} onClick={() => void publishFile(context, model)}>
        Publish the file as it is
      </button>
    </div>
  );
}

function Attributes({ model, names }: { model: PublishModel; names: readonly string[] }): JSX.Element {
  const problem = problemOf(model, "rows");
  return (
    <fieldset class="attributes">
      <legend>Attributes</legend>
      {model.rows.value.map((row, k) => (
        <AttributeFields key={k} row={row} place={k} names={names} onRow={(next) => { model.setRow(k, next); }} />
      ))}
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <button type="button" class="small" onClick={() => { model.addRow(); }}>
        Add an attribute
      </button>
    </fieldset>
  );
}

function AttributeFields(props: { row: AttributeRow; place: number; names: readonly string[]; onRow: (row: AttributeRow | null) => void }): JSX.Element {
  const { row, onRow } = props;
  return (
    <div class="row attribute-row" role="group" aria-label={`Attribute ${props.place + 1}`}>
      <TextField label="Name" value={row.name} suggestions={props.names} onValue={(name) => { onRow({ ...row, name }); }} />
      <SelectField
        label="Type"
        value={row.type}
        choices={TYPES}
        onValue={(type) => { onRow({ ...row, type, value: type === "boolean" ? String(row.value === "true") : row.value }); }}
      />
      {row.type === "boolean" ? (
        <SelectField
          label="Value"
          value={row.value === "true" ? "true" : "false"}
          choices={[{ value: "true", label: "true" }, { value: "false", label: "false" }]}
          onValue={(value) => { onRow({ ...row, value }); }}
        />
      ) : (
        <TextField label="Value" value={row.value} onValue={(value) => { onRow({ ...row, value }); }} />
      )}
      <button type="button" class="small" aria-label={`Remove attribute ${props.place + 1}`} onClick={() => { onRow(null); }}>
        ×
      </button>
    </div>
  );
}

async function publish(context: AppContext, model: PublishModel): Promise<void> {
  const sequence = await model.publish();
  if (sequence === null) return;
  context.announce(`Published as message ${sequence}.`);
  model.reset();
  if (context.store.panel.value !== "do") return; // Another panel was opened before the answer came: it stays.
  context.store.selection.value = { kind: "message", sequence };
  context.store.panel.value = "ask";
}

async function publishFile(context: AppContext, model: PublishModel): Promise<void> {
  const answer = await model.publishFile();
  if (answer === null) return;
  context.announce(publishedSentence(answer));
  const rejected = "rejected" in answer ? answer.rejected : [];
  if (rejected.length) {
    const reasons = rejected.map(({ row, reason }) => `message ${row + 1}: ${reason}`);
    model.problem.value = { field: null, message: `Not taken: ${reasons.join("; ")}` };
  } else {
    model.reset();
  }
}

export function publishedSentence(answer: PublishedMessage | PublishedBatch): string {
  if ("sequence" in answer) return `Published as message ${answer.sequence}${answer.duplicate ? ", which was known already" : ""}.`;
  const rejected = answer.rejected.length ? `, ${count(answer.rejected.length, "message")} not taken` : "";
  return `Published ${count(answer.count, "message")}${rejected}.`;
}

function problemOf(model: PublishModel, field: PublishField): string | null {
  const problem = model.problem.value;
  return problem?.field === field ? problem.message : null;
}
