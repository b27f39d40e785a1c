import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { encodeRows } from "../../src/backends/dir/catalog/manifest/row-codec.ts";
import type { Row } from "../../src/backends/dir/catalog/state/row.ts";
import { createEngine } from "../../src/backends/dir/engine/engine.ts";
import { commitChange } from "../../src/backends/dir/format/changes/commit.ts";
import { createLocalStore } from "../../src/backends/dir/format/local/local-store.ts";
import type { DataFragment } from "../../src/gen/lance/format/table_pb.ts";
import { Transaction_AppendSchema } from "../../src/gen/lance/format/transaction_pb.ts";

/** Rows that are encoded at a time. */
const PIECE = 100_000;

/** Returns the row of a namespace. */
export const namespaceRow = (objectId: string): Row => ({
  objectId,
  objectType: "namespace",
  location: undefined,
  properties: {},
});

/** Returns the row of a table, with a location of its own. */
export const tableRow = (objectId: string): Row => ({
  objectId,
  objectType: "table",
  location: `${objectId.replaceAll("$", "-")}.dir`,
  properties: {},
});

/** Returns the rows of numbered tables in a namespace. */
export function* tableRows(namespace: string, count: number): Generator<Row> {
  for (let number = 0; number < count; number++) {
    yield tableRow(`${namespace}$t${String(number).padStart(7, "0")}`);
  }
}

/** Adds rows to the manifest of a root as another writer would; creates it if it does not exist. */
export async function addRows(root: string, rows: Iterable<Row>): Promise<void> {
  const location = join(root, "__manifest");
  await mkdir(location, { recursive: true });
  const engine = createEngine({ log: pino({ level: "silent" }) });
  try {
    await engine.create(location, encodeRows([]), "create").catch(() => {});
    const { table, release } = await engine.acquire(location);
    for (const piece of pieces(rows)) await table.add(encodeRows(piece), "append");
    release();
  } finally {
    await engine.close();
  }
}

/** Gives a table a number of fragments, which are all like its first one. */
export async function setFragments(location: string, count: number): Promise<void> {
  const store = createLocalStore();
  await commitChange({ store, root: store.keyOf(location) }, (manifest) => {
    const first = manifest.fragments[0] as DataFragment;
    manifest.fragments = Array.from({ length: count }, (_, i) => ({ ...first, id: BigInt(i) }));
    manifest.maxFragmentId = count - 1;
    return { operation: { case: "append", value: create(Transaction_AppendSchema) } };
  });
}

function* pieces(rows: Iterable<Row>): Generator<Row[]> {
  let piece: Row[] = [];
  for (const row of rows) {
    piece.push(row);
    if (piece.length < PIECE) continue;
    yield piece;
    piece = [];
  }
  if (piece.length > 0) yield piece;
}
