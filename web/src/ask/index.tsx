import type { JSX } from "preact";
import type { AppContext } from "../app/context.ts";

export function AskPanel(_props: { context: AppContext }): JSX.Element {
  return <></>;
}
