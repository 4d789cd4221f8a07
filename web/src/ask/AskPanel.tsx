/** Ask about what is selected: a message, a subscription, or a pair of both. */

import type { JSX } from "preact";
import type { AppContext } from "../app/context.ts";
import type { Selection } from "../app/store.ts";
import { ObjectView } from "../do/tracks/ObjectView.tsx";
import { useObjects } from "../do/tracks/use-objects.ts";
import { MessageView } from "./MessageView.tsx";
import { KeySearch } from "./parts/KeySearch.tsx";
import { SubscriptionView } from "./SubscriptionView.tsx";
import { WhyView } from "./WhyView.tsx";

export function AskPanel({ context }: { context: AppContext }): JSX.Element {
  const selection = context.store.selection.value;
  return (
    <section class="ask-panel" aria-label="Ask">
      <h2>{titleOf(selection)}</h2>
      {selection === null ? (
        <Nothing context={context} />
      ) : (
        <>
          <Answer key={JSON.stringify(selection)} context={context} selection={selection} />
          <p>
            <button type="button" class="small" onClick={() => { context.store.selection.value = null; }}>
              Ask about something else
            </button>
          </p>
        </>
      )}
    </section>
  );
}

function titleOf(selection: Selection | null): string {
  switch (selection?.kind) {
    case "message":
      return "Message";
    case "subscription":
      return "Subscription";
    case "match":
      return "Why, or why not?";
    case "track":
      return "Tracked object";
    default:
      return "Ask";
  }
}

function Answer({ context, selection }: { context: AppContext; selection: Selection }): JSX.Element {
  switch (selection.kind) {
    case "message":
      return <MessageView context={context} sequence={selection.sequence} />;
    case "subscription":
      return <SubscriptionView context={context} name={selection.key} />;
    case "match":
      return <WhyView context={context} name={selection.key} sequence={selection.sequence} />;
    case "track":
      return <TrackView context={context} id={selection.id} />;
  }
}

function TrackView({ context, id }: { context: AppContext; id: string }): JSX.Element {
  const { selected } = useObjects(context, "ask");
  return (
    <>
      {selected.value === undefined ? <p>No message of {id} is kept on this page.</p> : <ObjectView context={context} object={selected.value} />}
      <button type="button" class="small" onClick={() => { context.store.panel.value = "tracks"; }}>
        All tracked objects
      </button>
    </>
  );
}

function Nothing({ context }: { context: AppContext }): JSX.Element {
  return (
    <>
      <p>
        Click a region or a message on the map to see what it matches and why. A subscription can be searched here by its key
        or subscriber.
      </p>
      <KeySearch context={context} label="Key or subscriber" action="Open" onKey={(key) => { context.store.selection.value = { kind: "subscription", key }; }} />
    </>
  );
}
