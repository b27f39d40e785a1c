import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { ActionForm } from "./action-form.tsx";

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
