import type { Table } from "apache-arrow";
import { useEffect, useMemo, useState } from "preact/hooks";
import { formatCount } from "../shell/format.ts";
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
import { type Exportable, GridTools } from "./grid-tools.tsx";
import { RowDetail } from "./row-detail.tsx";
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
