import { join, resolve } from "node:path";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import type { DatasetRef } from "../../../src/backends/dir/format/dataset.ts";
import { createDirectoryBackend } from "../../../src/backends/dir/index.ts";
import { openDirectory } from "../../../src/backends/dir/open-directory.ts";
import type { DirContext } from "../../../src/backends/dir/operations/context.ts";
import type { DirectoryBackendOptions } from "../../../src/backends/dir/options.ts";
import type { OpenedStore } from "../../../src/backends/dir/stores/open-store.ts";
import { clientOf, silent, type TestClient } from "../../fixtures/dir/directory-backend.ts";
import { type Observation, observe } from "./observe.ts";

/** A recorded catalog. */
export interface World {
  readonly client: TestClient;
  readonly context: DirContext;
  /** The directory of the tables. */
  readonly base: string;
}

/** Changes of a catalog, one after the other. */
export interface Scenario {
  readonly prepare?: (world: World) => Promise<unknown>;
  /** The steps; each is acknowledged or refused as a whole, or fails with {@link DifferentOutcomes}. */
  readonly steps: readonly ((world: World) => Promise<unknown>)[];
  /**
   * Whether the engine commits by itself. It does not sync, so an unacknowledged version may exist and be broken; the
   * table is whole once that version is deleted. Default: false.
   */
  readonly byEngine?: boolean;
  /**
   * Indices of steps that ServiceUnavailable leaves open, too, because a client may repeat them without another effect
   * than that of a single one. Default: none.
   */
  readonly repeatable?: readonly number[];
  /** Returns further observations beside the catalog. Default: none. */
  readonly observe?: (world: World) => Promise<Observation>;
  /** Work that must succeed after any cut; it may change the catalog. Default: none. */
  readonly afterwards?: (world: World) => Promise<void>;
  /** Returns further states that a cut-off step may leave, beside those before and after it. */
  readonly between?: (before: Observation, after: Observation) => readonly Observation[];
}

/** Encodes rows as clients send them. */
export const rows = (...ids: number[]) =>
  tableToIPC(new Table({ id: vectorFromArray(ids, new Int32()) }), "stream");

/** Returns a table by its location. */
export const datasetOf = ({ context, base }: World, location: string): DatasetRef => ({
  store: context.store,
  root: join(base, location).slice(1),
});

/** Prepares the objects of every catalog, before a scenario adds its own. */
export async function prepareAll({ client }: World): Promise<void> {
  await client.call("createNamespace", "n", { properties: { owner: "ada" } });
  await client.upload("createTable", "n$a", {}, rows(1, 2, 3));
  await client.upload("createTable", "r", { properties: { kind: "root" } }, rows(1, 2, 3));
}

/** Returns the options that open a catalog on a storage. */
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

/** Returns all observations of a world in a scenario. */
export async function observeWorld(world: World, scenario: Scenario): Promise<Observation> {
  return { ...(await observe(world.client)), ...(await scenario.observe?.(world)) };
}
