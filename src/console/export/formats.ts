/** Formats of exported rows, with their endings and types for browsers. */
export const FORMATS = {
  csv: { title: "CSV", type: "text/csv" },
  json: { title: "JSON", type: "application/json" },
  parquet: { title: "Parquet", type: "application/vnd.apache.parquet" },
  arrow: { title: "Arrow", type: "application/vnd.apache.arrow.file" },
} as const;

export type Format = keyof typeof FORMATS;

/** Task of the worker. */
export interface ExportTask {
  readonly format: Format;
  /** The rows as an Arrow IPC stream. */
  readonly rows: Uint8Array;
}

/** What the worker reports. */
export type ExportNews =
  | { readonly kind: "done"; readonly file: Blob }
  | { readonly kind: "failed"; readonly message: string };
