import { useEffect } from "preact/hooks";
import type { IndexContent } from "../../gen/lance/namespace/v1/index_pb.ts";
import { formatBytes, formatCount } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { EmptyNote, ErrorNote, Waiting } from "../shell/notes.tsx";
import { type Job, listJobs } from "./jobs.ts";
import type { TableContext } from "./table-context.ts";

/** Time between two looks at work that is under way, in milliseconds. */
const INTERVAL_MS = 3_000;

/** The indices of a table, how much of the table is in each, and the jobs that work on it. */
export function Indices({ table: { connection, id, at } }: { table: TableContext }) {
  const { namespace } = connection;
  const { branch } = at;
  const indices = useCall(
    async (signal) => await Array.fromAsync(namespace.listTableIndices({ id, branch }, { signal })),
    [namespace, id.join("/"), branch],
  );
  const jobs = useCall((signal) => listJobs(connection, id, signal), [connection, id.join("/")]);
  const isUnderWay =
    jobs.value?.some(({ isEnded }) => !isEnded) || indices.value?.some((index) => partOf(index) < 1);
  useEffect(() => {
    if (!isUnderWay) return;
    const timer = setInterval(() => {
      indices.reload();
      jobs.reload();
    }, INTERVAL_MS);
    return () => clearInterval(timer);
  }, [isUnderWay]);
  return (
    <>
      <h2>Indices</h2>
      {indices.error && <ErrorNote error={indices.error} retry={indices.reload} />}
      {indices.value === undefined && indices.isRunning && <Waiting what="Reading indices…" />}
      {indices.value?.length === 0 && (
        <EmptyNote>The table has no index. A search compares with every row.</EmptyNote>
      )}
      <ul class="cards">
        {indices.value?.map((index) => (
          <Index key={index.indexName} index={index} />
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
                <JobCard key={job.id} job={job} />
              ))}
            </ul>
          )}
        </>
      )}
    </>
  );
}

function Index({ index }: { index: IndexContent }) {
  const { indexName, indexType, columns, status, sizeBytes, numIndexedRows, numUnindexedRows } = index;
  const part = partOf(index);
  return (
    <li>
      <strong>{indexName}</strong>
      <span class="muted">
        {indexType ?? "Index"} on {columns.join(", ")}, {status.toLowerCase()}
        {sizeBytes === undefined ? "" : `, ${formatBytes(sizeBytes)}`}
      </span>
      <label class="progress">
        <progress max={1} value={part} />
        {formatCount(numIndexedRows ?? 0n)} rows in the index
        {numUnindexedRows ? `, ${formatCount(numUnindexedRows)} not yet` : ""}
      </label>
    </li>
  );
}

function JobCard({ job: { kind, state, detail } }: { job: Job }) {
  return (
    <li>
      <strong>{kind}</strong>
      <span class="badge">{state}</span>
      {detail !== "" && <span class="muted">{detail}</span>}
    </li>
  );
}

/** Returns the part of the rows that an index has, from 0 to 1. */
function partOf({ numIndexedRows = 0n, numUnindexedRows = 0n }: IndexContent): number {
  const all = numIndexedRows + numUnindexedRows;
  return all === 0n ? 1 : Number(numIndexedRows) / Number(all);
}
