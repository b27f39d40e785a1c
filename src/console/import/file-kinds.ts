/** Kinds of files that can be imported. */
export type FileKind = "arrow" | "parquet" | "csv" | "tsv" | "jsonl";

const BY_ENDING: Readonly<Record<string, FileKind>> = {
  arrow: "arrow",
  arrows: "arrow",
  feather: "arrow",
  ipc: "arrow",
  parquet: "parquet",
  pq: "parquet",
  csv: "csv",
  tsv: "tsv",
  jsonl: "jsonl",
  ndjson: "jsonl",
};

/** Endings of the files that can be imported, for the dialog that chooses one. */
export const ENDINGS = Object.keys(BY_ENDING).map((ending) => `.${ending}`);

/** Returns the kind of a file by its name; undefined if it has none of the known endings. */
export function kindOfName(name: string): FileKind | undefined {
  return BY_ENDING[/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ""];
}

/** Whether a file is a text by its name, whose values have no types. */
export function isText(name: string): boolean {
  const kind = kindOfName(name);
  return kind === "csv" || kind === "tsv" || kind === "jsonl";
}

/** Returns the name of the table that a file becomes, in characters that need no escapes anywhere. */
export function tableNameOf(file: string): string {
  const name = file.replace(/\.\w+$/, "").replaceAll(/[^\w-]+/g, "_");
  return name.replaceAll(/^_+|_+$/g, "") || "table";
}
