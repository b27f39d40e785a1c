import { type Dialect, specification } from "./dialect.ts";
import { lancedb } from "./lancedb.ts";

/** Every dialect. The first one that recognises a request answers it; the last one recognises all. */
export const DIALECTS: readonly Dialect[] = [lancedb, specification];
