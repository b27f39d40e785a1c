import { create } from "@bufbuild/protobuf";
import {
  type BatchCommitTablesRequest,
  BatchCommitTablesResponseSchema,
  type CommitTableResultSchema,
} from "../../../../gen/lance/namespace/v1/transaction_pb.ts";
import {
  BatchCreateTableVersionsResponseSchema,
  BatchDeleteTableVersionsResponseSchema,
  CreateTableVersionResponseSchema,
} from "../../../../gen/lance/namespace/v1/version_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import {
  checkIdentifier,
  type Identifier,
  joinIdentifier,
  parseIdentifier,
  sameIdentifier,
} from "../../../../namespace/identifier.ts";
import type { LanceNamespace } from "../../../../namespace/lance-namespace.ts";
import { createPace } from "../../../../runtime/pace.ts";
import { dropVersions, resolveAbandoned } from "../../batch/resolve.ts";
import { type BatchOutcome, checkNotCancelled, runBatch } from "../../batch/run.ts";
import { afterChange } from "../../format/changes/after-change.ts";
import { createVersion } from "../../format/changes/staged-version.ts";
import { normalizeBranch } from "../../format/dataset.ts";
import { reachNewest } from "../../format/versions/delete-versions.ts";
import type { PreparedVersion } from "../../format/versions/publish-version.ts";
import { describeVersion } from "../../format/versions/version-files.ts";
import type { CatalogDataContext, DirectAccessContext } from "../context.ts";
import { checkTableProperties } from "../properties.ts";
import { declaredTable } from "../tables/declare.ts";
import { deregisteredTable } from "../tables/drop.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { isWritten } from "../tables/table-data.ts";
import { adoptVersions } from "./adopt.ts";
import { type Deletion, deleteAlone, withReachedNewest } from "./delete-alone.ts";
import { createPlanner, type Planner, toRanges, toStaged } from "./plan-batch.ts";
import { REFERENCES, refuseReferred } from "./refuse-referred.ts";
import { openDataset, toTableVersion } from "./versions.ts";

type Operations = Pick<
  LanceNamespace,
  "createTableVersion" | "batchDeleteTableVersions" | "batchCreateTableVersions" | "batchCommitTables"
>;

type CommitResult = ReturnType<typeof create<typeof CommitTableResultSchema>>["result"];

