/** A list of any length: only the rows in view are in the document. */
import type { ComponentChildren, JSX, TargetedKeyboardEvent } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const MAX_HEIGHT = 10_000_000; // pixels; browsers lay out no element that is much higher
const AROUND = 4; // rows above and below the view

export interface ListProps {
  id: string;
  label: string;
  count: number;
  rowHeight: number;
  /** Position of the chosen row, -1 for none. */
  chosen: number;
  onChoose: (position: number) => void;
  /** Called with the rows in view, so that their content can be loaded. */
  onView?: (first: number, last: number) => void;
  onPoint?: (position: number | null) => void;
  row: (position: number) => ComponentChildren;
  empty: string;
}

/** Which rows are in view: a list that is too high for the browser moves by shares of its height. */
export function rowsInView(scrollTop: number, viewHeight: number, count: number, rowHeight: number) {
  const height = Math.min(count * rowHeight, MAX_HEIGHT);
  const share = height > viewHeight ? scrollTop / (height - viewHeight) : 0;
  const top = Math.max(0, share * (count * rowHeight - viewHeight)); // as if it had its full height
  const first = Math.max(0, Math.floor(top / rowHeight) - AROUND);
  const last = Math.min(count, Math.ceil((top + viewHeight) / rowHeight) + AROUND);
  return { height, first, last, shift: scrollTop - top };
}

/** Where to scroll so that a row is in view; null if it is. */
export function scrollFor(position: number, scrollTop: number, viewHeight: number, count: number, rowHeight: number) {
  const full = count * rowHeight;
  const height = Math.min(full, MAX_HEIGHT);
  if (height <= viewHeight) return null;
  const top = (scrollTop / (height - viewHeight)) * (full - viewHeight);
  const [start, end] = [position * rowHeight, (position + 1) * rowHeight];
  const target = start < top ? start : end > top + viewHeight ? end - viewHeight : null;
  return target === null ? null : (target / (full - viewHeight)) * (height - viewHeight);
}

/* eslint-disable no-restricted-syntax -- Preact sets these styles by script, which a Content-Security-Policy allows */
export function List(props: ListProps): JSX.Element {
  const { id, label, count, rowHeight, chosen, onChoose, onView, onPoint, row, empty } = props;
  const host = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ scrollTop: 0, height: 400 });
  const { height, first, last, shift } = rowsInView(view.scrollTop, view.height, count, rowHeight);

  useLayoutEffect(() => {
    const element = host.current;
    if (element === null) return;
    const measure = () => {
      setView({ scrollTop: element.scrollTop, height: element.clientHeight });
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, [count]);
  useEffect(() => onView?.(first, last), [first, last, onView]);
  useEffect(() => {
    const element = host.current;
    if (element === null || chosen < 0) return;
    const target = scrollFor(chosen, element.scrollTop, element.clientHeight, count, rowHeight);
    if (target !== null) element.scrollTop = target;
  }, [chosen, count, rowHeight]);

  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const target = { ArrowDown: chosen + 1, ArrowUp: Math.max(0, chosen - 1), PageDown: chosen + page,
                     PageUp: chosen - page, Home: 0, End: count - 1 }[event.key]; // prettier-ignore
    if (target === undefined || count === 0) return;
    event.preventDefault();
    onChoose(Math.min(count - 1, Math.max(0, target)));
  };

  const positions = Array.from({ length: last - first }, (_, place) => first + place);
  return (
    <div
      class="list"
      id={id}
      ref={host}
      role="listbox"
      aria-label={label}
      aria-activedescendant={chosen >= first && chosen < last ? `${id}-${chosen}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onScroll={(event) => {
        setView({ scrollTop: event.currentTarget.scrollTop, height: event.currentTarget.clientHeight });
      }}
    >
      {count === 0 && <p class="nothing list-empty">{empty}</p>}
      <div class="list-space" role="presentation" style={{ height: `${height}px` }}>
        {positions.map((position) => (
          <div
            key={position}
            id={`${id}-${position}`}
            class="list-row"
            role="option"
            aria-selected={position === chosen}
            aria-posinset={position + 1}
            aria-setsize={count}
            style={{ top: `${position * rowHeight + shift}px`, height: `${rowHeight}px` }}
            onClick={() => {
              onChoose(position);
            }}
            onMouseEnter={() => onPoint?.(position)}
            onMouseLeave={() => onPoint?.(null)}
          >
            {row(position)}
          </div>
        ))}
      </div>
    </div>
  );
}
