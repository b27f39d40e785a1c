import { useEffect, useState } from "preact/hooks";
import type { IndexContent } from "../../gen/lance/namespace/v1/index_pb.ts";
import type { JsonArrowSchema } from "../../gen/lance/namespace/v1/schema_pb.ts";
import { ActionForm, Dialog, DropForm } from "../shell/dialog.tsx";
import { formatBytes, formatCount, formatSeconds, formatTime } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { indexableColumns, isScalarIndex } from "./index-types.ts";
import { cancelJob, type Job, listJobs, readLog } from "./jobs.ts";
import type { TableContext } from "./table-context.ts";

/** Time between two looks at work that is in flight, in milliseconds. */
const INTERVAL_MS = 3_000;

interface IndicesProps {
  readonly table: TableContext;
  readonly schema: JsonArrowSchema | undefined;
  onChanged(): void;
}

/** The indices of a table, how much of the table is in each, and the jobs that work on it. */
export function Indices({ table, schema, onChanged }: IndicesProps) {
  const { connection, id, at, permissions, current } = table;
  const { namespace } = connection;
  const [action, setAction] = useState<
    "create" | { readonly drop: string } | { readonly cancel: Job } | { readonly log: Job }
  >();
  const mayChange = permissions.has("write");
  const { branch } = at;
  const indices = useCall(
    async (signal) => await Array.fromAsync(namespace.listTableIndices({ id, branch }, { signal })),
    [namespace, id.join("/"), branch, current],
  );
  const jobs = useCall((signal) => listJobs(connection, id, signal), [connection, id.join("/"), current]);
  const isUnderWay =
    jobs.value?.some(({ isEnded }) => !isEnded) || indices.value?.some((index) => partOf(index) < 1);
  useEffect(() => {
    if (!isUnderWay) return;
    const timer = setInterval(() => {
      indices.reload();
      jobs.reload();
      // The header has the version and the number of indices.
      onChanged();
    }, INTERVAL_MS);
    return () => clearInterval(timer);
  }, [isUnderWay]);
  const close = () => setAction(undefined);
  const done = () => {
    close();
    indices.reload();
    jobs.reload();
    onChanged();
  };
  const drop = async (indexName: string) => {
    await namespace.dropTableIndex({ id, branch, indexName });
    done();
  };
  const cancel = async (job: Job) => {
    await cancelJob(connection, job.id);
    done();
  };
  return (
    <>
      <div class="section-head">
        <h2>Indices</h2>
        {mayChange && (
          <button type="button" onClick={() => setAction("create")}>
            New index
          </button>
        )}
      </div>
      {action === "create" && (
        <Dialog title="New index" onClose={close}>
          <CreateIndex table={table} schema={schema} onDone={done} />
        </Dialog>
      )}
      {typeof action === "object" && "cancel" in action && (
        <Dialog title={`Cancel the job: ${action.cancel.kind}`} onClose={close}>
          <ActionForm action="Cancel the job" isDangerous isReady run={() => cancel(action.cancel)}>
            <p>The job ends, and what it has done so far is not kept. The table stays as it is.</p>
          </ActionForm>
        </Dialog>
      )}
      {typeof action === "object" && "log" in action && (
        <Dialog title={`Log of the job: ${action.log.kind}`} onClose={close}>
          <JobLog read={(signal) => readLog(connection, action.log.id, signal)} />
        </Dialog>
      )}
      {typeof action === "object" && "drop" in action && (
        <Dialog title={`Drop index ${action.drop}`} onClose={close}>
          <DropForm name={action.drop} drop={() => drop(action.drop)}>
            Searches compare with every row then. The rows stay.
          </DropForm>
        </Dialog>
      )}
      {indices.error && <ErrorNote error={indices.error} retry={indices.reload} />}
      {indices.value === undefined && indices.isRunning && <Waiting what="Reading indices…" />}
      {indices.value?.length === 0 && (
        <EmptyNote>The table has no index. A search compares with every row.</EmptyNote>
      )}
      <ul class="cards">
        {indices.value?.map((index) => (
          <Index
            key={index.indexName}
            index={index}
            onDrop={mayChange ? () => setAction({ drop: index.indexName }) : undefined}
          />
        ))}
      </ul>
      {/* Catalogs of other servers may have no jobs. */}
      {jobs.value !== undefined && (
        <>
          <h2>Jobs</h2>
          {jobs.value.length === 0 ? (
            <EmptyNote>No job works on the table.</EmptyNote>
          ) : (
            <ul class="cards">
              {jobs.value.map((job) => (
                <JobCard
                  key={job.id}
                  job={job}
                  onCancel={mayChange && !job.isEnded ? () => setAction({ cancel: job }) : undefined}
                  onLog={job.engine === undefined ? undefined : () => setAction({ log: job })}
                />
              ))}
            </ul>
          )}
        </>
      )}
    </>
  );
}

