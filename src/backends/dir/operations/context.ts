import type { Logger } from "pino";
import { LanceError } from "../../../namespace/errors.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { Layout } from "../catalog/layout.ts";
import type { Engine } from "../engine/engine.ts";

/** What the operations of a directory work with. */
export interface DirContext {
  readonly catalog: Catalog;
  readonly layout: Layout;
  readonly engine: Engine;
  readonly log: Logger;
  /** The largest upload, before and after it is unpacked, in bytes. */
  readonly maxUploadBytes: number;
  /** The most entries of a page. */
  readonly maxPageSize: number;
}

/**
 * Refuses a branch other than main, rather than work on main in its place.
 *
 * @throws LanceError Unsupported
 */
export function refuseBranch(branch: string | undefined): void {
  if (branch === undefined || branch === "" || branch === "main") return;
  throw new LanceError(
    "Unsupported",
    `this operation does not work on branches yet (branch ${JSON.stringify(branch)})`,
  );
}
