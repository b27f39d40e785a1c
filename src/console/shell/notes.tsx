import type { ComponentChildren, ComponentType } from "preact";
import type { LanceError } from "../../namespace/errors.ts";
import { useCall } from "./hooks.ts";

/** Reports a failure, with a way to try again. */
export function ErrorNote({ error, retry }: { error: LanceError; retry?: (() => void) | undefined }) {
  return (
    <div class="note note-error" role="alert">
      <p>
        <strong>{headline(error)}</strong> {error.message}
      </p>
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Says that there is nothing to show, and why. */
export function EmptyNote({ children }: { children: ComponentChildren }) {
  return <p class="note note-empty">{children}</p>;
}

/** Says that an answer is awaited. */
export function Waiting({ what }: { what: string }) {
  return (
    <p class="note note-waiting" role="status">
      <span class="spinner" aria-hidden="true" />
      {what}
    </p>
  );
}

const HEADLINES: Readonly<Record<string, string>> = {
  Internal: "It failed.",
  Unsupported: "This catalog does not support it.",
  PermissionDenied: "Not allowed.",
  Unauthenticated: "Not signed in.",
  ServiceUnavailable: "The gateway does not answer.",
  Throttling: "The gateway is busy.",
};

function headline({ kind }: LanceError): string {
  const words = kind.replaceAll(/([a-z])([A-Z])/g, "$1 $2");
  return HEADLINES[kind] ?? `${words.slice(0, 1)}${words.slice(1).toLowerCase()}:`;
}

/** Returns a component whose module is loaded when it is shown for the first time. */
export function late<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return (props) => {
    // A component is a function, which a state would call.
    const { value, error, reload } = useCall(async () => ({ Shown: await load() }), []);
    if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
    return value === undefined ? <Waiting what="Loading…" /> : <value.Shown {...props} />;
  };
}
