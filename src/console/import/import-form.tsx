import { useRef, useState } from "preact/hooks";
import type { Connection } from "../session/connection.ts";
import { ActionForm } from "../shell/action-form.tsx";
import { formatBytes } from "../shell/format.ts";
import { ENDINGS, tableNameOf } from "./file-kinds.ts";
import { type ImportMode, importFile, type Progress } from "./import-file.ts";

interface ImportFormProps {
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

/** The form that imports a file, which can be dropped on it. */
export function ImportForm({ connection, parent, target, targetMode = "create", onDone }: ImportFormProps) {
  const [file, setFile] = useState<File>();
  const [name, setName] = useState(target ?? "");
  const [mode, setMode] = useState<ImportMode>(targetMode);
  const [progress, setProgress] = useState<Progress>();
  const choose = (chosen: File | undefined) => {
    if (chosen === undefined) return;
    setFile(chosen);
    if (target === undefined) setName(tableNameOf(chosen.name));
  };
  const run = async () => {
    if (file === undefined) return;
    const id = [...parent, name];
    try {
      await importFile(connection, { file, id, mode, onProgress: setProgress });
      onDone(id);
    } finally {
      setProgress(undefined);
    }
  };
  return (
    <ActionForm action="Import" isReady={file !== undefined && name !== ""} run={run}>
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
      {progress !== undefined && (
        <label class="progress">
          <progress max={1} value={progress.step === "storing" ? undefined : progress.part} />
          <span role="status">{STEPS[progress.step]}…</span>
        </label>
      )}
    </ActionForm>
  );
}

interface DropZoneProps {
  readonly file: File | undefined;
  onChoose(file: File | undefined): void;
}

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
          ? "Drop a Parquet, Arrow or CSV file here."
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