interface IndexProps {
  readonly index: IndexContent;
  /** Default: the caller may not drop it. */
  readonly onDrop?: (() => void) | undefined;
}

function Index({ index, onDrop }: IndexProps) {
  const { indexName, indexType, columns, status, sizeBytes, numIndexedRows, numUnindexedRows } = index;
  const part = partOf(index);
  return (
    <li>
      <strong>{indexName}</strong>
      <span class="muted">
        {indexType ?? "Index"} on {columns.join(", ")}, {status.toLowerCase()}
        {sizeBytes === undefined ? "" : `, ${formatBytes(sizeBytes)}`}
      </span>
      {onDrop && (
        <span class="card-actions">
          <button type="button" class="danger" aria-label={`Drop index ${indexName}`} onClick={onDrop}>
            Drop
          </button>
        </span>
      )}
      <label class="progress">
        <progress max={1} value={part} />
        {formatCount(numIndexedRows ?? 0n)} rows in the index
        {numUnindexedRows ? `, ${formatCount(numUnindexedRows)} not yet` : ""}
      </label>
    </li>
  );
}

interface JobCardProps {
  readonly job: Job;
  /** Default: it has ended, or the caller may not cancel it. */
  readonly onCancel: (() => void) | undefined;
  /** Default: its work has no log of its own. */
  readonly onLog: (() => void) | undefined;
}

function JobCard({ job, onCancel, onLog }: JobCardProps) {
  const { kind, state, since, until = Date.now(), isEnded, progress, engine } = job;
  const { step, done = 0, total = 0 } = progress ?? {};
  return (
    <li>
      <strong>{kind}</strong>
      <span class="badge">{state}</span>
      <span class="muted">
        {isEnded && `began ${formatTime(since)}`}
        {(!isEnded || job.until !== undefined) &&
          ` ${isEnded ? "and took" : "for"} ${formatSeconds(Math.max(0, until - since) / 1000)}`}
        {engine !== undefined && ` on ${engine === "ray" ? "Ray" : engine}`}
      </span>
      {!isEnded && (
        <progress aria-label={`${kind} is in progress`} {...(total > 0 && { max: total, value: done })} />
      )}
      {step !== undefined && (
        <span class="muted">
          {step}
          {total > 0 && `, ${formatCount(done)} of ${formatCount(total)}`}
        </span>
      )}
      {(onCancel ?? onLog) && (
        <span class="card-actions">
          {onLog && (
            <button type="button" onClick={onLog}>
              Log
            </button>
          )}
          {onCancel && (
            <button type="button" onClick={onCancel}>
              Cancel
            </button>
          )}
        </span>
      )}
    </li>
  );
}

/** The end of the log of a job, which owners of the catalog may read. */
function JobLog({ read }: { readonly read: (signal: AbortSignal) => Promise<string> }) {
  const log = useCall(read, []);
  if (log.error) return <ErrorNote error={log.error} retry={log.reload} />;
  if (log.value === undefined) return <Waiting what="Reading the log…" />;
  if (log.value === "") return <EmptyNote>The log is empty.</EmptyNote>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it
    <pre class="scroll" tabIndex={0}>
      {log.value}
    </pre>
  );
}

/** Returns the part of the rows that an index has, from 0 to 1. */
function partOf({ numIndexedRows = 0n, numUnindexedRows = 0n }: IndexContent): number {
  const all = numIndexedRows + numUnindexedRows;
  return all === 0n ? 1 : Number(numIndexedRows) / Number(all);
}

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
