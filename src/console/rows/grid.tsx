import type { Table } from "apache-arrow";
import { formatCount } from "../shell/format.ts";
import { CellView } from "./cell-view.tsx";
import { type Cell, cellOf } from "./cells.ts";

/** Most columns that are drawn at once. */
const MOST_COLUMNS = 60;

interface GridProps {
  readonly rows: Table;
  /** Number of rows before the first one. */
  readonly offset: number;
  readonly caption: string;
  /** Whether the type of each column is below its name. Default: false. */
  readonly hasTypes?: boolean;
  /** Searches for rows like one. Default: the rows have nothing to search with. */
  readonly onLike?: ((column: string, values: ArrayLike<number>) => void) | undefined;
}

/** Rows as a table that scrolls by itself. */
export function Grid({ rows, offset, caption, hasTypes = false, onLike }: GridProps) {
  const fields = rows.schema.fields.slice(0, MOST_COLUMNS);
  const columns = fields.map(({ name, type }, at) => ({ name, type, values: rows.getChildAt(at) }));
  const hidden = rows.schema.fields.length - fields.length;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <section class="scroll" aria-label={caption} tabIndex={0}>
        <table class="grid">
          <thead>
            <tr>
              <th scope="col" class="row-number">
                <span class="visually-hidden">Row</span>#
              </th>
              {columns.map(({ name, type }) => (
                <th scope="col" key={name} title={`${name}: ${type}`}>
                  {name}
                  {hasTypes && <span class="column-type">{String(type)}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {Array.from({ length: rows.numRows }, (_, index) => (
              <tr key={index}>
                <th scope="row" class="row-number">
                  {formatCount(offset + index + 1)}
                </th>
                {columns.map(({ name, values }) => {
                  const cell: Cell = values === null ? { kind: "null" } : cellOf(values, index);
                  return (
                    <td key={name} class={`cell-${cell.kind}`}>
                      <CellView
                        cell={cell}
                        label={`${name} of row ${offset + index + 1}`}
                        onLike={onLike && ((vector) => onLike(name, vector))}
                      />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {hidden > 0 && <p class="note">{formatCount(hidden)} more columns; a query can choose them.</p>}
    </>
  );
}
