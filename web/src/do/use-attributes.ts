/** Names of attributes that messages have, as suggestions of the forms. */

import { useComputed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { AppContext } from "../app/context.ts";
import { attributeNames, regionAttribute } from "./messages.ts";

export interface AttributeSuggestions {
  names: readonly string[];
  /** The attribute in which most messages have their region. */
  region: string;
}

/** Return suggestions; a component is drawn again only if they change, and nothing is computed for hidden panels. */
export function useAttributes({ store }: AppContext): AttributeSuggestions {
  // Text, since a signal compares texts by their content: messages come many times a second.
  const found = useComputed(() => {
    const messages = store.panel.value === "do" ? store.messages.value : store.messages.peek();
    return JSON.stringify({ names: attributeNames(messages), region: regionAttribute(messages) });
  }).value;
  return useMemo(() => JSON.parse(found) as AttributeSuggestions, [found]);
}
