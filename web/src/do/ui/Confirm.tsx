/** A button that asks before it acts; the question takes the place of the button, and Escape keeps things as they are. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Confirm(props: {
  label: string;
  question: string;
  confirm: string;
  keep?: string;
  disabled?: boolean;
  onConfirm: () => void;
}): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const keep = useRef<HTMLButtonElement>(null);
  const start = useRef<HTMLButtonElement>(null);
  const wasAsking = useRef(false);
  useEffect(() => {
    if (isAsking) keep.current?.focus();
    else if (wasAsking.current) start.current?.focus();
    wasAsking.current = isAsking;
  }, [isAsking]);
  if (!isAsking) {
    return (
      <button
        ref={start}
        type="button"
        class="danger"
        disabled={props.disabled ?? false}
        onClick={() => {
          setAsking(true);
        }}
      >
        {props.label}
      </button>
    );
  }
  return (
    <span
      class="confirm"
      role="group"
      aria-label={props.question}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.stopPropagation();
          setAsking(false);
        }
      }}
    >
      <span>{props.question}</span>{" "}
      <button
        type="button"
        class="danger"
        onClick={() => {
          setAsking(false);
          props.onConfirm();
        }}
      >
        {props.confirm}
      </button>{" "}
      <button
        ref={keep}
        type="button"
        onClick={() => {
          setAsking(false);
        }}
      >
        {props.keep ?? "Keep it"}
      </button>
    </span>
  );
}
