import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { pino } from "pino";
import type { TestContext } from "vitest";
import { createDirectoryBackend, type DirectoryBackend } from "../../src/backends/dir/index.ts";
import type { FunctionsKey } from "../../src/backends/dir/jobs/functions/open-functions.ts";
import { startRayStandIn } from "../fixtures/ray/ray-stand-in.ts";
import { type SimulatedDriver, simulateDriver } from "../fixtures/ray/simulated-driver.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startServer } from "../support/server.ts";
import { LANCEDB, type RemoteCalls, remoteCalls } from "./remote-calls.ts";

/** The source of a function. */
export const SOURCE =
  "from __future__ import annotations\n\ndef shout(word: str) -> str:\n    return word.upper()\n";

/** The request by which LanceDB's client registers a function. */
export function registration({
  source = SOURCE,
  ...more
}: { source?: string } & Record<string, unknown> = {}) {
  return {
    artifact: {
      ...{ kind: "python_callable", entrypoint: "shout" },
      digest: `sha256:${createHash("sha256").update(source).digest("hex")}`,
      content: { encoding: "base64", data: Buffer.from(source).toString("base64") },
      adapter: { kind: "scalar_to_arrow_batch", version: 1 },
    },
    signature: {
      inputs: [{ name: "word", arrow_type: "utf8", nullable: false }],
      output: { kind: "scalar", arrow_type: "utf8", nullable: false },
    },
    runtime: { kind: "python", python_version: "3.11", environment: { kind: "pip" } },
    ...more,
  };
}

/** A version of a function as the clients read it. */
export interface Version {
  readonly name: string;
  readonly version: string;
  readonly object_id: string;
  readonly image: { readonly manifest_digest: string };
  readonly [field: string]: unknown;
}

/** The request by which the clients add a column that a function computes. */
export function columnOf({ name, version, object_id, image }: Version, column: string, path = "name") {
  const application = {
    function: { name, version, object_id, location: "x", manifest_digest: image.manifest_digest },
    inputs: [{ parameter: "word", kind: "column", value: { path } }],
    output: { kind: "scalar", arrow_type: "utf8", nullable: false },
  };
  return {
    new_columns: [{ name: column, all_null: true }],
    auto_refresh_enabled: true,
    function: {
      ...{ application, binding_metadata_version: 1 },
      input_bindings: [{ parameter: "word", field_path: path, arrow_type: "utf8", nullable: true }],
      input_schema: { fields: [{ name: "word", nullable: true, type: { type: "utf8" } }] },
      output_schema: { fields: [{ name: column, nullable: true, type: { type: "utf8" } }] },
      outputs: [{ result_field: "$value", output_name: column, output_ordinal: 0 }],
    },
  };
}

/** Options of a service. */
export interface ServiceChanges {
  /** Default: with a key. */
  readonly functions?: FunctionsKey;
  readonly context?: Parameters<typeof startServer>[2];
  /** Headers of the client. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Directory of the catalog. Default: one of its own. */
  readonly root?: string;
}

/** Serves a directory with a cluster that runs functions. */
export async function serveFunctions(
  t: TestContext,
  drive: (driver: SimulatedDriver) => unknown,
  { functions = { key: "k".repeat(32) }, context = {}, headers = {}, root: given }: ServiceChanges = {},
) {
  const root = given ?? (await ownDirectory(t));
  let backend: DirectoryBackend | undefined;
  const ray = await startRayStandIn(t, (job) => drive(simulateDriver(backend as DirectoryBackend, job)));
  const cluster = {
    ...{ addresses: [ray.url], gatewayUrl: "http://127.0.0.1:1", minRows: 0, workers: 2 },
    ...{ kinds: ["backfill_column"], pollMs: [5, 20] as const, functions },
  };
  backend = await createDirectoryBackend({ root, log: pino({ level: "silent" }), cluster });
  const server = await startServer(backend, {}, context);
  t.onTestFinished(server.close);
  const as = (more: Readonly<Record<string, string>> = {}) =>
    remoteCalls(server.port, { ...LANCEDB, ...more });
  return { as, calls: as(headers), root, ray };
}

async function ownDirectory(t: TestContext): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  t.onTestFinished(remove);
  return path;
}

/** Creates the table `t`. */
export async function withTable(calls: RemoteCalls): Promise<RemoteCalls> {
  await calls.upload("table/t/create/", personStream(people(3)));
  return calls;
}

/** Registers a function as LanceDB's client does, and returns its version. */
export async function register(calls: RemoteCalls, name = "shout", more = {}): Promise<Version> {
  const { job_id } = await calls.post(`function/${name}/create`, registration(more));
  const { job_state, job_type, result } = await calls.ended(job_id);
  assert.deepEqual([job_state, job_type], ["DONE", "create_function"]);
  return result as unknown as Version;
}
