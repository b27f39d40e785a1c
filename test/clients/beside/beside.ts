import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Connection, connect } from "@lancedb/lancedb";
import type { FoundDifference, KindResult } from "./differences.ts";
import { isTable, plain } from "./plain.ts";

/** Work of a client: it answers with something that can be compared. */
export type Work = (db: Connection) => unknown;

/** Compares what the same work answers on a local directory and through the gateway. */
export interface Beside {
  /** Does the work on both; the answers have to be equal, and so have the refusals. */
  same(name: string, work: Work): Promise<void>;
}

/** A kind of work that users of LanceDB do. */
export type Kind = (both: Beside) => Promise<void>;

/** The local library puts categories before the engine's words, and their causes or a place in its sources after them. */
const CATEGORY =
  /^(?:Failed to [\w ]+: GenericFailure, |Invalid input, |Invalid user input: |lance error: |[Ss]chema [Ee]rror: |[Nn]ot supported: |Namespace error: |LanceError\([^)]*\): )*/;
const CAUSES = / {2,}Caused by: .*$/s;
const PLACE = /,? [^ ]*\.rs:\d+(?::\d+)?$/;

type Outcome = { readonly answer: unknown } | { readonly error: string };

/** Does a kind of work on both sides, each without tables. */
export async function compareKind(uri: string, kind: string, run: Kind): Promise<KindResult> {
  const folder = mkdtempSync(join(tmpdir(), "lance-gateway-beside-"));
  const local = await connect(folder);
  const remote = await connect("db://beside", { apiKey: "k", hostOverride: uri });
  const cases: string[] = [];
  const differences: FoundDifference[] = [];
  try {
    await run({
      async same(name, work) {
        assert.ok(!cases.includes(name), `two cases are called ${name}`);
        cases.push(name);
        const [alone, through] = [await attempt(work, local), await attempt(work, remote)];
        const difference = compare(alone, through);
        if (difference === undefined) return;
        differences.push({ case: name, difference, local: textOf(alone), remote: textOf(through) });
      },
    });
    return { kind, cases, differences };
  } finally {
    for (const name of (await remote.listNamespaces()).namespaces)
      await remote.dropNamespace([name], { behavior: "cascade" });
    for (const name of await remote.tableNames()) await remote.dropTable(name);
    for (const db of [local, remote]) db.close();
    rmSync(folder, { recursive: true });
  }
}

async function attempt(work: Work, db: Connection): Promise<Outcome> {
  try {
    return { answer: plain(await work(db)) };
  } catch (error) {
    assert.ok(!(error instanceof TypeError), `the case is wrong in itself: ${error}`);
    return { error: (error as Error).message };
  }
}

const textOf = (outcome: Outcome) => JSON.stringify(outcome).slice(0, 2000);

/** Says in what two outcomes differ. */
function compare(local: Outcome, remote: Outcome): string | undefined {
  if ("error" in local) {
    if (!("error" in remote)) return "only the local library refuses";
    if (remote.error.includes("Hit retry limit")) return "the client repeats the call";
    const words = local.error
      .replace(/\n.*$/s, "")
      .replace(CAUSES, "")
      .replace(CATEGORY, "")
      .replace(PLACE, "");
    const isIn = [words, JSON.stringify(words).slice(1, -1)].some((text) => remote.error.includes(text));
    return isIn ? undefined : "words of the error";
  }
  if ("error" in remote) return "only the gateway refuses";
  const [alone, through] = [local.answer, remote.answer];
  if (isEqual(alone, through)) return;
  if (!isTable(alone) || !isTable(through)) return "value";
  if (!isEqual(alone.schema, through.schema)) return "schema";
  const sorted = (rows: readonly unknown[]) => rows.map((row) => JSON.stringify(row)).sort();
  return isEqual(sorted(alone.rows), sorted(through.rows)) ? "order of rows" : "rows";
}

const isEqual = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
