import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Field, Schema, Table, tableToIPC, Utf8 } from "apache-arrow";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { encodingOf } from "../../src/client/text/decode.ts";
import {
  columnsOfText,
  schemaOfText,
  type TextOptions,
  textToArrow,
} from "../../src/client/text/text-to-arrow.ts";
import { CSV_FILES, JSON_FILES } from "../cli/import/torture.ts";
import { runTool } from "../clients/support/tools.ts";
import { createRandom } from "../support/random.ts";
import { seedOf } from "../support/seed.ts";
import { type DrawnText, drawText, oddTexts } from "./ray/drawn-texts.ts";
import { rayInterpreter } from "./ray-head.ts";

const DRAWN = 1200;

let python: string;
let folder: string;

beforeAll(async () => {
  python = await rayInterpreter();
}, 600_000);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lance-gateway-texts-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What a worker has made of a text. */
type Outcome = { readonly equal: number } | { readonly refused: string } | { readonly differs: string };

const openOf = (content: string | Uint8Array) =>
  async function* () {
    yield Buffer.from(content as string);
  };

/** Writes a text, the columns of its table, and the rows that the gateway makes of it, unless it refuses the text. */
async function put(name: string, { format, schema, content }: Omit<DrawnText, "isPlain">): Promise<void> {
  const path = join(folder, name);
  writeFileSync(`${path}.${format}`, content);
  writeFileSync(`${path}.types.arrows`, tableToIPC(new Table(schema), "stream"));
  try {
    const rows = textToArrow(openOf(content), schema, { format, isForTable: true });
    writeFileSync(`${path}.rows.arrows`, Buffer.concat(await Array.fromAsync(rows)));
  } catch {
    // Then the worker refuses it, too.
  }
}

async function read(): Promise<Readonly<Record<string, Outcome>>> {
  const output = await runTool(python, [join(import.meta.dirname, "ray", "read_texts.py"), folder]);
  return JSON.parse(output) as Record<string, Outcome>;
}

const differing = (outcomes: Readonly<Record<string, Outcome>>) =>
  Object.entries(outcomes).filter(([, outcome]) => "differs" in outcome);

it("reads files that tools get wrong as the gateway does, or refuses them with their line", async () => {
  const names = new Map<string, string>();
  for (const [at, { name, format, content, flags = [] }] of [...CSV_FILES, ...JSON_FILES].entries()) {
    const encoding = flags[0] === "--encoding" ? encodingOf(flags[1] as string) : undefined;
    const options: TextOptions = { format, encoding };
    const found = await schemaOfText(openOf(content), options).catch(() => undefined);
    const columns = await columnsOfText(openOf(content), options).catch(() => ["a", "b"]);
    const texts = new Schema(columns.map((column) => new Field(column, new Utf8(), true)));
    await put(`${at}-texts`, { format, content, schema: texts });
    names.set(`${at}-texts`, name);
    if (found === undefined) continue;
    await put(`${at}-found`, { format, content, schema: found });
    names.set(`${at}-found`, name);
  }
  const outcomes = await read();
  expect(differing(outcomes)).toEqual([]);
  expect(Object.keys(outcomes)).toHaveLength(names.size);
  for (const outcome of Object.values(outcomes))
    if ("refused" in outcome)
      expect(outcome.refused).toMatch(/^\/.*, line \d+: .*; an import without --engine ray/);
}, 300_000);

it("reads each odd value as the gateway does in columns of each type, or refuses it with its line", async () => {
  const texts = oddTexts();
  for (const [at, text] of texts.entries()) await put(String(at), text);
  const outcomes = await read();
  expect(Object.keys(outcomes)).toHaveLength(texts.length);
  const wrong = Object.entries(outcomes).filter(
    ([, outcome]) => "differs" in outcome || ("refused" in outcome && !/, line \d+: /.test(outcome.refused)),
  );
  expect(wrong.map(([at, outcome]) => [texts[Number(at)]?.content, outcome])).toEqual([]);
}, 300_000);

it("reads drawn texts as the gateway does, or refuses them, and reads all plain ones", async () => {
  const random = createRandom(seedOf("RAY_TEXTS_SEED"));
  const drawn = Array.from({ length: DRAWN }, (_, turn) => drawText(random, turn));
  for (const [turn, text] of drawn.entries()) await put(String(turn), text);
  const outcomes = await read();
  expect(differing(outcomes)).toEqual([]);
  const refused = Object.entries(outcomes).filter(
    ([turn, outcome]) => drawn[Number(turn)]?.isPlain && "refused" in outcome,
  );
  expect(refused).toEqual([]);
}, 300_000);
