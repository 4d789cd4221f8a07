/** Light, dark, or as the system has it. */
import { computed, effect, signal } from "@preact/signals";
import { KINDS, PALETTES } from "../map/style.ts";
import type { Theme } from "../map/view.ts";
import { readPreference, writePreference } from "./session.ts";

export const CHOICES = ["auto", "light", "dark"] as const;
export type ThemeChoice = (typeof CHOICES)[number];

const system = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(system.matches);
system.addEventListener("change", () => {
  isSystemDark.value = system.matches;
});

const kept = readPreference("theme");
export const themeChoice = signal<ThemeChoice>(CHOICES.find((choice) => choice === kept) ?? "auto");

export const theme = computed<Theme>(() =>
  themeChoice.value === "auto" ? (isSystemDark.value ? "dark" : "light") : themeChoice.value,
);

/** Show the theme on the document and remember the choice. */
export function followTheme(): () => void {
  return effect(() => {
    const root = document.documentElement;
    root.dataset.theme = theme.value;
    // Pages and map share the colours of kinds: --kind-match and so on.
    for (const kind of KINDS) root.style.setProperty(`--kind-${kind}`, PALETTES[theme.value].kinds[kind]);
    writePreference("theme", themeChoice.value);
  });
}

export function nextTheme(): ThemeChoice {
  const index = CHOICES.indexOf(themeChoice.value);
  themeChoice.value = CHOICES[(index + 1) % CHOICES.length] ?? "auto";
  return themeChoice.value;
}
