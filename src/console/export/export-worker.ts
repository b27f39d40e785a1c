// Writes files of rows beside the page, which stays responsive.

import { tableFromIPC, tableToIPC } from "apache-arrow";
import { toCsv } from "../../arrow/rows/csv-rows.ts";
import { textOfJson } from "../../arrow/rows/json-text.ts";
import { createTextReader } from "../../arrow/rows/row-texts.ts";
import { type ExportNews, type ExportTask, FORMATS, type Format } from "./formats.ts";

type Pieces = (string | Uint8Array<ArrayBuffer>)[];

const ENCODERS: Readonly<Record<Format, (rows: Uint8Array) => Pieces | Promise<Pieces>>> = {
  async csv(rows) {
    const pieces: Pieces = [];
    for await (const piece of toCsv(once(rows))) pieces.push(piece as Uint8Array<ArrayBuffer>);
    return pieces;
  },
  async json(rows) {
    const read = createTextReader(await import("apache-arrow"));
    const pieces: Pieces = [];
    for (const batch of tableFromIPC(rows).batches)
      for (const row of read(batch)) pieces.push(pieces.length === 0 ? "[" : ",\n", textOfJson(row));
    return [...(pieces.length === 0 ? ["["] : pieces), "]\n"];
  },
  async parquet(rows) {
    const { toParquet } = await import("./parquet-rows.ts");
    return [toParquet(tableFromIPC(rows))];
  },
  arrow: (rows) => [tableToIPC(tableFromIPC(rows), "file") as Uint8Array<ArrayBuffer>],
};

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

const tell = (news: ExportNews) => postMessage(news);

addEventListener("message", async ({ data: { format, rows } }: MessageEvent<ExportTask>) => {
  try {
    tell({ kind: "done", file: new Blob(await ENCODERS[format](rows), { type: FORMATS[format].type }) });
  } catch (thrown) {
    tell({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
});
