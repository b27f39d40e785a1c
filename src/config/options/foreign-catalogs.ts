import { parseIdentifier } from "../../namespace/identifier.ts";
import { isRoot } from "../../namespace/root.ts";
import { CATALOG_KINDS, type OptionTable, RESILIENT_KINDS, UsageError } from "../option-spec.ts";
import { parseChoice, parseRoot, parseText } from "../parsers.ts";

/** Options of foreign catalogs (docs/catalogs.md). */
export const FOREIGN_CATALOG_OPTIONS = {
  warehouse: {
    flag: "warehouse",
    value: "NAME",
    help: "Catalog of a Polaris server, warehouse of Lakekeeper, catalog of Unity, or id of a Glue catalog, which becomes the root. Default: all catalogs of Unity, and the account's own in Glue.",
    parse: parseText,
    backends: CATALOG_KINDS,
    place: true,
  },
  warehouseNamespace: {
    flag: "warehouse-namespace",
    value: "NAME",
    help: "Namespace of the catalog that becomes the root, several names joined with $, such as a database of Glue. Clients then need not name it. Default: the root of the catalog.",
    parse: (text: string) => parseIdentifier(text),
    backends: CATALOG_KINDS,
    place: true,
  },
  glueRegion: {
    flag: "glue-region",
    value: "REGION",
    help: "Region of the Glue catalog. Default: AWS_REGION or AWS_DEFAULT_REGION.",
    parse: parseText,
    backends: ["glue"],
    place: true,
  },
  tableRoot: {
    flag: "table-root",
    value: "URI",
    help: "Place for tables that are declared without a location in a namespace without one, such as s3://bucket/prefix. Default: these declarations are refused.",
    parse(text: string) {
      if (isRoot(text) && /^(?:\/|[a-z0-9+.-]+:\/\/)/.test(text)) return text;
      throw new UsageError("must be a place such as s3://bucket/prefix");
    },
    backends: CATALOG_KINDS,
    place: true,
  },
} as const satisfies OptionTable;

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
