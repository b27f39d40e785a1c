import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pythonInterpreter } from "../../scripts/python-environment.ts";
import { BUCKET, type StoreServer } from "../../test/clients/support/store-servers.ts";
import { type ServerProcess, startGatewayOf, startProcess, startServer } from "../support/process.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const ROOT_MAKER = join(import.meta.dirname, "..", "catalog", "peer.py");
const ADAPTER = join(import.meta.dirname, "..", "data", "peer.py");

/** A server, and the link through which it reaches the bucket. */
export interface Side {
  readonly name: string;
  readonly server: ServerProcess;
  readonly link: ServerProcess;
  stop(): Promise<void>;
}

type Start = (
  root: string,
  options: Readonly<Record<string, string>>,
  checkout: string,
) => Promise<ServerProcess>;

const startAdapter: Start = (root, options) =>
  startProcess([pythonInterpreter(), ADAPTER, "serve", root, JSON.stringify(options)], /^(\d+)$/);

const startOnBucket =
  (...flags: readonly string[]): Start =>
  (root, options, checkout) =>
    startGatewayOf(
      checkout,
      "--root",
      root,
      // Its requests would count as those of the calls beside it.
      "--table-upkeep=off",
      ...flags,
      ...Object.entries(options).map(([key, value]) => `--storage-option=${key}=${value}`),
    );

const SERVERS: Readonly<Record<string, Start>> = {
  gateway: startOnBucket(),
  "gateway, staleness 100 ms": startOnBucket("--max-staleness", "100"),
  "Rust REST adapter": startAdapter,
};

/** The names of all servers that can be compared. */
export const SIDES = Object.keys(SERVERS);

/** Name of the gateway of another checkout. */
const BASE = "gateway before";

/** Where and for what servers are started. */
export interface World {
  readonly store: StoreServer;
  /** Number of tables of each catalog. */
  readonly tables: number;
  readonly delayMs: number;
}

/** Starts a server on a new catalog, behind a link of its own. */
export async function startSide(name: string, { store, tables, delayMs }: World): Promise<Side> {
  return startServerOf(name, SERVERS[name] as Start, CHECKOUT, { store, tables, delayMs });
}

/** Starts the gateway of another checkout in the same way. */
export async function startBase(checkout: string, world: World): Promise<Side> {
  return startServerOf(BASE, startOnBucket(), checkout, world);
}

async function startServerOf(
  name: string,
  start: Start,
  checkout: string,
  { store, tables, delayMs }: World,
): Promise<Side> {
  const root = `s3://${BUCKET}/${name.replaceAll(/\W+/g, "-")}-${tables}`;
  const direct = JSON.stringify(store.options);
  execFileSync(pythonInterpreter(), [ROOT_MAKER, "root", root, String(tables), direct]);
  const link = await startServer("bucket/link.ts", String(store.port), String(delayMs));
  const options = { ...store.options, aws_endpoint: `http://127.0.0.1:${link.port}` };
  const server = await start(root, options, checkout);
  const stop = async () => {
    await Promise.all([server.stop(), link.stop()]);
  };
  return { name, server, link, stop };
}
