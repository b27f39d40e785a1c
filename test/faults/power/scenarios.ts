import { cp } from "node:fs/promises";
import { join } from "node:path";
import {
  createManifestTable,
  MANIFEST_NAME,
} from "../../../src/backends/dir/catalog/manifest/manifest-table.ts";
import { pruneVersions } from "../../../src/backends/dir/format/versions/prune.ts";
import { migrate } from "../../../src/backends/dir/maintenance/migrate.ts";
import { CreateTableMode, InsertMode } from "../../../src/gen/lance/namespace/v1/data_pb.ts";
import { DropNamespaceBehavior } from "../../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { RegisterTableMode } from "../../../src/gen/lance/namespace/v1/table_pb.ts";
import { LanceError } from "../../../src/namespace/errors.ts";
import { stageNext } from "../../fixtures/dir/batch.ts";
import { JOB_SCENARIOS } from "./job-scenarios.ts";
import { sideBySide } from "./side-by-side.ts";
import { UPKEEP_SCENARIOS } from "./upkeep-scenarios.ts";
import { UPLOAD_SCENARIOS } from "./upload-scenarios.ts";
import { datasetOf, rows, type Scenario, type World } from "./world.ts";

const insertNew = { on: ["id"], whenNotMatchedInsertAll: true };
const overwrite = { mode: CreateTableMode.OVERWRITE };

/** Stages the next version of some root tables as a client does. */
async function stage(world: World, ...names: string[]) {
  return Promise.all(
    names.map(async (name) => {
      const staged = await stageNext(datasetOf(world, `${name}.lance`), `note${Math.random()}`);
      return { id: [name], version: staged.version, manifestPath: staged.manifestPath };
    }),
  );
}

/** A root table is declared in the time between its row and its data. */
const declaredFirst: Scenario["between"] = (before, after) => {
  const created = Object.keys(after).filter((id) => !(id in before));
  return [{ ...before, ...Object.fromEntries(created.map((id) => [id, "declared {}"])) }];
};

/** A deregistered table keeps its data, which is registered under its old name. */
const deregisterAndBack: Scenario["steps"] = [
  ({ client }) => client.call("deregisterTable", "r"),
  ({ client }) => client.call("registerTable", "r", { location: "r.lance", mode: RegisterTableMode.CREATE }),
];

