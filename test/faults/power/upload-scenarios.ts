import { keyIn, listNames } from "../../../src/backends/dir/format/storage.ts";
import { createMultipartWrites, type Write } from "../../../src/backends/dir/operations/rows/multipart.ts";
import { requireTable } from "../../../src/backends/dir/operations/tables/find-table.ts";
import { LanceNamespaceService } from "../../../src/gen/lance/namespace/v1/service_pb.ts";
import { beginCall } from "../../support/caller.ts";
import { rows, type Scenario, type World } from "./world.ts";

const ID = ["n", "a"];
const DIRECTORY = /^\.staging-upload-([0-9a-f]{32})$/;

/** Returns the ids of the unfinished writes, with the number of parts of each. */
async function openWrites({ context: { store, layout } }: World): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  for (const name of await listNames(store, layout.baseKey)) {
    const id = DIRECTORY.exec(name)?.[1];
    const names = id === undefined ? [] : await listNames(store, keyIn(layout.baseKey, name));
    if (id === undefined || !names.includes("target") || names.includes("taken")) continue;
    found.set(id, names.filter((part) => part.endsWith(".arrows")).length);
  }
  return found;
}

async function theWrite(world: World): Promise<Write> {
  const [id = ""] = (await openWrites(world)).keys();
  return { id, table: await requireTable(world.context, { id: ID }), branch: undefined };
}

const begin: Scenario["steps"][number] = async ({ context }) =>
  createMultipartWrites(context).begin(await requireTable(context, { id: ID }), undefined);

const newCall = () => beginCall(LanceNamespaceService.method.insertIntoTable, { id: ID });

function stage(name: string, ...ids: number[]): Scenario["steps"][number] {
  return async (world) => {
    const part = { write: await theWrite(world), name, overwrite: false };
    const body = (async function* () {
      yield rows(...ids);
    })();
    return createMultipartWrites(world.context).stage(part, body, newCall());
  };
}

const uploadScenario: Omit<Scenario, "steps"> = {
  async observe(world) {
    return { uploads: [...(await openWrites(world)).values()].join() };
  },
};

export const UPLOAD_SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a multipart write": {
    ...uploadScenario,
    byEngine: true,
    // No reader sees a part, and a second one of its name replaces it.
    repeatable: [1, 2],
    steps: [
      begin,
      stage("a", 4, 5),
      stage("b", 6),
      async (world) => createMultipartWrites(world.context).complete(await theWrite(world), newCall()),
    ],
    /** The write is taken before it is carried out, so that it never happens twice. */
    between: (before, after) => [{ ...before, uploads: after["uploads"] as string }],
  },
  "a multipart write that is aborted": {
    ...uploadScenario,
    repeatable: [0],
    prepare: begin,
    steps: [
      stage("a", 4, 5),
      async (world) => createMultipartWrites(world.context).abort(await theWrite(world)),
    ],
  },
};
