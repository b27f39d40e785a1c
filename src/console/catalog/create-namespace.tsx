import { useState } from "preact/hooks";
import type { Connection } from "../session/connection.ts";
import { ActionForm } from "../shell/action-form.tsx";

interface CreateNamespaceProps {
  readonly connection: Connection;
  readonly parent: readonly string[];
  onDone(id: readonly string[]): void;
}

/** The form for a new namespace. */
export function CreateNamespace({ connection, parent, onDone }: CreateNamespaceProps) {
  const [name, setName] = useState("");
  const create = async () => {
    const id = [...parent, name];
    await connection.namespace.createNamespace({ id });
    onDone(id);
  };
  return (
    <ActionForm action="Create" isReady={name !== ""} run={create}>
      <label>
        Name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
    </ActionForm>
  );
}
