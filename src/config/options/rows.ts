import { type OptionTable, RESILIENT_KINDS } from "../option-spec.ts";
import { parseChoice, parseRoot } from "../parsers.ts";

/** Options of the rows of tables that an upstream catalog lists (docs/rows-here.md). */
export const ROWS_OPTIONS = {
  rows: {
    flag: "rows",
    value: "upstream|here",
    help: "Server of the rows of the upstream's tables: the upstream itself, or this gateway, at the locations and with the storage options that the upstream describes (docs/rows-here.md).",
    fallback: "upstream",
    parse: parseChoice(["upstream", "here"]),
    backends: RESILIENT_KINDS,
    common: "Serve an upstream's rows here.",
  },
  allowedLocations: {
    flag: "allowed-location",
    value: "DIR|URI",
    help: "Directory, or place such as s3://bucket/prefix, below which the upstream's tables may be; the gateway opens no others. Default: places in buckets for which the upstream sends credentials.",
    parse: parseRoot,
    backends: RESILIENT_KINDS,
    repeatable: true,
    place: true,
    needs: { flag: "rows", is: ["here"] },
  },
} as const satisfies OptionTable;
