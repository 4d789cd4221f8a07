/** Make subscriptions and publish messages. The state outlives the panel: another panel may be looked at meanwhile. */

import { signal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Api } from "../api/client.ts";
import type { AppContext } from "../app/context.ts";
import { PublishModel } from "./publish/publish-model.ts";
import { PublishPanel } from "./publish/PublishPanel.tsx";
import { SubscriptionModel } from "./subscribe/subscription-model.ts";
import { SubscribePanel } from "./subscribe/SubscribePanel.tsx";

type Task = "subscribe" | "publish";

interface Drafts {
  task: Signal<Task>;
  subscription: SubscriptionModel;
  message: PublishModel;
}

const DRAFTS = new WeakMap<Api, Drafts>();

/** Return what is being written with an API; the same for all panels of a page. */
export function draftsOf(api: Api): Drafts {
  const known = DRAFTS.get(api);
  if (known !== undefined) return known;
  const made: Drafts = { task: signal<Task>("subscribe"), subscription: new SubscriptionModel(api), message: new PublishModel(api) };
  DRAFTS.set(api, made);
  return made;
}

/** Open the form with a subscription, to change it. */
export function editSubscription(context: AppContext, key: string): void {
  const drafts = draftsOf(context.api);
  drafts.task.value = "subscribe";
  context.store.panel.value = "do";
  void drafts.subscription.edit(key);
}

export function DoPanel({ context }: { context: AppContext }): JSX.Element {
  const { settings } = context;
  const tasks: { task: Task; label: string; scope: string }[] = [
    { task: "subscribe", label: "Subscription", scope: "subscribe" },
    { task: "publish", label: "Message", scope: "publish" },
  ];
  const allowed = settings.read_only ? [] : tasks.filter(({ scope }) => settings.scopes.includes(scope));
  const drafts = draftsOf(context.api);
  const task = allowed.find((one) => one.task === drafts.task.value)?.task ?? allowed[0]?.task;
  return (
    <section class="do-panel" aria-label="Subscribe and publish">
      <h2>Do</h2>
      {allowed.length > 1 && (
        <div class="buttons tasks" role="group" aria-label="What to do">
          {allowed.map((one) => (
            <button key={one.task} type="button" aria-pressed={task === one.task} onClick={() => { drafts.task.value = one.task; }}>
              {one.label}
            </button>
          ))}
        </div>
      )}
      {task === "subscribe" && <SubscribePanel context={context} model={drafts.subscription} />}
      {task === "publish" && <PublishPanel context={context} model={drafts.message} />}
      {task === undefined && (
        <p>{settings.read_only ? "This map is read-only: it changes nothing on the server." : "This key may neither subscribe nor publish."}</p>
      )}
    </section>
  );
}
