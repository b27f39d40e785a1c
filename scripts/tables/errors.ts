import { Code } from "@connectrpc/connect";
import { ERROR_TABLE, PUBLIC_ERROR_COUNT } from "../../src/namespace/errors.ts";
import { markdownTable } from "./markdown.ts";

/** The error table as in `src/namespace/errors.ts`. */
export function errorTable(): string {
  const rows = ERROR_TABLE.map((entry, index) => [
    String(entry.code),
    index < PUBLIC_ERROR_COUNT ? entry.name : `${entry.name} (own)`,
    String(entry.httpStatus),
    grpcName(entry.grpcCode),
    `\`${entry.type}\``,
    entry.title,
  ]);
  return markdownTable(["Code", "Name", "HTTP", "gRPC", "`type`", "`title`"], rows);
}

function grpcName(code: number): string {
  const name = Code[code] ?? "Unknown";
  // gRPC spells this one with two l.
  return name === "Canceled" ? "CANCELLED" : name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
