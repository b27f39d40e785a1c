import { type Need, RESILIENT_KINDS } from "../option-spec.ts";

/** Need of options about rows: an upstream may serve its rows itself. */
export const ROWS_HERE = { flag: "rows", is: ["here"], with: RESILIENT_KINDS } as const satisfies Need;

/** Need of options about background work in a directory. */
export const MAINTENANCE = { flag: "no-maintenance", isNot: ["true"], with: ["dir"] } as const satisfies Need;

/** Needs of options about upkeep. In a directory, the properties of a table can turn on what the options turn off. */
export const UPKEEP = [
  { flag: "table-upkeep", is: ["on"], with: RESILIENT_KINDS },
  MAINTENANCE,
] as const satisfies readonly Need[];
