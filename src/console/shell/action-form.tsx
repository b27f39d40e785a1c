import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { LanceError } from "../../namespace/errors.ts";
import { errorOf } from "./hooks.ts";
import { ErrorNote } from "./notes.tsx";

interface ActionFormProps {
  /** Text of the button. */
  readonly action: string;
  readonly isReady: boolean;
  /** Whether the action destroys something. Default: false. */
  readonly isDangerous?: boolean;
  readonly children: ComponentChildren;
  /** Does it; a failure is shown in the form. */
  run(): Promise<void>;
}

/** A form that does something once, and shows its failure. */
export function ActionForm({ action, isReady, isDangerous = false, children, run }: ActionFormProps) {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<LanceError>();
  const submit = async () => {
    setRunning(true);
    setError(undefined);
    await run().catch((thrown) => setError(errorOf(thrown)));
    setRunning(false);
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady && !isRunning) void submit();
      }}
    >
      {children}
      {error && <ErrorNote error={error} />}
      <div class="buttons">
        <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={!isReady || isRunning}>
          {isRunning ? "Working…" : action}
        </button>
      </div>
    </form>
  );
}
