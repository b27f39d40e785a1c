import type { TableContext } from "../catalog/catalog-context.ts";
import type { Jobs } from "../jobs/jobs.ts";
import type { Journal } from "./journal.ts";
import type { WorkNotes } from "./work-notes.ts";

/** Context of a change of several files. */
export interface ChangeContext extends TableContext {
  /** Notes of changes of several files. */
  readonly journal: Journal;
  /** Shows at which locations something may still be written. */
  readonly work: WorkNotes;
  readonly jobs: Jobs;
}
