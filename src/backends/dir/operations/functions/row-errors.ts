import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import {
  type FunctionErrorFragment,
  FunctionErrorFragmentSchema,
  type FunctionErrorRecord,
  FunctionErrorRecordSchema,
  ListFunctionErrorsResponseSchema,
} from "../../../../gen/lance/gateway/v1/function_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { LanceDbExtensions } from "../../../../namespace/lance-namespace.ts";
import { isJsonObject } from "../../../../runtime/text.ts";
import type { FailedRows } from "../../jobs/functions/row-errors.ts";
import type { CatalogDataContext, EngineContext } from "../context.ts";
import { requireTable } from "../tables/find-table.ts";
import { isMain } from "../tables/open-data.ts";
import { requireFunctions, requireOwner } from "./require-owner.ts";

const LIMIT = 10_000;
const MAX_LIMIT = 100_000;

/** The operation that shows for which rows functions have failed. */
export function createErrorOperations(
  context: CatalogDataContext & Pick<EngineContext, "cluster">,
): Pick<LanceDbExtensions, "listFunctionErrors"> {
  return {
    async listFunctionErrors({ jobId, column, branch, limit = LIMIT }, call) {
      const { errors } = requireFunctions(context);
      // They have texts that a function has made, as the definitions do.
      await requireOwner(call);
      if (!isMain(branch))
        throw new LanceError("Unsupported", "branches have no columns that functions compute");
      const { location } = await requireTable(context, call);
      const isMeant = (rows: FailedRows) =>
        (jobId === undefined || rows.jobId === jobId) && (column === undefined || rows.column === column);
      const jobs = (await errors.list(location)).filter(isMeant);
      const records = jobs.flatMap(recordsOf);
      const most = Math.min(Math.max(limit, 1), MAX_LIMIT);
      return create(ListFunctionErrorsResponseSchema, {
        records: records.slice(0, most),
        fragments: jobs.flatMap(fragmentsOf),
        truncated: records.length > most,
      });
    },
  };
}

function recordsOf(rows: FailedRows): FunctionErrorRecord[] {
  return objectsIn(rows.errors).map(({ fragment, offset, type, message }) =>
    create(FunctionErrorRecordSchema, {
      ...{ jobId: rows.jobId, fragmentId: whole(fragment), rowOffset: whole(offset), column: rows.column },
      ...{ function: rows.function, functionVersion: rows.functionVersion },
      ...{ tableVersion: BigInt(rows.tableVersion), createdAtMillis: BigInt(Math.trunc(rows.at)) },
      ...{ errorType: String(type), errorMessage: String(message) },
    }),
  );
}

function fragmentsOf({ jobId, fragments }: FailedRows): FunctionErrorFragment[] {
  return objectsIn(fragments)
    .filter(({ skipped, recorded }) => skipped !== recorded)
    .map(({ fragment, skipped, recorded }) =>
      create(FunctionErrorFragmentSchema, {
        ...{ jobId, fragmentId: whole(fragment), rowsSkipped: whole(skipped), rowsRecorded: whole(recorded) },
      }),
    );
}

function objectsIn(value: JsonValue): JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function whole(value: JsonValue | undefined): bigint {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : 0n;
}
