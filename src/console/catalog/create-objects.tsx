import { useState } from "preact/hooks";
import { COLUMN_TYPES, type Column, type ColumnType, schemaOf } from "../rows/type-description.ts";
import type { Connection } from "../session/connection.ts";
import { ActionForm } from "../shell/dialog.tsx";

interface CreateTableProps {
  readonly connection: Connection;
  readonly parent: readonly string[];
  onDone(id: readonly string[]): void;
}

const FIRST: Column = { name: "id", type: "integer", dimension: 384 };
const NEXT: Column = { name: "", type: "text", dimension: 384 };

/** The form for a new table without rows. */
export function CreateTable({ connection, parent, onDone }: CreateTableProps) {
  const [name, setName] = useState("");
  const [columns, setColumns] = useState<readonly Column[]>([FIRST]);
  const create = async () => {
    const id = [...parent, name];
    const arrow = await import("apache-arrow");
    await connection.namespace.createTable({ id }, new arrow.Table(schemaOf(arrow, columns)));
    onDone(id);
  };
  const change = (at: number, part: Partial<Column>) =>
    setColumns(columns.map((column, index) => (index === at ? { ...column, ...part } : column)));
  const isReady = name !== "" && columns.length > 0 && columns.every((column) => column.name !== "");
  return (
    <ActionForm action="Create" isReady={isReady} run={create}>
      <label>
        Name
        <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <fieldset class="columns">
        <legend>Columns</legend>
        {columns.map((column, at) => (
          <div class="column" key={at}>
            <input
              aria-label={`Name of column ${at + 1}`}
              placeholder="name"
              value={column.name}
              onInput={({ currentTarget }) => change(at, { name: currentTarget.value })}
            />
            <select
              aria-label={`Type of column ${at + 1}`}
              value={column.type}
              onChange={({ currentTarget }) => change(at, { type: currentTarget.value as ColumnType })}
            >
              {COLUMN_TYPES.map((type) => (
                <option key={type}>{type}</option>
              ))}
            </select>
            {column.type === "vector" && (
              <input
                type="number"
                min={1}
                aria-label={`Numbers in the vectors of column ${at + 1}`}
                value={column.dimension}
                onInput={({ currentTarget }) => change(at, { dimension: currentTarget.valueAsNumber })}
              />
            )}
            <button
              type="button"
              class="quiet"
              aria-label={`Remove column ${at + 1}`}
              onClick={() => setColumns(columns.filter((_, index) => index !== at))}
            >
              ✕
            </button>
          </div>
        ))}
        <button type="button" onClick={() => setColumns([...columns, NEXT])}>
          Add a column
        </button>
      </fieldset>
    </ActionForm>
  );
}

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
