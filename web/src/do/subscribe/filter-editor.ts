/**
 * The state of a filter that is written in a form and as text at once.
 *
 * The text is the filter: a form that changes rewrites it, and text that changes is read by the server and fills the
 * form. Text that the form cannot show stays as it is, and `reason` says why.
 */

import { computed, signal } from "@preact/signals";
import type { FilterAnswer, FilterProblem, FilterRequest, SubscriptionShape } from "../../api/types.ts";
import { readForm, type Json } from "../filter/json.ts";
import { formProblems, newForm, newSpatial, replaceAt, spatialConditions, type FilterForm, type Place } from "../filter/model.ts";
import { writeText } from "../filter/text.ts";

/** The part of the API that reads filters. */
export interface FilterReader {
  filter(request: FilterRequest): Promise<FilterAnswer>;
}

export const CHECK_AFTER = 350; // milliseconds after the last key

export class FilterEditor {
  /** null while the text cannot be shown as a form. */
  readonly form = signal<FilterForm | null>(newForm());
  readonly text = signal(writeText(newForm()));
  /** Why the form cannot show the text, or null. */
  readonly reason = signal<string | null>(null);
  /** What the server says of the text, or null if it is good or was not checked yet. */
  readonly problem = signal<FilterProblem | null>(null);
  /** Regions of the text as the server reads it. */
  readonly shapes = signal<SubscriptionShape[]>([]);
  readonly isChecking = signal(false);
  /** Faults of the form are shown after a first attempt to use it. */
  readonly showsMissing = signal(false);
  /** How often the form was emptied: fields with a state of their own begin anew then. */
  readonly resets = signal(0);
  readonly missing = computed(() => (this.form.value === null ? [] : formProblems(this.form.value)));

  private readonly reader: FilterReader;
  private readonly delay: number;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private version = 0;
  /** Whether the text was typed and the form does not show it yet. */
  private isTyped = false;
  /** The text of the form as it was offered. */
  private untouched = writeText(newForm());

  constructor(reader: FilterReader, delay = CHECK_AFTER) {
    this.reader = reader;
    this.delay = delay;
  }

  /** Take a changed form: its text replaces the text. */
  setForm(form: FilterForm): void {
    this.isTyped = false;
    this.form.value = form;
    this.reason.value = null;
    this.text.value = writeText(form);
    this.problem.value = null;
    if (formProblems(form).length === 0) this.schedule(false);
    else this.cancel();
  }

  /** Take changed text, and read it once nothing was typed for a while. */
  setText(text: string): void {
    this.text.value = text;
    this.isTyped = true;
    this.schedule(true);
  }

  /** Take the filter of a subscription, text or CQL2 JSON, and read it at once. */
  async load(filter: string | Record<string, unknown>): Promise<void> {
    if (typeof filter === "string") {
      this.text.value = filter;
      await this.check(true);
      return;
    }
    this.cancel();
    const version = ++this.version;
    const answer = await this.reader.filter({ json: filter });
    if (version !== this.version) return;
    this.text.value = answer.text ?? JSON.stringify(filter);
    this.take(answer, true);
  }

  /** Put a region into the first spatial condition that has none, else into a new one; false if there is no form. */
  setPlace(place: Place): boolean {
    const form = this.form.peek();
    if (form === null) return false;
    const empty = spatialConditions(form).find(({ condition }) => condition.place === null);
    if (empty !== undefined) this.setForm(replaceAt(form, empty.path, { ...empty.condition, place }));
    else this.setForm({ ...form, terms: [...form.terms, newSpatial(spatialConditions(form)[0]?.condition.attribute, place)] });
    return true;
  }

  /** Let a form that was not touched yet ask about an attribute that messages have. */
  suggestAttribute(attribute: string): void {
    const [only, ...others] = this.form.peek()?.terms ?? [];
    const isUntouched = this.text.peek() === this.untouched && others.length === 0 && only?.kind === "spatial";
    if (!isUntouched || only.attribute === attribute) return;
    this.setForm({ join: "and", terms: [{ ...only, attribute }] });
    this.untouched = this.text.peek();
  }

  reset(): void {
    this.setForm(newForm());
    this.untouched = this.text.peek();
    this.shapes.value = [];
    this.showsMissing.value = false;
    this.resets.value += 1;
  }

  /** Read the text by the server now; `true` if the filter is good. */
  async check(fillsForm = false): Promise<boolean> {
    this.cancel();
    const version = ++this.version;
    this.isChecking.value = true;
    try {
      const answer = await this.reader.filter({ text: this.text.value });
      if (version === this.version) this.take(answer, fillsForm);
      return answer.valid;
    } finally {
      if (version === this.version) this.isChecking.value = false;
    }
  }

  /** Return whether the filter can be used; what is missing is shown from now on. */
  async isReady(): Promise<boolean> {
    this.showsMissing.value = true;
    // What a form lacks says nothing about text that it does not show yet.
    if (this.isTyped) return this.check(true);
    if (this.form.value !== null && this.reason.value === null && this.missing.value.length > 0) return false;
    return this.check();
  }

  dispose(): void {
    this.cancel();
    this.version++;
  }

  private schedule(fillsForm: boolean): void {
    this.cancel();
    this.version++;
    this.timer = setTimeout(() => {
      // A server that is away is said by what the person does next, not by every key.
      this.check(fillsForm).catch(() => undefined);
    }, this.delay);
  }

  private cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private take(answer: FilterAnswer, fillsForm: boolean): void {
    this.problem.value = answer.problem;
    this.shapes.value = answer.shapes;
    if (!fillsForm || !answer.valid || answer.json === null) return;
    this.isTyped = false;
    const { form, reason } = readForm(answer.json as Json);
    this.form.value = form;
    this.reason.value = reason;
  }
}
