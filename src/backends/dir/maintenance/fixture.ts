import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import type { TestContext } from "vitest";
import { openDirectory } from "../open-directory.ts";
import { openClient, silent, type TestClient, temporaryDirectory } from "../test-support.ts";
import { findLeftovers } from "./find-leftovers.ts";
import type { Leftover } from "./leftover.ts";

/** Three rows as an Arrow IPC stream. */
export const ROWS = tableToIPC(new Table({ id: vectorFromArray([1, 2, 3], new Int32()) }), "stream");

/** A catalog with a server on it, and the directory of its tables. */
export interface Workshop {
  readonly root: string;
  readonly base: string;
  readonly client: TestClient;
}

/** Opens an empty catalog. */
export async function openWorkshop(t: TestContext): Promise<Workshop> {
  const root = await temporaryDirectory(t);
  return { root, base: join(root, "data"), client: await openClient(t, root) };
}

/** Puts a dataset at a location, without a row in the manifest. */
export async function putUnlisted({ base, client }: Workshop, location: string): Promise<void> {
  await client.upload("createTable", "made_for_its_files", {}, ROWS);
  await client.call("deregisterTable", "made_for_its_files");
  const made = join(base, "made_for_its_files.lance");
  await rename(made, join(base, location));
  await rm(join(base, location, ".lance-deregistered"));
}

/** Writes a file below the base, with its directories. */
export async function putFile({ base }: Workshop, path: string, text = "x"): Promise<void> {
  await mkdir(dirname(join(base, path)), { recursive: true });
  await writeFile(join(base, path), text);
}

/** Returns the leftovers that a second process finds, and removes them if `remove` is set. */
export async function collect(
  { root }: Workshop,
  before = Date.now() + 60_000,
  remove: (leftover: Leftover) => boolean | Promise<boolean> = () => false,
): Promise<string[]> {
  const { context, close } = await openDirectory({ root, log: silent });
  try {
    const found: string[] = [];
    for await (const leftover of findLeftovers(context, before)) {
      found.push(`${leftover.kind}: ${leftover.path}`);
      if (await remove(leftover)) await leftover.remove();
    }
    return found.sort();
  } finally {
    await close();
  }
}
