import { join, resolve } from "node:path";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import type { DatasetRef } from "../../../src/backends/dir/format/dataset.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { openDirectory } from "../../../src/backends/dir/open-directory.ts";
import type { DirContext } from "../../../src/backends/dir/operations/context.ts";
import type { DirectoryBackendOptions } from "../../../src/backends/dir/options.ts";
import type { OpenedStore } from "../../../src/backends/dir/stores/open-store.ts";
import { clientOf, silent, type TestClient } from "../../../src/backends/dir/test-support.ts";
import { type Observation, observe } from "./observe.ts";

/** A catalog that is recorded. */
export interface World {
  readonly client: TestClient;
  readonly context: DirContext;
  /** The directory of the tables. */
  readonly base: string;
}

/** Changes of a catalog, one after the other. */
export interface Scenario {
  readonly prepare?: (world: World) => Promise<unknown>;
  /** Each is acknowledged or refused as a whole. */
  readonly steps: readonly ((world: World) => Promise<unknown>)[];
  /**
   * Whether the engine commits by itself. It does not sync, so a version that is not acknowledged may be there and be
   * broken; the table is whole once that version is deleted. Default: false.
   */
  readonly byEngine?: boolean;
  /** What else is seen, beside the catalog. Default: nothing. */
  readonly observe?: (world: World) => Promise<Observation>;
  /** What has to work after any cut; it may change the catalog. Default: nothing. */
  readonly afterwards?: (world: World) => Promise<void>;
  /** What else may be seen when a step was cut off, beside what was there before and after it. */
  readonly between?: (before: Observation, after: Observation) => readonly Observation[];
}

/** Rows as clients send them. */
export const rows = (...ids: number[]) =>
  tableToIPC(new Table({ id: vectorFromArray(ids, new Int32()) }), "stream");

/** A table by its location. */
export const datasetOf = ({ context, base }: World, location: string): DatasetRef => ({
  store: context.store,
  root: join(base, location).slice(1),
});

/** What every catalog has before a scenario prepares more. */
export async function prepareAll({ client }: World): Promise<void> {
  await client.call("createNamespace", "n", { properties: { owner: "ada" } });
  await client.upload("createTable", "n$a", {}, rows(1, 2, 3));
  await client.upload("createTable", "r", { properties: { kind: "root" } }, rows(1, 2, 3));
}

/** How a catalog is opened on a storage. */
export function optionsOf(storage: OpenedStore): DirectoryBackendOptions {
  return { root: storage.root, storage, log: silent, maintenance: false };
}

/** Starts a gateway on a storage. */
export async function openWorld(storage: OpenedStore): Promise<World & { close(): Promise<unknown> }> {
  const options = optionsOf(storage);
  const client = clientOf(await createDirectoryBackend(options));
  const { context, close } = await openDirectory(options).catch(async (error: unknown) => {
    await client.close();
    throw error;
  });
  const base = resolve("/", storage.root, "data");
  return { client, context, base, close: () => Promise.all([client.close(), close()]) };
}

/** All that is seen of a world in a scenario. */
export async function observeWorld(world: World, scenario: Scenario): Promise<Observation> {
  return { ...(await observe(world.client)), ...(await scenario.observe?.(world)) };
}
