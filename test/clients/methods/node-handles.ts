import type { Branches, Job, MaterializedView } from "@lancedb/lancedb";
import { type Call, idsOf, refresh } from "./node-connection.ts";
import { type Ground, rowsOf } from "./node-ground.ts";

type Tags = Awaited<ReturnType<Ground["t"]["tags"]>>;

const tagged =
  (call: (tags: Tags, ground: Ground) => unknown): Call =>
  async (c) => {
    const tags = await c.t.tags();
    await tags.create("first", 1);
    return call(tags, c);
  };
const versionsOf = async (tags: Tags) =>
  Object.entries(await tags.list()).map(([name, { version }]) => [name, version]);

/** The calls of a table's tags. */
export const TAGS: Readonly<Record<string, Call>> = {
  create: tagged(versionsOf),
  delete: tagged(async (tags) => {
    await tags.delete("first");
    return tags.list();
  }),
  getVersion: tagged((tags) => tags.getVersion("first")),
  list: tagged(versionsOf),
  update: tagged(async (tags, c) => {
    await c.t.add(rowsOf(4));
    await tags.update("first", 2);
    return tags.getVersion("first");
  }),
};

const branched =
  (call: (branches: Branches) => unknown): Call =>
  async (c) => {
    const branches = await c.t.branches();
    const trial = await branches.create("trial");
    await trial.addColumns([{ name: "twice", valueSql: "id * 2" }]);
    return call(branches);
  };

/** The calls of a table's branches. */
export const BRANCHES: Readonly<Record<string, Call>> = {
  checkout: branched(async (branches) => (await (await branches.checkout("trial")).schema()).fields.length),
  cherryPick: branched(async (branches) => (await branches.cherryPick("trial")).status),
  create: branched(async (branches) => Object.keys(await branches.list())),
  delete: branched(async (branches) => {
    await branches.delete("trial");
    return branches.list();
  }),
  diff: branched(async (branches) => (await branches.diff("trial")).addedColumns.length),
  list: branched(async (branches) => Object.keys(await branches.list())),
};

const viewed =
  (call: (view: MaterializedView, ground: Ground) => unknown): Call =>
  async (c) =>
    call(await c.db.createMaterializedView("mv", "t", { select: ["id"], where: "id > 1" }), c);

/** The calls of a materialized view. */
export const MATERIALIZED_VIEW: Readonly<Record<string, Call>> = {
  definition: viewed((view) => view.definition()),
  name: viewed((view) => view.name),
  refresh: viewed(async (view, c) => {
    await c.t.add(rowsOf(4));
    await view.refresh();
    await view.table().checkoutLatest();
    return idsOf(view.table());
  }),
  table: viewed((view) => idsOf(view.table())),
};

const opened =
  (call: (job: Job) => unknown): Call =>
  async (c) => {
    const job = await refresh(c);
    return call(job.id === null ? job : await c.db.openJob(job.id));
  };
const field = (name: keyof Job): Call =>
  opened(async (job) => {
    await job.refresh();
    return job[name];
  });

/** The calls of a job. */
export const JOB: Readonly<Record<string, Call>> = {
  cancel: opened((job) => job.cancel()),
  creationMs: field("creationMs"),
  events: opened((job) => job.events()),
  failure: field("failure"),
  id: field("id"),
  jobType: field("jobType"),
  refresh: opened((job) => job.refresh()),
  result: field("result"),
  spec: field("spec"),
  state: field("state"),
  status: opened((job) => job.status()),
  wait: opened((job) => job.wait()),
};
