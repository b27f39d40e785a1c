import type { Table } from "apache-arrow";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExportFormProps } from "../export/export-form.tsx";
import { CopyButton } from "../shell/copy-button.tsx";
import { Dialog } from "../shell/dialog.tsx";
import { formatCount } from "../shell/format.ts";
import { late } from "../shell/notes.tsx";
import { CellView } from "./cell-view.tsx";
import { cellOf } from "./cells.ts";
import {
  columnsOf,
  type GridColumn,
  isNumber,
  isSortable,
  nextOrder,
  type RowOrder,
  sortedIndices,
} from "./columns.ts";
import { RowDetail, textAt } from "./row-detail.tsx";
import { namesOf } from "./type-description.ts";

/** Most columns that are drawn before others are chosen. */
const MOST_COLUMNS = 60;

/** Searches for rows like one. */
export type OnLike = (column: string, values: ArrayLike<number>) => void;

/** The order of rows that a gateway sorts. */
export interface Sorting {
  readonly order: RowOrder | undefined;
  onOrder(order: RowOrder | undefined): void;
}

interface GridProps {
  readonly rows: Table;
  /** Number of rows before the first one. */
  readonly offset: number;
  readonly caption: string;
  /** Whether the type of each column is below its name. Default: false. */
  readonly hasTypes?: boolean;
  /** Default: the rows have nothing to search with. */
  readonly onLike?: OnLike | undefined;
  /** How the gateway sorts the rows. Default: the rows that are here are sorted. */
  readonly sorting?: Sorting | undefined;
  /** What can be saved. Default: nothing. */
  readonly source?: Exportable | undefined;
  /** Buttons for what the caller may do to a row. Default: none. */
  readonly actionsOf?: ((index: number) => preact.ComponentChildren) | undefined;
}

/** Rows as a table that scrolls by itself, a line each. A line opens into the whole row. */
export function Grid({
  rows,
  offset,
  caption,
  hasTypes = false,
  onLike,
  sorting,
  source,
  actionsOf,
}: GridProps) {
  const all = useMemo(() => columnsOf(rows), [rows]);
  const names = all.map(({ name }) => name).join("\n");
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [own, setOwn] = useState<RowOrder>();
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  useEffect(() => setHidden(new Set(all.slice(MOST_COLUMNS).map(({ name }) => name))), [names]);
  useEffect(() => setOpen(new Set()), [rows]);
  const { order, onOrder } = sorting ?? { order: own, onOrder: setOwn };
  const indices = useMemo(() => sortedIndices(rows, sorting ? undefined : own), [rows, own, sorting]);
  const columns = all.filter(({ name }) => !hidden.has(name));
  const toggle = (index: number) => {
    const next = new Set(open);
    if (!next.delete(index)) next.add(index);
    setOpen(next);
  };
  return (
    <div class="grid-frame">
      <GridTools
        columns={all}
        hidden={hidden}
        rows={rows}
        order={indices}
        source={source}
        onHidden={setHidden}
      />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <section class="scroll grid-scroll" aria-label={caption} tabIndex={0}>
        <table class="grid">
          <thead>
            <tr>
              <th scope="col" class="row-number">
                <span class="visually-hidden">Row</span>#
              </th>
              {columns.map((column) => (
                <Heading
                  key={column.name}
                  column={column}
                  hasType={hasTypes}
                  order={order}
                  onOrder={() => onOrder(nextOrder(order, column.name))}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {indices.map((index) => {
              const label = `row ${formatCount(offset + index + 1)}`;
              return (
                <Row
                  key={index}
                  {...{ columns, index, label, onLike }}
                  isOpen={open.has(index)}
                  onToggle={() => toggle(index)}
                >
                  <RowDetail columns={all} index={index} label={label} />
                  {actionsOf?.(index)}
                </Row>
              );
            })}
          </tbody>
        </table>
      </section>
    </div>
  );
}

interface HeadingProps {
  readonly column: GridColumn;
  readonly hasType: boolean;
  readonly order: RowOrder | undefined;
  onOrder(): void;
}

function Heading({ column: { name, type }, hasType, order, onOrder }: HeadingProps) {
  const { words, arrowName } = namesOf(type);
  const isSorted = order?.column === name;
  const mark = isSorted ? (order.isAscending ? " ↑" : " ↓") : "";
  const direction = isSorted ? (order.isAscending ? "ascending" : "descending") : undefined;
  return (
    <th
      scope="col"
      class={isNumber(type) ? "is-number" : undefined}
      title={`${name}: ${words}, ${arrowName}`}
      aria-sort={direction}
    >
      {isSortable(type) ? (
        <button type="button" class="sort" onClick={onOrder}>
          {name}
          <span aria-hidden="true">{mark}</span>
        </button>
      ) : (
        name
      )}
      {hasType && (
        <span class="column-type">
          {words} <code>{arrowName}</code>
        </span>
      )}
    </th>
  );
}

interface RowProps {
  readonly columns: readonly GridColumn[];
  readonly index: number;
  readonly label: string;
  readonly isOpen: boolean;
  readonly onLike: OnLike | undefined;
  /** What the row opens into. */
  readonly children: preact.ComponentChildren;
  onToggle(): void;
}

function Row({ columns, index, label, isOpen, onLike, children, onToggle }: RowProps) {
  return (
    <>
      <tr class={`grid-row${isOpen ? " is-open" : ""}`}>
        <th scope="row" class="row-number">
          <button type="button" class="opener" aria-expanded={isOpen} aria-label={label} onClick={onToggle}>
            {label.replace("row ", "")}
          </button>
        </th>
        {columns.map(({ name, values }) => {
          const cell = values === null ? ({ kind: "null" } as const) : cellOf(values, index);
          return (
            <td key={name} class={`cell-${cell.kind}`}>
              <CellView
                cell={cell}
                label={`${name} of ${label}`}
                onLike={onLike && ((vector) => onLike(name, vector))}
              />
            </td>
          );
        })}
      </tr>
      {isOpen && (
        <tr class="row-detail">
          <td colSpan={columns.length + 1}>
            <div class="row-body">{children}</div>
          </td>
        </tr>
      )}
    </>
  );
}

const LateExportForm = late(async () => (await import("../export/export-form.tsx")).ExportForm);

/** What can be saved of a result. */
type Exportable = Pick<ExportFormProps, "name" | "readAll">;

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
function GridTools({ columns, hidden, rows, order, source, onHidden }: GridToolsProps) {
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
