import type { Call } from "../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../namespace/errors.ts";
import { type Identifier, joinIdentifier } from "../../../namespace/identifier.ts";
import type { Backend, LanceDbExtensions } from "../../../namespace/lance-namespace.ts";
import { forEachOf } from "../../dir/concurrency/for-each.ts";
import type { JobSummary } from "../../dir/jobs/job.ts";
import { createJobExtensions, type JobExtensions } from "../../dir/operations/jobs/jobs.ts";
import type { NotedTables } from "../noted-tables.ts";
import { type OpenedTable, using } from "../opened-tables.ts";
import { parseJobId } from "./job-tables.ts";

/** Options of {@link createJobCalls}. */
export interface JobCallOptions {
  readonly catalog: Pick<Backend, "extensions" | "tableOfJob">;
  /** Opens a table for a call. */
  readonly openTable: (call: Call, id: Identifier) => Promise<OpenedTable>;
  readonly maxPageSize: number;
  /** The tables that had jobs when this process saw them last, {@link MAX_LISTED} at most. */
  readonly noted: Pick<NotedTables, "all">;
}

/** The calls about jobs, and the tables of jobs. */
export interface JobCalls extends Required<Pick<Backend, "tableOfJob">> {
  readonly extensions: Pick<LanceDbExtensions, keyof JobExtensions>;
}

/** Maximum number of tables whose jobs are in the list of all jobs; each takes a description by the upstream, as the caller. */
export const MAX_LISTED = 100;

/** Number of tables whose jobs are listed at a time. */
const LISTS = 8;

/** Jobs whose tables are known by the names in their ids. */
const NAMES = { read: async () => ({ ownerOf: () => undefined }) };

/** Creates the calls by which clients follow jobs on tables of an upstream. Jobs without a table in their id are the upstream's. */
export function createJobCalls({ catalog, openTable, maxPageSize, noted }: JobCallOptions): JobCalls {
  const upstreams: Partial<JobExtensions> = catalog.extensions ?? {};
  const callsOn = (jobs: Parameters<typeof createJobExtensions>[0]["jobs"]) =>
    createJobExtensions({ jobs, maxPageSize, catalog: NAMES, cluster: undefined });

  /** Opens the table of a job; undefined for a job of the upstream. @throws LanceError TransactionNotFound */
  async function openFor(jobId: string, call: Call, hasUpstream: boolean): Promise<OpenedTable | undefined> {
    const place = parseJobId(jobId);
    const table = place && (await unlessMissing(() => openTable(call, place.table)));
    if (table === undefined && (place !== undefined || !hasUpstream)) throw noJob(jobId);
    return table;
  }
  /** Runs a call on the jobs of a table, and has those go on whose process has died. */
  function onJobs<T>(table: OpenedTable, work: (calls: JobExtensions) => Promise<T>): Promise<T> {
    return using(table, async () => {
      const answer = await work(callsOn(table.storage.jobs.of(table.table)));
      await table.goOn();
      return answer;
    });
  }
  function followed<K extends "describeJob" | "cancelJob">(name: K): JobExtensions[K] {
    const upstream = upstreams[name];
    const follow = async (request: { readonly jobId: string }, call: Call) => {
      const table = await openFor(request.jobId, call, upstream !== undefined);
      if (table === undefined) return upstream?.(request as never, call);
      return onJobs<unknown>(table, async (calls) => calls[name](request as never, call));
    };
    return follow as JobExtensions[K];
  }

  return {
    async tableOfJob(jobId) {
      return parseJobId(jobId)?.table ?? catalog.tableOfJob?.(jobId);
    },
    extensions: {
      describeJob: followed("describeJob"),
      cancelJob: followed("cancelJob"),
      async *queryJobEvents(request, call) {
        const upstream = upstreams.queryJobEvents;
        const table = await openFor(request.jobId, call, upstream !== undefined);
        try {
          const calls = table && callsOn(table.storage.jobs.of(table.table));
          const handler = calls?.queryJobEvents ?? upstream;
          if (handler !== undefined) yield* handler(request, call);
        } finally {
          table?.release();
        }
      },
      async listJobs(request, call) {
        try {
          if (upstreams.listJobs !== undefined) return await upstreams.listJobs(request, call);
        } catch (error) {
          if (!isLanceError(error, "Unsupported")) throw error;
        }
        const list = async () => {
          const found: JobSummary[] = [];
          const tables = await noted.all();
          const failures: unknown[] = [];
          await forEachOf(tables, LISTS, async (id) => {
            try {
              const table = await unlessMissing(() => openTable(call, id));
              if (table === undefined) return;
              found.push(...(await using(table, () => table.storage.jobs.of(table.table).list())));
            } catch (error) {
              call.signal.throwIfAborted();
              // A table that fails leaves the others in the list, as a damaged record does.
              call.log.warn(
                { err: error, table: joinIdentifier(id) },
                "the jobs of a table cannot be listed",
              );
              failures.push(error);
            }
          });
          if (failures.length > 0 && failures.length === tables.length) throw failures[0];
          return found.sort((a, b) => a.createdAt - b.createdAt);
        };
        return callsOn({ list, get: async () => undefined, cancel: async () => false }).listJobs(
          request,
          call,
        );
      },
    },
  };
}

/** Errors by which an upstream says that a caller has no such table. */
const MISSING = ["TableNotFound", "NamespaceNotFound", "PermissionDenied"] as const;

async function unlessMissing<T>(open: () => Promise<T>): Promise<T | undefined> {
  try {
    return await open();
  } catch (error) {
    if (MISSING.some((name) => isLanceError(error, name))) return undefined;
    throw error;
  }
}

function noJob(id: string): LanceError {
  return new LanceError("TransactionNotFound", `there is no job ${JSON.stringify(id)}`);
}
