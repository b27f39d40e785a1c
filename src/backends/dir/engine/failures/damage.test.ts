import assert from "node:assert/strict";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, type TestContext, test } from "vitest";
import {
  clientOf,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { temporaryDirectory as openDirectory } from "../../../../../test/support/directory.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { createDirectoryBackend } from "../../index.ts";
import { toEngineError } from "./errors.ts";

describe("damage", () => {
  /** Texts of engine 0.39 about files that it cannot read. */
  const SAID: readonly string[] = [
    "lance error: Encountered corrupt file a/secret.arrow: Io error: Unknown frame descriptor, /cargo/deletion.rs:160:18",
    "Failed to get next batch from stream: lance error: A prerequisite task failed: Not found: secret/_deletions/0-2-1.arrow, /cargo/local.rs:273:40",
    "lance error: LanceError(IO): Generic N/A error: Wrapped error: Not found: Wrapped error: Not found: /secret/_indices/5f/tokens.lance, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: Invalid input, Global buffer 0 position 99999 is outside file of size 55267",
    "Failed to get next batch from stream: Invalid input, Invalid direct PageLayout encoding: failed to decode Protobuf message",
    "Invalid input, Column 2 page 0 has 4 buffer offsets but 3 buffer sizes",
    "Invalid input, Sparse structural item count overflows",
    "Failed to execute merge insert: GenericFailure, lance error: LanceError(Arrow): Parser error: Unable to get root as footer: RangeOutOfBounds",
    "lance error: LanceError(IO): failed to decode Protobuf message: Manifest.fields: invalid tag value: 0, /cargo/dataset.rs:793:32",
    "lance error: LanceError(Schema): Field 'list' (id=2) references parent id -9, which must appear earlier, /cargo/datatypes.rs:1:2",
    "lance error: LanceError(Arrow): expected `,` or `}` at line 1 column 218, /cargo/inverted_index.rs:344:20",
    "lance error: LanceError(Index): HNSW graph has 9 nodes but its vector storage has 8 rows, /cargo/builder.rs:1:2",
    "lance error: Version conflict error: Attempt to use the Lance v2.1 reader for a different file version",
    "lance error: Encountered internal error. Please file a bug report at https://example.com/issues. File did not contain any global buffers, schema expected, /cargo/reader.rs:972:24",
    "Failed to get next batch from stream: lance error: LanceError(Arrow): Parser error: Arrow file does not contain correct footer, /cargo/deletion.rs:157:49",
    "Failed to get next batch from stream: lance error: Query Execution error: Execution error: Failed to search partitions: Encountered corrupt file miniblock_metadata: final chunk, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: Invalid input, I/O request ranges must be sorted by start offset: range at index 0 is 9..13",
    "lance error: Encountered internal error. Please file a bug report at https://example.com/issues. RowAddrTreeMap::from_sorted_iter called with non-sorted input, /cargo/flat.rs:60:29",
    "lance error: LanceError(Arrow): Invalid argument error: Last offset 67977 of LargeBinary is larger than values length 2441, /cargo/x.rs:1:2",
    "Table 't' exists but could not be loaded (it may be corrupt or incomplete): secret",
    "Failed to get next batch from stream: lance error: LanceError(IO): unknown cookie value, /cargo/index.rs:1:2",
    "lance error: LanceError(IO): size is greater than supported, /cargo/index.rs:1:2",
    "Failed to get next batch from stream: lance error: LanceError(IO): An element was out of order at index: 3, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: lance error: LanceError(Index): unsupported token set format dst, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: lance error: LanceError(Index): failed to load fst tokens: FST error, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: Invalid input, cannot read Range(0..600) from columns with 88 rows",
    "Invalid input, Data file 'a.lance' (fragment 0) has 11 field ids but 12 column indices. These must be the same length",
    'Failed to get next batch from stream: task 9 panicked with message "not implemented: Bitpacking word size must be 8, 16, 32, or 64"',
    "Failed to get next batch from stream: lance error: LanceError(Arrow): Invalid argument error: Max offset of 999 exceeds length of values 6, /cargo/x.rs:1:2",
    "Failed to get next batch from stream: lance error: A prerequisite task failed: LanceError(Arrow): Parser error: Unable to get root as footer: Unaligned",
  ];

  test("texts about files that cannot be read mean damage, and do not show paths", () => {
    for (const text of SAID) {
      const cause = new Error(text);
      const error = toEngineError(cause);
      assert.equal(error.kind, "DataLoss", text);
      assert.equal(error.cause, cause);
      assert.match(error.message, /^a file of the table is damaged or missing; the server's log /);
    }
  });

  const READS: readonly ((client: TestClient) => Promise<unknown>)[] = [
    (client) => client.query("t", { k: 99n }),
  ];

  const WRITES: readonly ((client: TestClient) => Promise<unknown>)[] = [
    (client) =>
      client.upload(
        "mergeInsertIntoTable",
        "t",
        { on: ["id"], whenMatchedUpdateAll: true, whenNotMatchedInsertAll: true },
        rows([4, 100]),
      ),
    (client) =>
      client.call("updateTable", "t", {
        predicate: "id = 4",
        updates: [{ column: "name", expression: "'new'" }],
      }),
  ];

  const INDEXED = (client: TestClient) => client.query("t", { k: 99n, filter: "id = 4" });

  interface Damage {
    /** The damaged file: the last of the directory whose name has this ending. */
    readonly file: readonly [directory: string, ending: string];
    /** Damages the bytes; undefined removes the file. */
    change(bytes: Buffer): Buffer | undefined;
    readonly fails: readonly ((client: TestClient) => Promise<unknown>)[];
  }

  /** Replaces a text in the metadata of a file. */
  const renamed = (from: string, to: string) => (bytes: Buffer) => {
    const at = bytes.lastIndexOf(from);
    assert.ok(at > 0);
    return Buffer.concat([bytes.subarray(0, at), Buffer.from(to), bytes.subarray(at + to.length)]);
  };

  const DAMAGES: Readonly<Record<string, Damage>> = {
    "a missing data file": {
      file: ["data", ".lance"],
      change: () => undefined,
      fails: [...READS, ...WRITES],
    },
    "a data file without its end": {
      file: ["data", ".lance"],
      change: (bytes) => bytes.subarray(0, -9),
      fails: [...READS, ...WRITES],
    },
    "a data file with an unknown encoding": {
      file: ["data", ".lance"],
      change: renamed("encodings21.PageLayout", "encodings21.PageLayouX"),
      fails: READS,
    },
    "a missing deletion file": {
      file: ["_deletions", ".arrow"],
      change: () => undefined,
      fails: [...READS, ...WRITES],
    },
    "a deletion file with a broken footer": {
      file: ["_deletions", ".arrow"],
      change: (bytes) => Buffer.concat([bytes.subarray(0, -60), Buffer.alloc(50, 255), bytes.subarray(-10)]),
      fails: [...READS, ...WRITES],
    },
    // The engine allocates this before it compares it with the file, and the process ends.
    "a deletion file with a length of 128 TiB": {
      file: ["_deletions", ".arrow"],
      change(bytes) {
        const damaged = Buffer.from(bytes);
        // The length of the last batch, in front of the footer's padding, its length and the magic.
        const bodyLength = damaged.length - 26;
        assert.ok(damaged.readBigInt64LE(bodyLength) < 1024n);
        damaged.writeUInt8(0x80, bodyLength + 5);
        return damaged;
      },
      fails: [...READS, ...WRITES],
    },
    "an index with a broken page": {
      file: ["_indices", "page_lookup.lance"],
      change: renamed("ColumnEncoding", "ColumnEncodinX"),
      fails: [INDEXED],
    },
    "a missing part of an index": {
      file: ["_indices", "page_data.lance"],
      change: () => undefined,
      fails: [INDEXED],
    },
    "a manifest that ends early": {
      file: ["_versions", ".manifest"],
      change: (bytes) => bytes.subarray(0, -1),
      fails: [...READS, ...WRITES],
    },
    // The engine fails without a word where it follows these numbers.
    "a manifest that names a place beyond its end": {
      file: ["_versions", ".manifest"],
      change(bytes) {
        const damaged = Buffer.from(bytes);
        damaged.writeBigInt64LE(1_000_000n, damaged.length - 16);
        return damaged;
      },
      fails: [...READS, ...WRITES],
    },
    "a manifest of another length than it says": {
      file: ["_versions", ".manifest"],
      change(bytes) {
        const damaged = Buffer.from(bytes);
        damaged.writeUInt32LE(1_000_000, Number(damaged.readBigInt64LE(damaged.length - 16)));
        return damaged;
      },
      fails: [...READS, ...WRITES],
    },
  };

  describe("a damaged file", () => {
    let template: string;
    beforeAll(async () => {
      const directory = await openDirectory();
      template = directory.path;
      await writeTable(template);
      return () => directory.remove();
    });
    for (const [what, { file, change, fails }] of Object.entries(DAMAGES)) {
      test(`is DataLoss, and a change that meets it changes nothing: ${what}`, async (t) => {
        const root = await temporaryDirectory(t);
        await cp(template, root, { recursive: true });
        const path = await find(join(root, "data", "t.lance", file[0]), file[1]);
        const bytes = await readFile(path);
        const damaged = change(bytes);
        if (damaged === undefined) await rm(path);
        else await writeFile(path, damaged);
        const client = await openClient(t, root);
        for (const call of [...fails, ...fails]) {
          await assert.rejects(call(client), (error) => {
            assert.ok(error instanceof LanceError);
            assert.deepEqual([error.kind, error.status], ["DataLoss", 500], String(error.cause));
            assert.doesNotMatch(error.message, /t\.lance/);
            return true;
          });
        }
        await client.close();
        await writeFile(path, bytes);
        assert.deepEqual(await idsIn(t, root), [0, 1, 2, 4, 5]);
      });
    }
  });

  /** Writes a table with a deleted row and an index. */
  async function writeTable(root: string): Promise<void> {
    await mkdir(root, { recursive: true });
    const client = clientOf(await createDirectoryBackend({ root, log: silent }));
    await client.upload("createTable", "t", {}, rows([0, 1, 2, 3, 4, 5]));
    await client.call("createTableScalarIndex", "t", { column: "id", indexType: "BTREE" });
    await client.call("deleteFromTable", "t", { predicate: "id = 3" });
    await client.close();
  }

  async function find(directory: string, ending: string): Promise<string> {
    const names = (await readdir(directory, { recursive: true })).filter((name) => name.endsWith(ending));
    return join(directory, names.sort()[0] as string);
  }

  async function idsIn(t: TestContext, root: string): Promise<number[]> {
    const client = await openClient(t, root);
    return idsOf(await client.query("t", { k: 99n })).sort((a, b) => a - b);
  }
});
