import { useRef, useState } from "preact/hooks";
import { formatBytes } from "../shell/format.ts";
import { ENDINGS } from "./file-kinds.ts";

interface DropZoneProps {
  readonly file: File | undefined;
  onChoose(file: File | undefined): void;
}

/** A place on which a file is dropped, or chosen by a button. */
export function DropZone({ file, onChoose }: DropZoneProps) {
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