/** The operations by which clients commit through the catalog. */
export function createManagedVersionOperations(
  context: CatalogDataContext & DirectAccessContext,
): Operations {
  const locks = context.createLocks("versions");
  const references = context.createLocks(REFERENCES);
  const { engine, layout } = context;

  /**
   * Plans and runs a batch. Its tables are locked against other commits of this process, so that the checks still hold
   * when the batch commits.
   */
  async function run<T>(
    ids: readonly Identifier[],
    call: Call,
    plan: (planner: Planner) => Promise<T>,
    deletions: readonly Deletion[] = [],
  ): Promise<{ readonly planned: T; readonly outcome: BatchOutcome }> {
    await resolveAbandoned(context);
    return locks.withLocks(
      ids.map((id) => joinIdentifier(id)),
      async () =>
        deleteAlone(context, await withReachedNewest(context, deletions), (histories) =>
          references.withLocks(
            deletions.map(({ id }) => joinIdentifier(id)),
            async () => {
              const planner = await createPlanner(context);
              const planned = await plan(planner);
              const outcome = await runBatch({ ...context, histories }, planner.batch, call.signal);
              return { planned, outcome };
            },
          ),
        ),
    );
  }
  const committed = async ({ dataset, version }: PreparedVersion) =>
    toTableVersion(await describeVersion(dataset, version));

  return {
    async createTableVersion(request, { id, signal }) {
      const staged = toStaged(request);
      return locks.withLocks([joinIdentifier(id)], async () => {
        checkNotCancelled(signal);
        const table = await requireTable(context, { id });
        await layout.checkNoEscape(table.location);
        if (staged.version === 1n) await isWritten(context, table);
        const dataset = datasetOf(context, table, normalizeBranch(request.branch));
        const adopt = (latest: bigint) => adoptVersions(context.log, dataset, latest);
        const entry = await createVersion(dataset, staged, adopt);
        return create(CreateTableVersionResponseSchema, { version: toTableVersion(entry) });
      });
    },
    async batchDeleteTableVersions({ branch, ranges }, { id, signal }) {
      const checked = toRanges(ranges);
      return locks.withLocks([joinIdentifier(id)], async () => {
        checkNotCancelled(signal);
        const table = await requireTable(context, { id });
        const dataset = await openDataset(context, table, branch);
        const changed = (await reachNewest(dataset, checked)) ? [table] : [];
        const deleted = await deleteAlone(context, changed, () =>
          references.withLocks([joinIdentifier(id)], async () => {
            await refuseReferred(dataset, checked);
            return dropVersions(context, dataset, checked);
          }),
        );
        return create(BatchDeleteTableVersionsResponseSchema, { deletedCount: BigInt(deleted) });
      });
    },
    async batchCreateTableVersions({ entries }, call) {
      if (entries.length === 0) throw new LanceError("InvalidInput", "entries must not be empty");
      for (const { id } of entries) checkIdentifier(id);
      const { planned } = await run(
        entries.map(({ id }) => id),
        call,
        async (planner) => {
          return inTurn(entries, (entry) => planner.createVersion(entry.id, entry));
        },
      );
      return create(BatchCreateTableVersionsResponseSchema, {
        versions: await afterChange(() => Promise.all(planned.map(committed))),
      });
    },
    async batchCommitTables(request, call) {
      const operations = identified(request);
      const { planned, outcome } = await run(
        operations.map(({ id }) => id),
        call,
        async (planner) => {
          return inTurn(operations, ({ id, operation }) => plan(planner, id, operation));
        },
        operations.flatMap(({ id, operation }) =>
          operation.case === "deleteTableVersions" ? [{ id, request: operation.value }] : [],
        ),
      );
      const results = await afterChange(() => Promise.all(planned.map((answer) => answer(outcome))));
      return create(BatchCommitTablesResponseSchema, { results: results.map((result) => ({ result })) });
    },
  };

  /** Adds an operation to a batch; returns a function that makes the operation's answer afterwards. */
  async function plan(
    planner: Planner,
    id: Identifier,
    operation: CommitOperation,
  ): Promise<(outcome: BatchOutcome) => CommitResult | Promise<CommitResult>> {
    switch (operation.case) {
      case "createTableVersion": {
        const prepared = await planner.createVersion(id, operation.value);
        return async () => ({
          case: "createTableVersion",
          value: create(CreateTableVersionResponseSchema, { version: await committed(prepared) }),
        });
      }
      case "deleteTableVersions": {
        const place = await planner.deleteVersions(id, operation.value);
        return ({ deleted }) => ({
          case: "deleteTableVersions",
          value: create(BatchDeleteTableVersionsResponseSchema, {
            deletedCount: BigInt(deleted[place] ?? 0),
          }),
        });
      }
      case "declareTable": {
        checkTableProperties(context, id, operation.value.properties);
        const location = await planner.declare(id, operation.value);
        return () => ({
          case: "declareTable",
          value: declaredTable(context, location, operation.value.properties),
        });
      }
      case "deregisterTable": {
        const table = await planner.deregister(id);
        return () => {
          engine.forget(table.path);
          return { case: "deregisterTable", value: deregisteredTable(id, table) };
        };
      }
    }
  }
}

/** Plans the parts of a batch one after the other, and lets other calls run between them. */
async function inTurn<P, T>(parts: readonly P[], plan: (part: P) => Promise<T>): Promise<T[]> {
  const pace = createPace();
  const planned: T[] = [];
  for (const part of parts) {
    planned.push(await plan(part));
    // On a disk, nothing in a plan has to wait.
    await pace.pauseIfDue();
  }
  return planned;
}

type AnyOperation = BatchCommitTablesRequest["operations"][number]["operation"];
type CommitOperation = Exclude<AnyOperation, { case: undefined }>;

/** Returns the operations of a request with the tables that they name. @throws LanceError InvalidInput */
function identified({ operations, delimiter: common }: BatchCommitTablesRequest) {
  if (operations.length === 0) throw new LanceError("InvalidInput", "operations must not be empty");
  return operations.map(({ operation }) => {
    if (operation.case === undefined) {
      throw new LanceError("InvalidInput", "an entry of operations must have exactly one operation");
    }
    const { id: names, identifier, delimiter = common } = operation.value;
    checkIdentifier(names);
    const id = identifier === "" ? names : parseIdentifier(identifier, delimiter);
    if (names.length > 0 && !sameIdentifier(id, names)) {
      throw new LanceError(
        "InvalidInput",
        `an operation names both ${identifier} and ${JSON.stringify(names)}`,
      );
    }
    return { id, operation };
  });
}
