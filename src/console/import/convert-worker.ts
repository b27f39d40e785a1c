// Converts files to Arrow beside the page, which stays responsive.
import { csvToArrow } from "../../client/text/csv.ts";
import type { FileKind } from "./file-kinds.ts";
import { parquetToArrow } from "./parquet.ts";

/** Task of the worker. */
export interface ConversionTask {
  readonly file: File;
  readonly kind: Exclude<FileKind, "arrow">;
}

/** What the worker reports. */
export type ConversionNews =
  | { readonly kind: "progress"; readonly part: number }
  | { readonly kind: "done"; readonly rows: Blob }
  | { readonly kind: "failed"; readonly message: string };

type Convert = (file: File, onProgress: (part: number) => void) => AsyncIterable<Uint8Array>;

const CONVERSIONS: Readonly<Record<ConversionTask["kind"], Convert>> = {
  csv: (file, onProgress) =>
    csvToArrow(() => file, {
      // Every value is read twice.
      onProgress: (pass, characters) => onProgress((pass + Math.min(1, characters / file.size)) / 2),
    }),
  parquet: parquetToArrow,
};

const tell = (news: ConversionNews) => postMessage(news);

addEventListener("message", async ({ data }: MessageEvent<ConversionTask>) => {
  try {
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    const convert = CONVERSIONS[data.kind];
    for await (const piece of convert(data.file, (part) => tell({ kind: "progress", part })))
      pieces.push(piece as Uint8Array<ArrayBuffer>);
    tell({ kind: "done", rows: new Blob(pieces) });
  } catch (thrown) {
    tell({ kind: "failed", message: thrown instanceof Error ? thrown.message : String(thrown) });
  }
});
