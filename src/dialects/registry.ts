import type { Dialect } from "./dialect.ts";
import { lancedb } from "./lancedb.ts";
import { specification } from "./specification.ts";

/** Every dialect. The first that recognises a request answers it; the last recognises all. */
export const DIALECTS: readonly Dialect[] = [lancedb, specification];
