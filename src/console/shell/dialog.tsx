import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LanceError } from "../../namespace/errors.ts";
import { errorOf } from "./hooks.ts";
import { ErrorNote } from "./notes.tsx";

interface DialogProps {
  readonly title: string;
  /** Whether it has rows of a table. Default: false. */
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
  onClose(): void;
}

/** A modal dialog; its first field has the focus, Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, isWide = false, children, onClose }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("form :is(input, select)")?.focus();
  }, []);
  return (
    <dialog ref={dialog} class={isWide ? "is-wide" : undefined} aria-labelledby={titleId} onClose={onClose}>
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

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

interface DropFormProps {
  /** The name that has to be typed. */
  readonly name: string;
  /** Tells the consequence. */
  readonly children: ComponentChildren;
  drop(): Promise<void>;
}

/** A form that drops an object once its name has been typed. */
export function DropForm({ name, children, drop }: DropFormProps) {
  const [typed, setTyped] = useState("");
  return (
    <ActionForm action={`Drop ${name}`} isDangerous isReady={typed === name} run={drop}>
      <p>{children}</p>
      <label>
        Type <strong>{name}</strong> to confirm
        <input
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
    </ActionForm>
  );
}
