import assert from "node:assert/strict";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { jsonOf, type RawAnswer, sendHttp } from "../support/http.ts";

/** The headers of LanceDB's remote clients. */
export const LANCEDB = { "user-agent": "LanceDB-Python-Client/0.40.0", "x-lancedb-database": "db" };

/** Calls as LanceDB's remote clients make them. */
export interface RemoteCalls {
  /** Posts JSON, or nothing, to a path below `/v1/`. */
  post<T = Record<string, unknown>>(path: string, json?: unknown): Promise<T>;
  get<T = Record<string, unknown>>(path: string): Promise<T>;
  /** Posts an Arrow IPC stream. */
  upload(path: string, body: Uint8Array): Promise<Record<string, unknown>>;
  /** Posts JSON that the gateway refuses with an error, under its own status or another one. */
  refused(name: ErrorName, path: string, json?: unknown, status?: number): Promise<string>;
  /** Waits for a job as the clients do, and returns its last description. */
  ended(jobId: unknown): Promise<JobDescription>;
}

/** A job as the clients read it. */
export interface JobDescription {
  readonly job_id: string;
  readonly job_type: string;
  readonly job_state: string;
  readonly creation_ms: number;
  readonly spec: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly failure?: { readonly message: string; readonly retryable: boolean };
}

/** Returns the headers of a connection to a database; undefined for a connection to the catalog. */
export function headersOf(database: string | undefined): Readonly<Record<string, string>> {
  const { "x-lancedb-database": _, ...catalog } = LANCEDB;
  return database === undefined ? catalog : { ...catalog, "x-lancedb-database": database };
}

/** Makes calls to the gateway at a port. @param headers Default: {@link LANCEDB} */
export function remoteCalls(port: number, headers: Readonly<Record<string, string>> = LANCEDB): RemoteCalls {
  const send = (path: string, json?: unknown) =>
    sendHttp(port, {
      path: `/v1/${path}`,
      headers,
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
  const calls: RemoteCalls = {
    post: async (path, json) => answered(await send(path, json)),
    get: async (path) => answered(await sendHttp(port, { method: "GET", path: `/v1/${path}`, headers })),
    upload: async (path, body) => {
      const own = { ...headers, "content-type": "application/vnd.apache.arrow.stream" };
      return answered(await sendHttp(port, { path: `/v1/${path}`, headers: own, body }));
    },
    async refused(name, path, json, status) {
      const answer = await send(path, json);
      const { code, httpStatus } = errorEntry(name);
      const body = jsonOf(answer);
      assert.deepEqual([answer.status, body["code"]], [status ?? httpStatus, code], answer.bytes.toString());
      return String(body["error"]);
    },
    async ended(jobId) {
      for (;;) {
        const job = await calls.post<JobDescription>("jobs/describe", { job_id: jobId });
        if (job.job_state !== "IN_PROGRESS") return job;
      }
    },
  };
  return calls;
}

function answered<T>({ status, bytes }: RawAnswer): T {
  assert.ok(status === 200 || status === 202, `${status} ${bytes}`);
  return JSON.parse(bytes.toString()) as T;
}
