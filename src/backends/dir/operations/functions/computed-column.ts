import type { JsonObject } from "@bufbuild/protobuf";
import { resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import type { AddColumnsEntry } from "../../../../gen/lance/namespace/v1/schema_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { isJsonObject } from "../../../../runtime/text.ts";
import type { DatasetRef } from "../../format/dataset.ts";
import { createFieldFinder } from "../../format/files/manifest.ts";
import { readVersion } from "../../format/versions/version-files.ts";
import type { BoundColumn } from "../../jobs/functions/open-functions.ts";
import type { FunctionRecord } from "../../jobs/functions/records.ts";
import type { EngineContext } from "../context.ts";
import { type FunctionType, functionTypeName, functionTypeOf, parseFunctionType } from "./function-type.ts";
import { versionNotFound } from "./functions.ts";
import { requireFunctions, requireOwner } from "./require-owner.ts";

/** The metadata key of a column under which the function of its values is kept. */
export const FUNCTION_KEY = "lance_gateway.function";

/** The kind of virtual columns whose function is one that CreateFunction has stored. */
export const STORED_FUNCTION = "lancedb_function";

/** Maximum length of what a column says about its function, in characters. */
const MAX_LENGTH = 16 * 1024;
/** Number of characters that a refusal quotes of it. */
const SHOWN_LENGTH = 500;

/** The function that computes a column, and what it gets. */
export interface FunctionBinding {
  readonly objectId: string;
  readonly version: number;
  readonly name: string;
  /** The parameters, each with the path of its column. */
  readonly inputs: readonly (readonly [parameter: string, path: string])[];
  /** Values for the instances of a class. */
  readonly initialization: JsonObject;
}

/** A new column that a function computes. */
export interface FunctionColumn {
  readonly name: string;
  readonly type: FunctionType;
  readonly binding: FunctionBinding;
}

/** Whether a new column is computed by a function that CreateFunction has stored. */
export function isFunctionColumn({ virtualColumn }: AddColumnsEntry): boolean {
  return virtualColumn?.udfBackend === STORED_FUNCTION;
}

/**
 * Checks a new column that a function computes.
 *
 * @throws LanceError Unsupported, PermissionDenied, InvalidInput; TableVersionNotFound for a function that there is not
 */
export async function checkFunctionColumn(
  context: Pick<EngineContext, "cluster">,
  entries: readonly AddColumnsEntry[],
  call: Call,
): Promise<FunctionColumn> {
  requireFunctions(context);
  await requireOwner(call);
  const [entry] = entries;
  if (entry === undefined || entries.length > 1)
    throw new LanceError("Unsupported", "a function fills one column here, and is added alone");
  const { virtualColumn, name } = entry;
  const binding = readApplication(virtualColumn?.manifest ?? "");
  const record = await requireRecord(context, binding);
  const { output } = record.signature;
  const type = parseFunctionType(String(isJsonObject(output) ? output["arrow_type"] : ""), "the result");
  return { name, type, binding };
}

/** Returns the function of a column. @throws LanceError TableVersionNotFound */
export async function requireRecord(
  context: Pick<EngineContext, "cluster">,
  { objectId, version, name }: FunctionBinding,
): Promise<FunctionRecord> {
  const record = await requireFunctions(context).records.get(objectId, version);
  if (record === undefined) throw versionNotFound([name], String(version));
  return record;
}

/** Checks that a function takes the columns that it is to get. @throws LanceError TableColumnNotFound, InvalidInput */
export function checkInputs(schema: ArrowSchema, record: FunctionRecord, { inputs }: FunctionBinding): void {
  const parameters = Array.isArray(record.signature["inputs"]) ? record.signature["inputs"] : [];
  const given = new Map(inputs);
  if (given.size !== parameters.length || inputs.length !== parameters.length)
    throw invalid(`the function has ${parameters.length} parameters, and gets ${inputs.length}`);
  for (const parameter of parameters) {
    const { name, arrow_type: wanted } = isJsonObject(parameter) ? parameter : {};
    const path = given.get(String(name));
    if (path === undefined) throw invalid(`the parameter ${name} gets no column`);
    const found = functionTypeOf(resolveField(schema, path).field);
    const type = parseFunctionType(String(wanted), `the parameter ${name}`);
    if (found !== functionTypeName(type))
      throw invalid(
        `the parameter ${name} takes ${wanted}, and the column ${path} is ${found ?? "of another type"}`,
      );
  }
}

/** Returns the function of a column from the column's metadata. @throws LanceError InvalidInput */
export function readBinding(text: string): FunctionBinding {
  const value = objectIn(text, FUNCTION_KEY);
  const { objectId, version, name, inputs, initialization = {} } = value;
  const isSound =
    typeof objectId === "string" &&
    typeof version === "number" &&
    typeof name === "string" &&
    Array.isArray(inputs) &&
    inputs.every(
      (each) => Array.isArray(each) && each.length === 2 && each.every((part) => typeof part === "string"),
    ) &&
    isJsonObject(initialization);
  if (!isSound) throw invalid(`${FUNCTION_KEY} is not the description of a function`);
  return value as unknown as FunctionBinding;
}

/** Returns what the metadata of a column says about its function. */
export function bindingText(binding: FunctionBinding): string {
  return JSON.stringify(binding);
}

/** Returns the id of a column in a version of a table, by its path. */
export async function fieldIdOf(dataset: DatasetRef, version: bigint, path: string): Promise<number> {
  const { manifest } = await readVersion(dataset, version);
  return createFieldFinder(manifest)(path).id;
}

/**
 * Checks that the metadata of a column names the function that an owner has chosen for it. Writers of the table can change the
 * metadata, and must not decide by it which function runs, and with which secrets.
 *
 * @throws LanceError InvalidTableState
 */
export async function requireBound(
  context: Pick<EngineContext, "cluster">,
  claimed: BoundColumn,
): Promise<FunctionBinding> {
  const { column, binding: text } = claimed;
  const bound = await requireFunctions(context).columns.get(claimed);
  if (bound === text) return readBinding(text);
  const chosen =
    bound === undefined
      ? "no owner has chosen a function for it"
      : `an owner has chosen ${bound.slice(0, SHOWN_LENGTH)}`;
  throw new LanceError(
    "InvalidTableState",
    `the metadata of column ${column} was changed: it says ${text.slice(0, SHOWN_LENGTH)}, and ${chosen}; an owner may drop the column and add it again`,
  );
}

/** Reads what LanceDB's clients send about the function of a column. */
function readApplication(text: string): FunctionBinding {
  const { function: reference, inputs, initialization = {} } = objectIn(text, "virtual_column.manifest");
  const { name, object_id: objectId, version } = isJsonObject(reference) ? reference : {};
  if (typeof name !== "string" || typeof objectId !== "string" || !Array.isArray(inputs))
    throw invalid("the application of a function must have function and inputs");
  const bound = inputs.map((input: unknown) => {
    const { parameter, kind, value } = isJsonObject(input) ? input : {};
    const path = isJsonObject(value) ? value["path"] : undefined;
    if (kind !== "column" || typeof parameter !== "string" || typeof path !== "string")
      throw invalid("each input of a function must be a column");
    return [parameter, path] as const;
  });
  if (!isJsonObject(initialization)) throw invalid("initialization must be an object");
  return {
    objectId,
    version: Number(version),
    name,
    inputs: bound,
    initialization: initialization as JsonObject,
  };
}

function objectIn(text: string, place: string): Readonly<Record<string, unknown>> {
  if (text.length > MAX_LENGTH) throw invalid(`${place} may have ${MAX_LENGTH} characters`);
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw invalid(`${place} must be a JSON object`);
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}

/** Returns an Arrow IPC file with the schema of a column that a function computes, and no rows. */
export async function emptyColumn({ name, type, binding }: FunctionColumn): Promise<Buffer> {
  const arrow = await import("apache-arrow");
  const plain: Readonly<Record<string, () => InstanceType<typeof arrow.DataType>>> = {
    bool: () => new arrow.Bool(),
    int8: () => new arrow.Int8(),
    int16: () => new arrow.Int16(),
    int32: () => new arrow.Int32(),
    int64: () => new arrow.Int64(),
    uint8: () => new arrow.Uint8(),
    uint16: () => new arrow.Uint16(),
    uint32: () => new arrow.Uint32(),
    uint64: () => new arrow.Uint64(),
    float16: () => new arrow.Float16(),
    float32: () => new arrow.Float32(),
    float64: () => new arrow.Float64(),
    utf8: () => new arrow.Utf8(),
    large_utf8: () => new arrow.LargeUtf8(),
    binary: () => new arrow.Binary(),
    large_binary: () => new arrow.LargeBinary(),
    date32: () => new arrow.DateDay(),
    date64: () => new arrow.DateMillisecond(),
  };
  const typeOf = ({ item, list, size = 0 }: FunctionType) => {
    const value = plain[item]?.() ?? new arrow.Null();
    if (list === undefined) return value;
    return new arrow.FixedSizeList(size, new arrow.Field("item", value, true));
  };
  const metadata = new Map([[FUNCTION_KEY, bindingText(binding)]]);
  const schema = new arrow.Schema([new arrow.Field(name, typeOf(type), true, metadata)]);
  return Buffer.from(arrow.tableToIPC(new arrow.Table(schema), "file"));
}
