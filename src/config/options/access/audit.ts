import type { OptionTable } from "../../option-spec.ts";
import { parseInteger, parseSize, parseSwitch, parseText } from "../../parsers.ts";

/** Options of the audit log (docs/audit.md). */
export const AUDIT_OPTIONS = {
  auditLog: {
    flag: "audit-log",
    value: "FILE",
    help: "File to which the gateway appends a line of JSON about each call; - for standard output. Default: no audit log.",
    parse: parseText,
  },
  auditRequired: {
    flag: "audit-required",
    help: "Fail calls whose line cannot be written to the audit log, with 503.",
    fallback: "false",
    parse: parseSwitch,
  },
  auditMaxBytes: {
    flag: "audit-max-bytes",
    value: "SIZE",
    help: "Size at which the gateway renames the audit log and begins a new file; refused calls without credentials then have a file of their own. Default: the file grows until somebody moves it.",
    parse: parseSize,
  },
  auditFiles: {
    flag: "audit-files",
    value: "N",
    help: "Number of renamed audit logs that the gateway keeps of each file; it deletes the oldest.",
    fallback: "10",
    parse: parseInteger(1, 10_000),
    needs: { flag: "audit-max-bytes" },
  },
} as const satisfies OptionTable;
