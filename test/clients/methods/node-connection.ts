import type { Job } from "@lancedb/lancedb";
import { Field, Int32, Schema } from "apache-arrow";
import { type Ground, rowsOf } from "./node-ground.ts";

/** A call of a method, and what of its answer is compared. */
export type Call = (ground: Ground) => unknown;

/** Work that a server does as a job; it has ended. */
export async function refresh({ t }: Ground): Promise<Job> {
  await t.addColumns({ computed: [{ name: "twice", valueSql: "id * 2" }] });
  const job = await t.refreshColumnAsync("twice");
  await job.wait();
  return job;
}

const jobId = async (ground: Ground) => (await refresh(ground)).id as string;

/** The ids of a table's rows. */
export async function idsOf(table: Ground["t"]): Promise<number[]> {
  return (await table.query().toArray()).map(({ id }) => Number(id));
}

/** The calls of a connection. */
export const CONNECTION: Readonly<Record<string, Call>> = {
  cancelJob: async (c) => c.db.cancelJob(await jobId(c)),
  cloneTable: async (c) => {
    // A directory's client takes the address of a table, and a gateway's also its name.
    const isRemote = c.db.display().includes("Remote");
    const source = isRemote ? "t" : `${/uri=([^,)]*)/.exec(c.db.display())?.[1]}/t.lance`;
    return (await c.db.cloneTable("copy", source)).countRows();
  },
  close: (c) => c.db.close(),
  createEmptyTable: async (c) =>
    (await c.db.createEmptyTable("e", new Schema([new Field("id", new Int32())]))).countRows(),
  createMaterializedView: async (c) => {
    const view = await c.db.createMaterializedView("mv", "t", { select: ["id"], where: "id > 1" });
    return idsOf(view.table());
  },
  createNamespace: async (c) => {
    await c.db.createNamespace(["team"]);
    return (await c.db.listNamespaces()).namespaces;
  },
  createTable: async (c) => (await c.db.createTable("other", rowsOf(4, 5))).countRows(),
  describeNamespace: async (c) => {
    await c.db.createNamespace(["team"], { properties: { owner: "ada" } });
    return (await c.db.describeNamespace(["team"])).properties;
  },
  display: (c) => typeof c.db.display(),
  dropAllTables: async (c) => {
    await c.db.dropAllTables();
    return c.db.tableNames();
  },
  dropNamespace: async (c) => {
    await c.db.createNamespace(["team"]);
    await c.db.dropNamespace(["team"]);
    return (await c.db.listNamespaces()).namespaces;
  },
  dropTable: async (c) => {
    await c.db.dropTable("t");
    return c.db.tableNames();
  },
  dropTableAsync: async (c) => {
    await (await c.db.dropTableAsync("t")).wait();
    return c.db.tableNames();
  },
  isOpen: (c) => c.db.isOpen(),
  listJobs: async (c) => {
    const id = await jobId(c);
    return (await c.db.listJobs()).some((job) => job.jobId === id);
  },
  listMaterializedViews: async (c) => {
    await c.db.createMaterializedView("mv", "t");
    return c.db.listMaterializedViews();
  },
  listNamespaces: async (c) => {
    await c.db.createNamespace(["team"]);
    return (await c.db.listNamespaces()).namespaces;
  },
  listTables: async (c) => (await c.db.listTables()).tables,
  openJob: async (c) => (await c.db.openJob(await jobId(c))).status(),
  openMaterializedView: async (c) => {
    await c.db.createMaterializedView("mv", "t");
    return (await c.db.openMaterializedView("mv")).name;
  },
  openTable: async (c) => (await c.db.openTable("t")).countRows(),
  renameTable: async (c) => {
    await c.db.renameTable("t", "renamed");
    return c.db.tableNames();
  },
  tableNames: (c) => c.db.tableNames(),
};
