/** Icons of 20 by 20, drawn with the colour of the text beside them. */
import type { JSX } from "preact";

const PATHS = {
  layers: "M10 3 2.5 7 10 11l7.5-4zM2.5 10.5 10 14.5l7.5-4M2.5 13.5 10 17.5l7.5-4",
  theme: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
  help: "M7.5 7.5a2.5 2.5 0 1 1 3.6 2.2c-.8.5-1.1.9-1.1 1.8M10 14.6v.2",
  exit: "M8 3H4v14h4M9 10h8M14 7l3 3-3 3",
  enter: "M12 3h4v14h-4M3 10h8M8 7l3 3-3 3",
  fit: "M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4",
  play: "M6 4v12l10-6z",
  pause: "M7 4v12M13 4v12",
  close: "M5 5l10 10M15 5 5 15",
  sheet: "M5 12l5-5 5 5",
} as const;

export function Icon(props: { name: keyof typeof PATHS }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 20 20" aria-hidden="true">
      <path d={PATHS[props.name]} />
    </svg>
  );
}

/** The sign of Contrada: a region and a point in it. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <path class="mark-region" d="M4 9 17 3l11 8-4 15-14 3z" />
      <circle class="mark-point" cx="17" cy="16" r="4.5" />
    </svg>
  );
}
