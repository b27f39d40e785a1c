import { join } from "node:path";
import type { TestContext } from "vitest";
import { createEngine } from "../engine/engine.ts";
import { createLocalStore } from "../format/local/local-store.ts";
import { keyIn } from "../format/storage.ts";
import { silent, temporaryDirectory } from "../test-support.ts";
import { createCatalog } from "./catalog.ts";
import { createManifestTable, MANIFEST_NAME } from "./manifest/manifest-table.ts";
import type { Row } from "./state/row.ts";

/** Returns the row of a table in the root. */
export const table = (objectId: string, properties: Record<string, string> = {}): Row => ({
  objectId,
  objectType: "table",
  location: `${objectId}.lance`,
  properties,
});

/** Creates an empty base directory on a disk, and an engine that is closed at the end of the test. */
export async function openBaseDirectory(t: TestContext) {
  const base = await temporaryDirectory(t);
  const engine = createEngine({ log: silent });
  t.onTestFinished(() => engine.close());
  const store = createLocalStore();
  const manifestTable = (over = store) => createManifestTable(base, engine, over);
  return {
    base,
    engine,
    /** Location of the manifest table, as the engine and the format name it. */
    location: join(base, MANIFEST_NAME),
    dataset: { store, root: keyIn(store.keyOf(base), MANIFEST_NAME) },
    manifestTable,
    /** Opens a catalog, like a further process. */
    open: (manifest = manifestTable()) => createCatalog(manifest, silent, { maintenance: false }),
  };
}

/** Removes rows from the manifest of a base directory, like another writer that leaves what is below them. */
export async function removeRows(base: string, ...ids: string[]): Promise<void> {
  const engine = createEngine({ log: silent });
  const catalog = createCatalog(createManifestTable(base, engine, createLocalStore()), silent, {
    maintenance: false,
  });
  try {
    await catalog.mutate((draft) => {
      for (const id of ids) draft.delete(id);
    });
  } finally {
    await catalog.close();
    await engine.close();
  }
}
