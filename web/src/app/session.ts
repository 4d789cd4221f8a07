/** The API key of this tab: kept until the tab is closed, never in an address, never in localStorage. */
const NAME = "contrada.key";

export function readKey(): string | null {
  try {
    return sessionStorage.getItem(NAME);
  } catch {
    return null; // storage is switched off: the key lasts until the page is left
  }
}

export function writeKey(key: string | null): void {
  try {
    if (key === null) sessionStorage.removeItem(NAME);
    else sessionStorage.setItem(NAME, key);
  } catch {
    // See readKey.
  }
}

/** A preference that outlives the tab, such as the theme; null if there is none. */
export function readPreference(name: string): string | null {
  try {
    return localStorage.getItem(`contrada.${name}`);
  } catch {
    return null;
  }
}

export function writePreference(name: string, value: string): void {
  try {
    localStorage.setItem(`contrada.${name}`, value);
  } catch {
    // Storage is switched off: the preference lasts until the page is left.
  }
}
