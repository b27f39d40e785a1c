import type { Row } from "./row.ts";
import { propertiesText } from "./row-batch.ts";

/** Where a row is in the manifest's dataset: a fragment, and the row's place among the fragment's physical rows. */
export interface RowAddress {
  readonly fragment: number;
  readonly offset: number;
}

/** A row as it is stored. */
export interface PlacedRow extends RowAddress {
  readonly objectId: string;
  readonly objectType: string;
  readonly location: string | undefined;
  /** The text of the column, whatever JSON it is. */
  readonly metadata: string | undefined;
}

/** A row as it is stored, wherever it is. */
export type StoredRow = Omit<PlacedRow, keyof RowAddress>;

/** The columns that rows are made of, in the order of the public schema. */
export const COLUMNS = {
  object_id: (row: StoredRow) => row.objectId,
  object_type: (row: StoredRow) => row.objectType,
  location: (row: StoredRow) => row.location,
  metadata: (row: StoredRow) => row.metadata,
} as const;

/** A row in the form that it is stored in. */
export function toStored({ objectId, objectType, location, properties }: Row): StoredRow {
  return { objectId, objectType, location, metadata: propertiesText(properties) ?? undefined };
}
