import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Mark } from "./icons.tsx";

/** Ask for an API key; `signIn` rejects with an error whose message is shown. */
export function Login(props: { message: string | null; signIn(key: string): Promise<void> }): JSX.Element {
  const [key, setKey] = useState("");
  const [message, setMessage] = useState(props.message);
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await props.signIn(key.trim());
    } catch (error) {
      setMessage(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form
        class="login-card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <Mark />
        <h1>Contrada</h1>
        <p class="muted">Sign in with an API key of this server. The key stays in this tab until you close it.</p>
        <label class="field" for="key">
          <span>API key</span>
          <input
            id="key"
            type="password"
            autocomplete="current-password"
            spellcheck={false}
            required
            autofocus
            value={key}
            aria-describedby="login-message"
            onInput={(event) => {
              setKey(event.currentTarget.value);
            }}
            data-testid="key"
          />
        </label>
        <button class="primary" type="submit" disabled={isBusy || key.trim() === ""}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
        <p id="login-message" class="login-message" role="alert">
          {message ?? ""}
        </p>
      </form>
    </main>
  );
}
