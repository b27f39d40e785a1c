import type { OptionTable } from "../option-spec.ts";
import { parseDuration, parseInteger, parseSize } from "../parsers.ts";

/** Options of SQL (docs/sql.md#bounds). */
export const SQL_OPTIONS = {
  sqlPort: {
    flag: "sql-port",
    value: "N",
    help: "Second port on --host with the same services, where LanceDB's client looks for Flight SQL: its host's port + 1. Default: none.",
    parse: parseInteger(1, 65_535),
    needs: { flag: "listen", absent: true },
  },
  sqlMemoryBytes: {
    flag: "sql-memory-size",
    value: "SIZE",
    help: "Memory of DuckDB for one statement in SQL; a statement that needs more is refused.",
    fallback: "512MiB",
    parse: parseSize,
  },
  sqlKeptBytes: {
    flag: "sql-kept-size",
    value: "SIZE",
    help: "Memory of the tables that an engine of SQL keeps between the statements of a caller; less than 1MiB keeps none.",
    fallback: "256MiB",
    parse: parseSize,
  },
  sqlThreads: {
    flag: "sql-threads",
    value: "N",
    help: "Threads of a statement in SQL.",
    fallback: "2",
    parse: parseInteger(1, 256),
  },
  sqlTimeoutMs: {
    flag: "sql-timeout",
    value: "TIME",
    help: "Maximum time of a statement in SQL, its result included; 0s for no limit.",
    fallback: "5m",
    parse: parseDuration,
  },
  sqlMaxRows: {
    flag: "sql-max-rows",
    value: "N",
    help: "Maximum number of rows of the result of a statement in SQL.",
    fallback: "10000000",
    parse: parseInteger(1, 1_000_000_000),
  },
  sqlMaxStatements: {
    flag: "sql-max-statements",
    value: "N",
    help: "Maximum number of statements in SQL at a time in each worker, each in a process of its own; more wait.",
    fallback: "2",
    parse: parseInteger(1, 64),
  },
} as const satisfies OptionTable;
