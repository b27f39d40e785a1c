import { formatTime } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import type { Moment, TableContext } from "./table-context.ts";

interface RefsProps {
  readonly table: TableContext;
  onOpen(moment: Moment): void;
}

/** The branches and the tags of a table. */
export function Refs({ table, onOpen }: RefsProps) {
  return (
    <>
      <h2>Branches</h2>
      <Branches table={table} onOpen={onOpen} />
      <h2>Tags</h2>
      <Tags table={table} onOpen={onOpen} />
    </>
  );
}

function Branches({ table: { connection, id }, onOpen }: RefsProps) {
  const { namespace } = connection;
  const { value, error, reload } = useCall(
    async (signal) => await Array.fromAsync(namespace.listTableBranches({ id }, { signal })),
    [namespace, id.join("/")],
  );
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  if (value === undefined) return <Waiting what="Reading branches…" />;
  if (value.length === 0) return <EmptyNote>There is only the main branch.</EmptyNote>;
  return (
    <ul class="cards">
      {value.map(([name, { parentBranch, parentVersion, createAt }]) => (
        <li key={name}>
          <strong>{name}</strong>
          <span class="muted">
            from version {String(parentVersion)} of {parentBranch ?? "main"},{" "}
            {formatTime(Number(createAt) * 1000)}
          </span>
          <button type="button" onClick={() => onOpen({ branch: name })}>
            Show branch {name}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Tags({ table: { connection, id }, onOpen }: RefsProps) {
  const { namespace } = connection;
  const { value, error, reload } = useCall(
    async (signal) => await Array.fromAsync(namespace.listTableTags({ id }, { signal })),
    [namespace, id.join("/")],
  );
  if (error !== undefined) return <ErrorNote error={error} retry={reload} />;
  if (value === undefined) return <Waiting what="Reading tags…" />;
  if (value.length === 0) return <EmptyNote>The table has no tags.</EmptyNote>;
  return (
    <ul class="cards">
      {value.map(([name, { version, branch }]) => (
        <li key={name}>
          <strong>{name}</strong>
          <span class="muted">
            version {String(version)} of {branch ?? "main"}
          </span>
          <button type="button" onClick={() => onOpen({ version, branch })}>
            Show tag {name}
          </button>
        </li>
      ))}
    </ul>
  );
}
