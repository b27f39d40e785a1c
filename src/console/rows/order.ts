import { fieldPath } from "../table/index-types.ts";
import type { RowOrder } from "./columns.ts";

/** Reads an order from an address: the column, after `-` for a descending one. */
export function orderOf(text: string | undefined): RowOrder | undefined {
  if (!text) return undefined;
  return text.startsWith("-")
    ? { column: text.slice(1), isAscending: false }
    : { column: text.replace(/^\+/, ""), isAscending: true };
}

/** Writes an order for an address. */
export function orderText(order: RowOrder | undefined): string | undefined {
  if (order === undefined) return undefined;
  return `${order.isAscending ? (/^[+-]/.test(order.column) ? "+" : "") : "-"}${order.column}`;
}

/** Returns the order as requests have it. */
export function orderingOf(order: RowOrder | undefined) {
  if (order === undefined) return [];
  return [{ columnName: fieldPath(order.column), ascending: order.isAscending, nullsFirst: false }];
}
