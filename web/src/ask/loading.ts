/** Load something for a panel, and forget answers that come after another question was asked. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { problemOf } from "../do/ui/problems.ts";

export interface Loaded<T> {
  value: T | null;
  problem: string | null;
  reload: () => void;
}

/** Load by `load` whenever `question` changes; the old answer stays until the new one is there, unless the question differs. */
export function useLoaded<T>(question: string, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ question: string; value: T | null; problem: string | null }>({ question, value: null, problem: null });
  const [attempt, setAttempt] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    let isCurrent = true;
    latest.current().then(
      (value) => {
        if (isCurrent) setState({ question, value, problem: null });
      },
      (error: unknown) => {
        if (isCurrent) setState({ question, value: null, problem: problemOf(error, []).message });
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [question, attempt]);
  const reload = useCallback(() => {
    setAttempt((count) => count + 1);
  }, []);
  const isOld = state.question !== question;
  return { value: isOld ? null : state.value, problem: isOld ? null : state.problem, reload };
}
