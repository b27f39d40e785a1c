import type { Logger } from "pino";
import type { TableContext } from "../catalog/catalog-context.ts";
import type { Journal } from "./journal.ts";

/** Context of a change of several files. */
export interface ChangeContext extends TableContext {
  /** Notes of changes of several files. */
  readonly journal: Journal;
  readonly log: Logger;
}
