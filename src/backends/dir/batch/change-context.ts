import type { Logger } from "pino";
import type { TableContext } from "../catalog/catalog-context.ts";
import type { Journal } from "./journal.ts";

/** Everything that a change of several files reads and writes. */
export interface ChangeContext extends TableContext {
  /** Notes of changes of several files. */
  readonly journal: Journal;
  readonly log: Logger;
}
