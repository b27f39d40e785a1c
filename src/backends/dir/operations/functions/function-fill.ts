import type { JsonObject } from "@bufbuild/protobuf";
import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../../../namespace/errors.ts";
import { joinIdentifier } from "../../../../namespace/identifier.ts";
import type { BoundColumn } from "../../jobs/functions/open-functions.ts";
import type { Job, JobFacts } from "../../jobs/job.ts";
import type { EngineContext } from "../context.ts";
import { checkInputs, readBinding, requireBound, requireRecord } from "./computed-column.ts";
import { requireFunctions, requireOwner } from "./require-owner.ts";

type Context = Pick<EngineContext, "cluster">;

/**
 * Checks that a column can be filled by its function, and returns what the job notes about it.
 *
 * @param claimed the column as its metadata say it
 * @throws LanceError
 */
export async function planFunctionFill(
  context: Context,
  schema: ArrowSchema,
  claimed: BoundColumn,
  call: Call,
): Promise<string> {
  requireFunctions(context);
  await requireOwner(call);
  const binding = await requireBound(context, claimed);
  checkInputs(schema, await requireRecord(context, binding), binding);
  const inputs = binding.inputs.map(([parameter, path]) => [
    parameter,
    formatFieldPath(resolveField(schema, path).names),
  ]);
  return JSON.stringify({ ...binding, inputs });
}

/**
 * Returns the function of a job for its driver, with its source and the values of its secrets.
 *
 * @throws LanceError InvalidInput. Of a missing object, a driver would conclude that nobody wants its work any more, and it would repeat
 * its call after an error of the server.
 */
export function describeFunction(context: Context, job: Job): Promise<JsonObject> {
  return findFunction(context, job).catch((error: unknown) => {
    if (!isLanceError(error, "TableVersionNotFound") && !isLanceError(error, "DataLoss")) throw error;
    throw new LanceError("InvalidInput", error.message, { cause: error });
  });
}

async function findFunction(context: Context, { spec }: Job): Promise<JsonObject> {
  const { records, secrets } = requireFunctions(context);
  const binding = readBinding(String(spec["function"]));
  const record = await requireRecord(context, binding);
  const { artifact, runtime, signature, secretBindings } = record;
  const source = await records.sourceOf(artifact.digest);
  if (source === undefined)
    throw new LanceError("DataLoss", `the source of the function ${binding.name} is gone`);
  const variables: Record<string, string> = {};
  for (const { variable, secret } of secretBindings) {
    const value = await secrets?.open(secret);
    if (value === undefined)
      throw new LanceError(
        "InvalidInput",
        `the secret ${joinIdentifier(secret)}, which is bound to ${variable}, does not exist`,
      );
    variables[variable] = value;
  }
  return {
    ...{ artifact, runtime, signature },
    source: Buffer.from(source).toString("base64"),
    inputs: binding.inputs.map(([parameter, path]) => [parameter, path]),
    initialization: binding.initialization,
    secrets: variables,
  };
}

/** Records the failed rows that a driver has reported, and returns their number. */
export async function noteFailedRows(
  context: Context,
  job: Job,
  report: JsonObject,
  now: number,
): Promise<Pick<JobFacts, "rowsFailed">> {
  const { failed = 0, errors = [], fragments = [], source_version: read = 0 } = report;
  if (failed === 0) return { rowsFailed: 0 };
  const { name, version } = readBinding(String(job.spec["function"]));
  await requireFunctions(context).errors.put({
    location: String(job.spec["location"]),
    ...{ jobId: job.id, at: now, column: String(job.spec["column"]), function: name },
    ...{ functionVersion: String(version), tableVersion: Number(read), errors, fragments },
  });
  return { rowsFailed: Number(failed) };
}
