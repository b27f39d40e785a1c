import assert from "node:assert/strict";
import { type GatewayProcess, startGateway } from "../clients/support/gateway.ts";
import { BUCKET, startS3 } from "../clients/support/store-servers.ts";

/** A gateway with an empty catalog for the sessions of engines. */
export interface EngineCatalog {
  readonly uri: string;
  /** Variables by which clients of the storage find their credentials, which the gateway does not hand out. */
  readonly credentials: Readonly<Record<string, string>>;
  /** Returns the operations of the versions that the gateway says to have adopted, in the order of the versions. */
  operationsPast(table: string): Promise<readonly string[]>;
  close(): Promise<void>;
}

interface CatalogKind {
  readonly name: string;
  readonly managed: boolean;
  readonly open: () => Promise<EngineCatalog>;
}

const MANAGED = "--managed-versioning";

/** The catalogs on which each engine has a session. */
export const CATALOGS: readonly CatalogKind[] = [
  { name: "a disk with unmanaged versions", managed: false, open: () => openDisk() },
  { name: "a disk with managed versions", managed: true, open: () => openDisk(MANAGED) },
  { name: "a bucket with managed versions", managed: true, open: () => openBucket(MANAGED) },
];

async function openDisk(...args: readonly string[]): Promise<EngineCatalog> {
  const gateway = await startGateway(...args);
  return { ...catalogOf(gateway), credentials: {}, close: gateway.close };
}

/** Opens a catalog in a bucket, which the gateway reaches at another address than the engines. */
async function openBucket(...args: readonly string[]): Promise<EngineCatalog> {
  const server = await startS3();
  const options = Object.entries(server.options).map(([key, value]) => `--storage-option=${key}=${value}`);
  const endpoint = `aws_endpoint=http://localhost:${server.port}`;
  const places = [`--root=s3://${BUCKET}/engines`, `--client-storage-option=${endpoint}`];
  const gateway = await startGateway(...places, ...options, ...args).catch(async (error) => {
    await server.close();
    throw error;
  });
  return {
    ...catalogOf(gateway),
    credentials: {
      AWS_ACCESS_KEY_ID: server.options["aws_access_key_id"] as string,
      AWS_SECRET_ACCESS_KEY: server.options["aws_secret_access_key"] as string,
    },
    async close() {
      await gateway.close();
      await server.close();
    },
  };
}

function catalogOf({ uri, log }: GatewayProcess): Pick<EngineCatalog, "uri" | "operationsPast"> {
  return {
    uri,
    async operationsPast(table) {
      const versions = adoptedVersions(log, table);
      return Promise.all(versions.map((version) => operationOf(uri, table, version)));
    },
  };
}

/** Returns the numbers of the versions of a table that a log says to have been adopted. */
function adoptedVersions(log: readonly string[], table: string): readonly number[] {
  const versions: number[] = [];
  for (const line of log) {
    if (!line.includes("adopted versions")) continue;
    const { table: directory, from, to } = JSON.parse(line) as { table: string; from: number; to: number };
    if (!directory.endsWith(`_${table}`)) continue;
    for (let version = from; version <= to; version++) versions.push(version);
  }
  return versions.sort((a, b) => a - b);
}

/** Returns the name of the operation that made a version. */
async function operationOf(uri: string, table: string, version: number): Promise<string> {
  const answer = await fetch(`${uri}/v1/transaction/${encodeURIComponent(`${table}$${version}`)}/describe`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  const { properties } = (await answer.json()) as { properties?: { operation?: string } };
  assert.ok(properties?.operation, `version ${version} of ${table} has no operation`);
  return properties.operation;
}
