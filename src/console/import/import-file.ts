import { LanceError } from "../../namespace/errors.ts";
import type { Connection } from "../session/connection.ts";
import type { ConversionNews, ConversionTask } from "./convert-worker.ts";
import { kindOfName } from "./file-kinds.ts";

/** How far an import is. */
export interface Progress {
  readonly step: "converting" | "sending" | "storing";
  /** From 0 to 1. */
  readonly part: number;
}

/** What becomes of the rows of a file. */
export type ImportMode = "create" | "overwrite" | "append";

interface ImportTask {
  readonly file: File;
  readonly id: readonly string[];
  readonly mode: ImportMode;
  onProgress(progress: Progress): void;
}

/** Script of the worker, beside the page. */
const WORKER = new URL("convert.js", document.baseURI);

/** Imports a file as a single upload: all of its rows are stored, or none. */
export async function importFile(
  connection: Connection,
  { file, id, mode, onProgress }: ImportTask,
): Promise<void> {
  const rows = await arrowOf(file, (part) => onProgress({ step: "converting", part }));
  const namespace = connection.uploading((part) =>
    onProgress({ step: part < 1 ? "sending" : "storing", part }),
  );
  if (mode === "append") await namespace.insertIntoTable({ id, mode: "append" }, rows);
  else await namespace.createTable({ id, mode }, rows);
}

async function arrowOf(file: File, onProgress: (part: number) => void): Promise<Blob> {
  const kind = kindOfName(file.name);
  if (kind === undefined)
    throw new LanceError("InvalidInput", `${file.name} is neither Arrow nor Parquet nor CSV by its name`);
  // The gateway reads both forms of Arrow.
  if (kind === "arrow") return file;
  const worker = new Worker(WORKER.href, { type: "module" });
  try {
    return await new Promise<Blob>((resolve, reject) => {
      worker.onerror = () => reject(new LanceError("Internal", "the file cannot be converted"));
      worker.onmessage = ({ data }: MessageEvent<ConversionNews>) => {
        if (data.kind === "progress") onProgress(data.part);
        else if (data.kind === "done") resolve(data.rows);
        else reject(new LanceError("InvalidInput", data.message));
      };
      worker.postMessage({ file, kind } satisfies ConversionTask);
    });
  } finally {
    worker.terminate();
  }
}
