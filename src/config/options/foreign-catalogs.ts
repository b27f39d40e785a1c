import { parseIdentifier } from "../../namespace/identifier.ts";
import { isRoot } from "../../namespace/root.ts";
import { CATALOG_KINDS, type OptionTable, UsageError } from "../option-spec.ts";
import { parseText } from "../parsers.ts";

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
