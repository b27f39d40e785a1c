import type { Table } from "apache-arrow";
import { useState } from "preact/hooks";
import type { ExportFormProps } from "../export/export-form.tsx";
import { CopyButton } from "../shell/copy-button.tsx";
import { Dialog } from "../shell/dialog.tsx";
import { late } from "../shell/notes.tsx";
import type { GridColumn } from "./columns.ts";
import { textAt } from "./row-detail.tsx";

const LateExportForm = late(async () => (await import("../export/export-form.tsx")).ExportForm);

/** What can be saved of a result. */
export type Exportable = Pick<ExportFormProps, "name" | "readAll">;

interface GridToolsProps {
  readonly columns: readonly GridColumn[];
  readonly hidden: ReadonlySet<string>;
  readonly rows: Table;
  /** Indices of the rows in their order. */
  readonly order: readonly number[];
  /** Default: the rows cannot be saved. */
  readonly source?: Exportable | undefined;
  onHidden(hidden: ReadonlySet<string>): void;
}

/** What can be done with the rows of a grid: to choose columns, to copy, and to save them. */
export function GridTools({ columns, hidden, rows, order, source, onHidden }: GridToolsProps) {
  const [isExporting, setExporting] = useState(false);
  const shown = columns.filter(({ name }) => !hidden.has(name));
  const close = () => setExporting(false);
  const toggle = (name: string) => {
    const next = new Set(hidden);
    if (!next.delete(name)) next.add(name);
    onHidden(next);
  };
  const textOf = () => {
    const lines = order.map((index) => shown.map((column) => cellText(textAt(column, index))));
    return [shown.map(({ name }) => cellText(name)), ...lines].map((cells) => cells.join("\t")).join("\n");
  };
  return (
    <div class="grid-tools">
      <details class="menu">
        <summary>
          Columns: {shown.length} of {columns.length}
        </summary>
        <fieldset class="menu-body">
          <legend class="visually-hidden">Columns that are shown</legend>
          <div class="buttons">
            <button type="button" class="quiet" onClick={() => onHidden(new Set())}>
              All
            </button>
            <button
              type="button"
              class="quiet"
              onClick={() => onHidden(new Set(columns.slice(1).map(({ name }) => name)))}
            >
              Only the first
            </button>
          </div>
          {columns.map(({ name }) => (
            <label key={name} class="check">
              <input type="checkbox" checked={!hidden.has(name)} onChange={() => toggle(name)} />
              {name}
            </label>
          ))}
        </fieldset>
      </details>
      <CopyButton title="Copy rows" label="that are shown" textOf={textOf} />
      {source && (
        <button type="button" class="quiet" onClick={() => setExporting(true)}>
          Export
        </button>
      )}
      {isExporting && source && (
        <Dialog title={`Export rows of ${source.name}`} onClose={close}>
          <LateExportForm {...source} shown={rows} onDone={close} />
        </Dialog>
      )}
    </div>
  );
}

/** Returns a value for a cell of a spreadsheet: tabs and lines stand in quotes. */
function cellText(text: string): string {
  return /[\t\r\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
