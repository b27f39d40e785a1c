import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { drawKey } from "../../src/auth/api-keys/key-file.ts";
import { addRows, namespaceRow, tableRows } from "../loop/roots.ts";
import { type ServerProcess, startGateway } from "../support/process.ts";
import { BENCH, policySet } from "./policy-set.ts";

/** Tables of the catalog. */
export const TABLES = 10_000;

/** Headers of a caller. */
export type Headers = Readonly<Record<string, string>>;

/** A gateway to compare with others. */
export interface Side {
  readonly name: string;
  readonly server: ServerProcess;
  readonly headers: Headers;
}

/** The files of the comparisons, and the gateways that have been started with them. */
export interface World extends AsyncDisposable {
  /** Headers of callers by name; they are in the group that may read the tables. */
  readonly callers: Readonly<Record<"quiet" | "flooder", Headers>>;
  /** Starts a gateway with options, over the one catalog, which nobody changes. */
  start(name: string, options: readonly string[]): Promise<Side>;
  /** Options by what they turn on. */
  readonly options: Readonly<Record<"keys" | "policies" | "rates" | "audit", readonly string[]>>;
}

/** Makes the catalog, the keys and the policies in a folder. */
export async function makeWorld(folder: string): Promise<World> {
  const root = join(folder, "root");
  await mkdir(root);
  await addRows(root, [namespaceRow(BENCH), ...tableRows(BENCH, TABLES)]);
  const [quiet, flooder] = [drawKey(), drawKey()];
  const created = new Date().toISOString();
  const records = Object.entries({ quiet, flooder }).map(([name, { id, hash }]) => ({
    ...{ id, hash, name, created },
    ...{ role: "none", groups: [BENCH] },
  }));
  await writeFile(join(folder, "keys.json"), JSON.stringify({ keys: records }));
  await mkdir(join(folder, "policies"));
  await writeFile(join(folder, "policies", "all.cedar"), policySet());
  const servers: ServerProcess[] = [];

  const callers = { quiet: { "x-api-key": quiet.text }, flooder: { "x-api-key": flooder.text } };

  return {
    callers,
    options: {
      keys: ["--auth", "api-key", "--api-keys-file", join(folder, "keys.json")],
      policies: ["--policy-dir", join(folder, "policies")],
      rates: ["principal", "address", "total"].flatMap((of) => ["--rate-limit", `${of}=1000000`]),
      audit: ["--audit-log", join(folder, "audit.jsonl"), "--audit-required"],
    },
    async start(name, options) {
      const server = await startGateway("--root", root, "--read-only", ...options);
      servers.push(server);
      return { name, server, headers: options.includes("--auth") ? callers.quiet : {} };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
