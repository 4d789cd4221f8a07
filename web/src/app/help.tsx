import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";
import { areShortcutsOn, SHORTCUTS, setShortcuts } from "./shortcuts.ts";

export function HelpDialog({ isOpen }: { isOpen: Signal<boolean> }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = isOpen.value;
  useEffect(() => {
    if (open && dialog.current?.open === false) dialog.current.showModal();
    if (!open) dialog.current?.close();
  }, [open]);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="help-title" onClose={() => { isOpen.value = false; }}>
      <header class="dialog-head">
        <h2 id="help-title">Help</h2>
        <button class="icon-button" type="button" aria-label="Close" onClick={() => { isOpen.value = false; }}>
          <Icon name="close" />
        </button>
      </header>
      <p>
        Regions with a blue outline are subscriptions. Messages appear when they are published and stay for a minute;
        subscriptions that they match light up. Click a message and then a subscription to see why both match, or why
        not.
      </p>
      <table class="shortcuts">
        <caption class="visually-hidden">Keyboard shortcuts</caption>
        <tbody>
          {SHORTCUTS.map(([keys, meaning]) => (
            <tr key={keys}>
              <th scope="row"><kbd>{keys}</kbd></th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <label class="check">
        <input
          type="checkbox"
          checked={areShortcutsOn.value}
          onChange={(event) => { setShortcuts(event.currentTarget.checked); }}
        />
        Use single-key shortcuts
      </label>
    </dialog>
  );
}
