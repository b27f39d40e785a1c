import { useState } from "preact/hooks";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { EmptyNote } from "../shell/notes.tsx";
import { indexableColumns, isScalarIndex } from "./index-types.ts";
import type { TableContext } from "./table-context.ts";

/** Time for which a form waits for its index, in seconds; a job goes on after it. Mistakes come to light meanwhile. */
const PATIENCE = { headers: { prefer: "respond-async, wait=2" } } as const;

interface CreateIndexProps {
  readonly table: TableContext;
  readonly schema: JsonArrowSchema | undefined;
  /** Called when the index exists, or a job builds it. */
  onDone(): void;
}

/** The form for an index: its column, a type that suits the column, and for vectors the distance. */
export function CreateIndex({ table: { connection, id, at }, schema, onDone }: CreateIndexProps) {
  const columns = indexableColumns(schema);
  const [chosen, setChosen] = useState(columns[0]?.path);
  const [wanted, setWanted] = useState("");
  const [distanceType, setDistance] = useState("l2");
  const [name, setName] = useState("");
  const column = columns.find(({ path }) => path === chosen);
  if (column === undefined) return <EmptyNote>No column of the table can have an index.</EmptyNote>;
  const type = column.types.find((each) => each.name === wanted) ?? column.types[0];
  const create = async () => {
    if (type === undefined) return;
    const { namespace } = connection;
    const build = isScalarIndex(type.name) ? namespace.createTableScalarIndex : namespace.createTableIndex;
    await build(
      {
        ...{ id, branch: at.branch, column: column.path, indexType: type.name },
        ...(name !== "" && { name }),
        ...(column.isVector && { distanceType }),
      },
      PATIENCE,
    );
    onDone();
  };
  return (
    <ActionForm action="Create" isReady={type !== undefined} run={create}>
      <label>
        Column
        <select value={column.path} onChange={({ currentTarget }) => setChosen(currentTarget.value)}>
          {columns.map(({ path }) => (
            <option key={path}>{path}</option>
          ))}
        </select>
      </label>
      <label>
        Type
        <select value={type?.name} onChange={({ currentTarget }) => setWanted(currentTarget.value)}>
          {column.types.map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}: {each.purpose}
            </option>
          ))}
        </select>
      </label>
      {column.isVector && (
        <label>
          Distance
          <select value={distanceType} onChange={({ currentTarget }) => setDistance(currentTarget.value)}>
            <option value="l2">Euclidean (l2)</option>
            <option value="cosine">cosine</option>
            <option value="dot">dot product</option>
          </select>
        </label>
      )}
      <label>
        Name
        <input
          placeholder="by the column"
          value={name}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
      </label>
    </ActionForm>
  );
}
