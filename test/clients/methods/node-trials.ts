import * as lancedb from "@lancedb/lancedb";
import type { Recorder } from "../support/recorder.ts";
import { type Call, CONNECTION } from "./node-connection.ts";
import { type Ground, localPlace, type Place, remotePlace } from "./node-ground.ts";
import { BRANCHES, JOB, MATERIALIZED_VIEW, TAGS } from "./node-handles.ts";
import { TABLE } from "./node-table.ts";
import type { Attempt, Trial } from "./trial.ts";

/** Methods that the types of the client call private. */
const PRIVATE: ReadonlySet<string> = new Set([
  "_createTableImpl",
  "getStorageOptions",
  "getEmbeddingFunctions",
]);

/** Each object, with where its methods are found and the calls of them. */
const OBJECTS: readonly [name: string, prototype: (ground: Ground) => object, calls: Record<string, Call>][] =
  [
    ["connection", ({ db }) => db, CONNECTION],
    ["table", ({ t }) => t, TABLE],
    ["tags", ({ t }) => t.tags(), TAGS],
    ["branches", () => lancedb.Branches.prototype, BRANCHES],
    ["materialized view", () => lancedb.MaterializedView.prototype, MATERIALIZED_VIEW],
    ["job", () => lancedb.Job.prototype, JOB],
  ];

/** Classes of the package whose methods are not called, with the reason. */
const OTHERS: Readonly<Record<string, string>> = {
  AutoQuery: "builds what `search` of a table sends",
  BlobFile: "reads what `fetchBlobFiles` of a table opens",
  BooleanQuery: "describes a full-text query",
  BoostQuery: "describes a full-text query",
  HeaderProvider: "makes headers",
  Index: "describes an index",
  MakeArrowTableOptions: "describes columns",
  MatchQuery: "describes a full-text query",
  MergeInsertBuilder: "builds what `mergeInsert` of a table sends",
  MultiMatchQuery: "describes a full-text query",
  OAuthHeaderProvider: "makes headers",
  PermutationBuilder: "reads through the queries of a table",
  PhraseQuery: "describes a full-text query",
  Query: "builds what `query` of a table sends",
  QueryBase: "builds what `query` of a table sends",
  Scannable: "describes rows to write",
  StaticHeaderProvider: "makes headers",
  TakeQuery: "builds what `takeRowIds` of a table sends",
  VectorColumnOptions: "describes columns",
  VectorQuery: "builds what `search` of a table sends",
};

/** Classes of the package that are neither objects, nor bases of one, nor among the others. */
function missingObjects(objects: readonly object[]): string[] {
  return Object.entries(lancedb as Record<string, unknown>)
    .filter(([name, value]) => isClass(value) && OTHERS[name] === undefined)
    .filter(([, value]) => {
      const { prototype } = value as { prototype: object };
      return objects.every(
        (each) => each !== prototype && !Object.prototype.isPrototypeOf.call(prototype, each),
      );
    })
    .map(([name]) => `${name} is no object`);
}

function isClass(value: unknown): boolean {
  return typeof value === "function" && Function.prototype.toString.call(value).startsWith("class ");
}

function methodsOf(object: object): string[] {
  const names = new Set<string>();
  for (let each = object; each !== null && each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each))) {
      const isMethod =
        Object.hasOwn(each, "constructor") && (value === undefined || typeof value === "function");
      if (isMethod) names.add(name);
    }
  }
  for (const name of [...PRIVATE, "constructor", "toString"]) names.delete(name);
  return [...names].sort();
}

async function attempt(place: Place, recorder: Recorder, call: Call): Promise<Attempt> {
  const ground = await place.open();
  recorder.take();
  try {
    return { answer: plain(await call(ground)) };
  } catch (error) {
    return { error: String(error) };
  } finally {
    ground.db.close();
  }
}

function plain(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return value === undefined
    ? null
    : JSON.parse(JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each)));
}

const snakeCase = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Calls every method of the client in Node; `missing` names those without a call, and calls without a method. */
export async function nodeTrials(
  recorder: Recorder,
  directUri: string,
): Promise<{ trials: Trial[]; missing: string[] }> {
  const [local, remote] = [localPlace(), remotePlace(recorder.uri, directUri)];
  const trials: Trial[] = [];
  const missing: string[] = [];
  const objects: object[] = [];
  for (const [object, prototype, calls] of OBJECTS) {
    const ground = await remote.open();
    const handle = await prototype(ground);
    objects.push(handle);
    const methods = methodsOf(handle);
    await remote.clear();
    missing.push(
      ...methods.filter((name) => !(name in calls)).map((name) => `${object}.${name} has no call`),
    );
    missing.push(
      ...Object.keys(calls)
        .filter((name) => !methods.includes(name))
        .map((name) => `${object}.${name} does not exist`),
    );
    for (const [name, call] of Object.entries(calls)) {
      const trial = { object, method: snakeCase(name), client: "node" as const };
      const alone = await attempt(local, recorder, call);
      await local.clear();
      const through = await attempt(remote, recorder, call);
      const requests = recorder.take();
      await remote.clear();
      trials.push({ ...trial, local: alone, remote: through, requests });
    }
  }
  return { trials, missing: [...missingObjects(objects), ...missing] };
}
