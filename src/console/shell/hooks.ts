import { type Inputs, useCallback, useEffect, useState } from "preact/hooks";
import { LanceError } from "../../namespace/errors.ts";
import { parseRoute, type Route } from "./route.ts";

/** A call and its outcome so far. */
export interface Outcome<T> {
  /** The answer; during another call of the same kind, the one before. */
  readonly value?: T | undefined;
  readonly error?: LanceError | undefined;
  readonly isRunning: boolean;
  /** Makes the call again. */
  reload(): void;
}

/** Makes a call when the component appears, and whenever an input changes; a later call cancels an earlier one. */
export function useCall<T>(run: (signal: AbortSignal) => Promise<T>, inputs: Inputs): Outcome<T> {
  const [state, setState] = useState<Omit<Outcome<T>, "reload">>({ isRunning: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    setState(({ value }) => ({ value, isRunning: true }));
    run(controller.signal).then(
      (value) => !controller.signal.aborted && setState({ value, isRunning: false }),
      (thrown) => !controller.signal.aborted && setState({ error: errorOf(thrown), isRunning: false }),
    );
    return () => controller.abort();
  }, [...inputs, round]);
  return { ...state, reload: useCallback(() => setRound((before) => before + 1), []) };
}

/** Returns a failure as an error of the table. */
export function errorOf(thrown: unknown): LanceError {
  if (thrown instanceof LanceError) return thrown;
  return new LanceError("Internal", thrown instanceof Error ? thrown.message : String(thrown));
}

/** Returns the page that the address names. */
export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const read = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  return route;
}
