import type { JSX } from "preact";
import type { AppContext } from "../app/context.ts";

export function DoPanel(_props: { context: AppContext }): JSX.Element {
  return <></>;
}

export function NetworkPanel(_props: { context: AppContext }): JSX.Element {
  return <></>;
}

export function TracksPanel(_props: { context: AppContext }): JSX.Element {
  return <></>;
}
