import { create } from "@bufbuild/protobuf";
import {
  GetLsmStatsResponseSchema,
  GetLsmWriteSpecResponseSchema,
  LsmWriteSpecSchema,
  UnsetLsmWriteSpecResponseSchema,
} from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import type { DataContext } from "../../data/data-context.ts";
import type { NativeLsmWriteSpec } from "../../engine/native/native.ts";
import { withGuarded } from "./call-data.ts";
import { requireTable } from "./find-table.ts";

const NO_MOVE = "moving rows from the log of a table into the table is not supported by the engine";

/** The operations on the log through which a table may take writes (LanceDB's MemWAL). */
export function createWriteLogOperations(
  context: DataContext,
): Pick<
  LanceDbExtensions,
  "getLsmWriteSpec" | "setLsmWriteSpec" | "unsetLsmWriteSpec" | "getLsmStats" | "manageLsm"
> {
  return {
    getLsmWriteSpec: ({ branch }, call) =>
      withGuarded(context, call, { branch }, async ({ table, wait }) => {
        const spec = await wait(() => table.getLsmWriteSpec());
        return create(GetLsmWriteSpecResponseSchema, spec ? { lsmWriteSpec: toWriteSpec(spec) } : {});
      }),
    async setLsmWriteSpec(_request, call) {
      await requireTable(context, call);
      throw new LanceError("Unsupported", `${NO_MOVE}, so no log can be set`);
    },
    getLsmStats: (_request, call) =>
      withGuarded(context, call, {}, async ({ table, wait }) => {
        const spec = await wait(() => table.getLsmWriteSpec());
        if (!spec) return create(GetLsmStatsResponseSchema);
        throw new LanceError("Unsupported", "the engine cannot report the state of a table's write log");
      }),
    async manageLsm(_request, call) {
      await requireTable(context, call);
      throw new LanceError("Unsupported", NO_MOVE);
    },
    unsetLsmWriteSpec: ({ branch }, call) =>
      withGuarded(context, call, { branch }, async ({ table, commit }) => {
        await commit(async () => {
          await table.unsetLsmWriteSpec();
          return { version: await table.version() };
        });
        return create(UnsetLsmWriteSpecResponseSchema);
      }),
  };
}

function toWriteSpec(spec: NativeLsmWriteSpec) {
  const { specType: mode, column, numBuckets, maintainedIndexes = [], writerConfigDefaults = {} } = spec;
  return create(LsmWriteSpecSchema, {
    sharding: {
      mode,
      ...(column !== undefined && { column }),
      ...(numBuckets !== undefined && { numBuckets }),
    },
    maintainedIndexes: [...maintainedIndexes],
    writerConfigDefaults: { ...writerConfigDefaults },
  });
}

/**
 * Refuses a merge that would go into the log of its table, and one that demands a log where there is none.
 *
 * @param useLsm whether the rows go into the log; undefined for the default, which is true for a table with a log
 * @throws LanceError InvalidInput, Unsupported
 */
export function checkWriteLog(useLsm: boolean | undefined, hasLog: boolean): void {
  if (useLsm === false) return;
  if (hasLog) {
    throw new LanceError(
      "Unsupported",
      "the table has a MemWAL write spec, and the gateway writes no rows into logs; set use_lsm(false) or unset the spec",
    );
  }
  if (useLsm) {
    throw new LanceError(
      "InvalidInput",
      "use_lsm(true) was set but the table has no MemWAL write spec; install one with set_lsm_write_spec or leave use_lsm unset",
    );
  }
}
