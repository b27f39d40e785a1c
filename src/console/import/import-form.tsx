import { useRef, useState } from "preact/hooks";
import { Grid } from "../rows/grid.tsx";
import type { Connection } from "../session/connection.ts";
import { ActionForm } from "../shell/dialog.tsx";
import { formatBytes } from "../shell/format.ts";
import { useCall } from "../shell/hooks.ts";
import { ErrorNote, Waiting } from "../shell/notes.tsx";
import type { TextChoices } from "./convert-worker.ts";
import { ENDINGS, isText, tableNameOf } from "./file-kinds.ts";
import { type ImportMode, importFile, lookAt, type Progress, schemaOfTable } from "./import-file.ts";
import { EncodingField, RoundingField, type TextColumn, TypeFields } from "./text-fields.tsx";

export interface ImportFormProps {
  readonly connection: Connection;
  readonly parent: readonly string[];
  /** The table that gets the rows. Default: a new one. */
  readonly target?: string;
  /** How the target gets them. Default: it is created, as a new table is. */
  readonly targetMode?: ImportMode;
  onDone(id: readonly string[]): void;
}

const STEPS: Readonly<Record<Progress["step"], string>> = {
  converting: "Reading the file",
  sending: "Sending",
  storing: "Storing",
};
const NO_CHOICES: TextChoices = { encoding: undefined, types: {}, isRounded: false };

/** The form that imports a file, which can be dropped on it, and shows its types and first rows before that. */
export function ImportForm({ connection, parent, target, targetMode = "create", onDone }: ImportFormProps) {
  const [file, setFile] = useState<File>();
  const [name, setName] = useState(target ?? "");
  const [mode, setMode] = useState<ImportMode>(targetMode);
  const [choices, setChoices] = useState(NO_CHOICES);
  const [progress, setProgress] = useState<Progress>();
  // Stays while types are chosen that the values do not have.
  const [columns, setColumns] = useState<readonly TextColumn[]>();
  const id = [...parent, name];
  const isForTable = mode === "append";
  const seen = useCall(
    async (signal) => {
      if (file === undefined) return undefined;
      const target = isForTable ? await schemaOfTable(connection, id, signal) : undefined;
      const source = { file, choices, schema: target, isForTable: target !== undefined };
      const hasTypes = isText(file.name) && target === undefined;
      const rows = await lookAt(source, signal, (names) => {
        if (hasTypes)
          setColumns((before) => (hasNames(before, names) ? before : names.map((name) => ({ name }))));
      });
      setColumns(hasTypes ? rows.schema.fields : undefined);
      return { file, source, rows };
    },
    [file, choices, isForTable],
  );
  const found = seen.value?.file === file ? seen.value : undefined;
  const choose = (chosen: File | undefined) => {
    if (chosen === undefined) return;
    setFile(chosen);
    setColumns(undefined);
    setChoices(NO_CHOICES);
    if (target === undefined) setName(tableNameOf(chosen.name));
  };
  const run = async () => {
    if (found === undefined) return;
    const source = { ...found.source, schema: found.source.schema ?? found.rows.schema };
    try {
      await importFile(connection, { ...source, id, mode, onProgress: setProgress });
      onDone(id);
    } finally {
      setProgress(undefined);
    }
  };
  const isReady = found !== undefined && !seen.isRunning && seen.error === undefined && name !== "";
  return (
    <ActionForm action="Import" isReady={isReady} run={run}>
      <DropZone file={file} onChoose={choose} />
      {file !== undefined && target === undefined && (
        <>
          <label>
            Name of the table
            <input value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} />
          </label>
          <label class="check">
            <input
              type="checkbox"
              checked={mode === "overwrite"}
              onChange={({ currentTarget: { checked } }) => setMode(checked ? "overwrite" : "create")}
            />
            Replace a table of this name
          </label>
        </>
      )}
      {file !== undefined && isText(file.name) && (
        <>
          <EncodingField choices={choices} onChange={setChoices} />
          <RoundingField choices={choices} onChange={setChoices} />
        </>
      )}
      {seen.error !== undefined && <ErrorNote error={seen.error} />}
      {file !== undefined && seen.isRunning && <Waiting what="Reading types and first rows…" />}
      {columns !== undefined && <TypeFields columns={columns} choices={choices} onChange={setChoices} />}
      {found !== undefined && (
        <Grid rows={found.rows} offset={0} caption={`First rows of ${found.file.name}`} hasTypes />
      )}
      {progress !== undefined && (
        <label class="progress">
          <progress max={1} value={progress.step === "storing" ? undefined : progress.part} />
          <span role="status">{STEPS[progress.step]}…</span>
        </label>
      )}
    </ActionForm>
  );
}

function hasNames(columns: readonly TextColumn[] = [], names: readonly string[]): boolean {
  return columns.length === names.length && columns.every(({ name }, at) => name === names[at]);
}

interface DropZoneProps {
  readonly file: File | undefined;
  onChoose(file: File | undefined): void;
}

/** A place on which a file is dropped, or chosen by a button. */
function DropZone({ file, onChoose }: DropZoneProps) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button in it does the same by keyboard
    <div
      class={`drop-zone${isOver ? " is-over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onChoose(event.dataTransfer?.files[0]);
      }}
    >
      <p>
        {file === undefined
          ? "Drop a Parquet, Arrow, CSV or JSON lines file here."
          : `${file.name}, ${formatBytes(file.size)}`}
      </p>
      <button type="button" onClick={() => input.current?.click()}>
        Choose a file
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept={ENDINGS.join(",")}
        onChange={({ currentTarget }) => onChoose(currentTarget.files?.[0])}
      />
    </div>
  );
}