/** Joins all fragments of the manifest, as its background work does when there are many. */
async function joinFragments({ context }: World): Promise<void> {
  const { layout, engine, store, clock } = context;
  const table = createManifestTable(layout.base, engine, store, clock);
  const { version } = await table.head();
  const state = await table.read(version);
  const { fragments = [] } = (await table.manifestOf(version)) ?? {};
  try {
    await table.join(version, await table.prepareJoin(version, state, fragments));
  } catch (error) {
    // No client gets the outcome of a join; the next join begins again.
    throw new LanceError("OutcomeUnknown", "the join failed", { cause: error });
  } finally {
    await table.close();
  }
}

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  create: {
    steps: [
      ({ client }) => client.upload("createTable", "n$new", { properties: { a: "b" } }, rows(4, 5)),
      ({ client }) => client.upload("createTable", "n$new", {}, rows(6)),
    ],
  },
  "create in the root": {
    steps: [
      ({ client }) => client.upload("createTable", "new", {}, rows(4, 5)),
      ({ client }) => client.upload("createTable", "r", {}, rows(6)),
    ],
    between: declaredFirst,
  },
  "declare in a namespace": {
    steps: [
      ({ client }) => client.call("declareTable", "n$new", { properties: { a: "b" } }),
      ({ client }) => client.call("declareTable", "n$new"),
      ({ client }) => client.call("dropTable", "n$new"),
      ({ client }) => client.call("declareTable", "n$new"),
    ],
  },
  "first rows of a declared table": {
    byEngine: true,
    prepare: ({ client }) => client.call("declareTable", "n$d"),
    steps: [
      ({ client }) => client.upload("createTable", "n$d", {}, rows(4, 5)),
      ({ client }) => client.upload("insertIntoTable", "n$d", {}, rows(6)),
    ],
  },
  overwrite: {
    byEngine: true,
    steps: [
      ({ client }) => client.upload("createTable", "n$a", overwrite, rows(7, 8)),
      ({ client }) =>
        client.upload("createTable", "r", { ...overwrite, properties: { new: "yes" } }, rows(9)),
    ],
  },
  "overwrite with other properties": {
    prepare: ({ client }) => client.call("declareTable", "n$d", { properties: { of: "declared" } }),
    steps: [
      ({ client }) =>
        client.upload("createTable", "n$a", { ...overwrite, properties: { of: "new" } }, rows(7, 8)),
      ({ client }) =>
        client.upload("createTable", "r", { ...overwrite, properties: { kind: "new" } }, rows(9)),
      ({ client }) => client.upload("createTable", "n$d", { properties: { of: "rows" } }, rows(1)),
    ],
  },
  drop: {
    steps: [
      ({ client }) => client.call("dropTable", "n$a"),
      ({ client }) => client.call("dropTable", "r"),
      ({ client }) => client.call("dropTable", "r"),
    ],
  },
  "drop, create and deregister in the root": {
    steps: [
      ({ client }) => client.call("dropTable", "r"),
      ({ client }) => client.call("declareTable", "r"),
      ({ client }) => client.call("deregisterTable", "r"),
    ],
  },
  cascade: {
    prepare: async ({ client }) => {
      await client.upload("createTable", "n$b", {}, rows(1));
      await client.call("createNamespace", "n$m");
      await client.upload("createTable", "n$m$c", {}, rows(2));
    },
    steps: [
      ({ client }) => client.call("dropNamespace", "n", {}),
      ({ client }) => client.call("dropNamespace", "n", { behavior: DropNamespaceBehavior.CASCADE }),
    ],
  },
  rename: {
    steps: [
      ({ client }) => client.call("renameTable", "n$a", { newTableName: "b" }),
      ({ client }) => client.call("renameTable", "r", { newTableName: "s" }),
      ({ client }) => client.call("renameTable", "s", { newTableName: "r" }),
    ],
  },
  batch: {
    prepare: ({ client }) => client.upload("createTable", "q", {}, rows(1)),
    steps: [
      async (world) =>
        world.client.call("batchCreateTableVersions", "$", { entries: await stage(world, "r", "q") }),
      async (world) => {
        const [version] = await stage(world, "q");
        const operations = [
          { operation: { case: "declareTable" as const, value: { id: ["n", "d"] } } },
          { operation: { case: "createTableVersion" as const, value: version ?? {} } },
          { operation: { case: "deregisterTable" as const, value: { id: ["r"] } } },
        ];
        return world.client.call("batchCommitTables", "$", { operations });
      },
    ],
  },
  "register and deregister": { steps: deregisterAndBack },
  migrate: {
    async prepare({ base }) {
      for (const name of ["old", "older"])
        await cp(join(base, "r.lance"), join(base, `${name}.lance`), { recursive: true });
    },
    steps: [({ context }) => migrate(context, false)],
  },
  prune: {
    async prepare({ client }) {
      for (let i = 0; i < 5; i++) await client.call("declareTable", `n$d${i}`);
    },
    steps: [
      (world) =>
        pruneVersions(datasetOf(world, MANIFEST_NAME), {
          keep: 2,
          minAgeMs: 0,
          clock: { now: async () => Date.now() + 1000 },
          mayGo: () => true,
          known: new Map(),
          signal: new AbortController().signal,
        }),
      ({ client }) => client.call("declareTable", "n$after"),
    ],
  },
  insert: {
    byEngine: true,
    steps: [
      ({ client }) => client.upload("insertIntoTable", "n$a", {}, rows(4, 5)),
      ({ client }) => client.upload("insertIntoTable", "n$a", { mode: InsertMode.OVERWRITE }, rows(6)),
      ({ client }) => client.call("deleteFromTable", "n$a", { predicate: "id = 6" }),
    ],
  },
  "changes of rows at the same time": {
    byEngine: true,
    steps: [
      ({ client }) =>
        sideBySide(
          "table n$a",
          [1, 2, 3].map((id) => ({
            call: client.call("deleteFromTable", "n$a", { predicate: `id = ${id}` }),
            deletes: id,
          })),
        ),
      ({ client }) =>
        sideBySide("table r", [
          { call: client.upload("insertIntoTable", "r", {}, rows(4)), adds: 4 },
          { call: client.upload("mergeInsertIntoTable", "r", insertNew, rows(5)), adds: 5 },
          { call: client.call("deleteFromTable", "r", { predicate: "id = 1" }), deletes: 1 },
          { call: client.call("deleteFromTable", "r", { predicate: "id = 2" }), deletes: 2 },
        ]),
    ],
  },
  tags: {
    prepare: ({ client }) => client.upload("insertIntoTable", "n$a", {}, rows(4)),
    steps: [
      ({ client }) => client.call("createTableTag", "n$a", { tag: "t", version: 1n }),
      ({ client }) => client.call("updateTableTag", "n$a", { tag: "t", version: 2n }),
      ({ client }) => client.call("deleteTableTag", "n$a", { tag: "t" }),
    ],
  },
  compaction: {
    prepare: ({ client }) => client.call("declareTable", "n$d"),
    steps: [
      joinFragments,
      ({ client }) => client.call("declareTable", "n$after"),
      joinFragments,
      ({ client }) => client.call("dropTable", "n$d"),
    ],
  },
  ...JOB_SCENARIOS,
  ...UPLOAD_SCENARIOS,
  ...UPKEEP_SCENARIOS,
};
