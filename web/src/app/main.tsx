/** The page of `contrada serve`: sign in if that is needed, then the map. */
import { render } from "preact";
import { Api, ApiError } from "../api/client.ts";
import type { MapSettings } from "../api/types.ts";
import { Login } from "./login.tsx";
import { readKey, writeKey } from "./session.ts";
import { Shell } from "./shell.tsx";
import "./styles.css";
import { followTheme } from "./theme.ts";

let key = readKey();
// The page may be served below a path, behind a proxy: the server is where the page is.
const api = new Api(new URL(".", location.href).href, () => key);
const host = document.getElementById("app") ?? document.body;

/** Use a key from now on; the settings that the server has for it, or an ApiError. */
async function signIn(candidate: string | null): Promise<MapSettings> {
  const before = key;
  key = candidate;
  try {
    const settings = await api.settings();
    if (settings.needs_key) throw new ApiError("This server needs an API key.", 401);
    writeKey(key);
    return settings;
  } catch (error) {
    key = before;
    throw error;
  }
}

function showMap(settings: MapSettings): void {
  document.title = settings.title;
  const askForKey = () => { showLogin(null); };
  render(<Shell api={api} settings={settings} canSignOut={key !== null} onSignOut={signOut} onSignIn={askForKey} />, host);
}

function showLogin(message: string | null): void {
  render(null, host);
  render(<Login message={message} signIn={(candidate) => signIn(candidate).then(showMap)} />, host);
}

function signOut(): void {
  key = null;
  writeKey(null);
  showLogin("You have signed out.");
}

async function start(): Promise<void> {
  try {
    showMap(await signIn(key));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const isFirstVisit = error.status === 401 && key === null;
    showLogin(isFirstVisit ? null : error.message);
  }
}

followTheme();
void start();
