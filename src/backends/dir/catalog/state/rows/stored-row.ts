import { type Row, VIEW_KIND } from "../row.ts";
import { propertiesText } from "./row-batch.ts";

/** Address of a row in the manifest's dataset: a fragment, and the place among the fragment's physical rows. */
export interface RowAddress {
  readonly fragment: number;
  readonly offset: number;
}

/** A stored row and its address. */
export interface PlacedRow extends RowAddress {
  readonly objectId: string;
  readonly objectType: string;
  readonly location: string | undefined;
  /** Text of the column, which may be any JSON. */
  readonly metadata: string | undefined;
}

/** A row in its stored form, without its address. */
export type StoredRow = Omit<PlacedRow, keyof RowAddress>;

/** Columns of rows, in the order of the public schema. */
export const COLUMNS = {
  object_id: (row: StoredRow) => row.objectId,
  // Pylance refuses all changes of a catalog that has rows of another kind than these two.
  object_type: (row: StoredRow) => (row.objectType === VIEW_KIND ? "namespace" : row.objectType),
  location: (row: StoredRow) => row.location,
  metadata: (row: StoredRow) => row.metadata,
} as const;

/** Converts a row to its stored form. */
export function toStored({ objectId, objectType, location, properties }: Row): StoredRow {
  return { objectId, objectType, location, metadata: propertiesText(properties) ?? undefined };
}
