import { type Table, tableToIPC } from "apache-arrow";
import { useState } from "preact/hooks";
import { saveFile } from "../shell/browser.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { formatCount } from "../shell/format.ts";
import { runInWorker } from "../shell/worker.ts";
import { type ExportNews, type ExportTask, FORMATS, type Format } from "./formats.ts";

/** Most rows of a file, which is in memory until it is saved. */
const MOST_ROWS = 100_000;

export interface ExportFormProps {
  /** Name of the file, without its ending. */
  readonly name: string;
  readonly shown: Table;
  /** Reads a number of rows from the first one on, as Arrow IPC. */
  readAll(limit: number): AsyncIterable<Uint8Array>;
  onDone(): void;
}

/** The form that saves rows as a file. */
export function ExportForm({ name, shown, readAll, onDone }: ExportFormProps) {
  const [format, setFormat] = useState<Format>("csv");
  const [isAll, setAll] = useState(false);
  const run = async () => {
    const rows = isAll ? await bytesOf(readAll(MOST_ROWS)) : tableToIPC(shown, "stream");
    const task: ExportTask = { format, rows };
    const { file } = await runInWorker("export.js", task, (news: ExportNews) => news.kind === "done");
    saveFile(file, `${name}.${format}`);
    onDone();
  };
  return (
    <ActionForm action="Export" isReady run={run}>
      <label>
        Format
        <select value={format} onChange={({ currentTarget }) => setFormat(currentTarget.value as Format)}>
          {Object.entries(FORMATS).map(([each, { title }]) => (
            <option key={each} value={each}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label>
        Rows
        <select
          value={isAll ? "all" : "shown"}
          onChange={({ currentTarget }) => setAll(currentTarget.value === "all")}
        >
          <option value="shown">the {formatCount(shown.numRows)} that are shown</option>
          <option value="all">all of the result, at most {formatCount(MOST_ROWS)}</option>
        </select>
      </label>
      <p class="muted">
        Columns and values are complete, whatever the page shows. “lance-gateway export” has no limit.
      </p>
    </ActionForm>
  );
}

async function bytesOf(pieces: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const blob = new Blob((await Array.fromAsync(pieces)) as Uint8Array<ArrayBuffer>[]);
  return new Uint8Array(await blob.arrayBuffer());
}
