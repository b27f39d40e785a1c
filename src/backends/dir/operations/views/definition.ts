import { END_OF_STREAM, splitIpcFile } from "../../../../arrow/ipc/stream.ts";
import type { ArrowField, ArrowSchema } from "../../../../arrow/schema.ts";
import { collectUpload } from "../../../../arrow/upload/upload.ts";
import {
  type CreateMaterializedViewRequest,
  MaterializedViewKind,
} from "../../../../gen/lance/namespace/v1/view_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import type { FoundTable } from "../../data/table-source.ts";

/** The definition of a view, which is kept in the properties of its table, where clients see it. */
export interface ViewDefinition {
  readonly sourceQuery: string;
  /** The schema of the view in base64, as the client sent it, or that of the query: an Arrow schema message. */
  readonly outputSchema: string;
  readonly withNoData: boolean;
  /** Whether the server refreshes the view when its source changes. */
  readonly autoRefresh: boolean;
}

const PREFIX = "lance_gateway.view.";
const KIND = "query";
const AUTO_REFRESH = `${PREFIX}auto_refresh`;

/** The property of a view's table that holds its query. */
export const SOURCE_QUERY = `${PREFIX}source_query`;

/**
 * Refuses properties that define a view from callers of other operations: they name the table that the gateway reads for the
 * view, and only the creation of a view needs a right to that table.
 *
 * @throws LanceError InvalidInput
 */
export function checkDefinesNoView(properties: Readonly<Record<string, string>>): void {
  const name = Object.keys(properties).find((key) => key.startsWith(PREFIX));
  if (name === undefined) return;
  throw invalid(`the property ${name} defines a view, which only CreateMaterializedView does`);
}

/** Returns the properties of a view's table. */
export function toProperties(definition: ViewDefinition): Record<string, string> {
  const { sourceQuery, outputSchema, withNoData, autoRefresh } = definition;
  return {
    [`${PREFIX}kind`]: KIND,
    [SOURCE_QUERY]: sourceQuery,
    [`${PREFIX}output_schema`]: outputSchema,
    [`${PREFIX}with_no_data`]: String(withNoData),
    [AUTO_REFRESH]: String(autoRefresh),
  };
}

/** Whether the properties of a table are those of a view. */
export function isView(properties: Readonly<Record<string, string>>): boolean {
  return properties[`${PREFIX}kind`] === KIND;
}

/** Whether the properties of a table are those of a view that is refreshed by itself. */
export function isAutoView(properties: Readonly<Record<string, string>>): boolean {
  return isView(properties) && properties[AUTO_REFRESH] === "true";
}

/**
 * Reads the definition of a view.
 *
 * @throws LanceError InvalidInput for a table that is not a view
 */
export function readDefinition({ properties }: FoundTable): ViewDefinition {
  const { [SOURCE_QUERY]: sourceQuery, [`${PREFIX}output_schema`]: outputSchema } = properties;
  if (!isView(properties) || sourceQuery === undefined || outputSchema === undefined) {
    throw new LanceError("InvalidInput", "the table is not a materialized view");
  }
  return {
    sourceQuery,
    outputSchema,
    withNoData: properties[`${PREFIX}with_no_data`] === "true",
    autoRefresh: properties[AUTO_REFRESH] === "true",
  };
}

/**
 * Checks the definition in a request. @throws LanceError InvalidInput; Unsupported for the kinds that need a function
 */
export function checkDefinition(request: CreateMaterializedViewRequest): ViewDefinition {
  const { kind, udtfSpec, sourceQuery, outputSchema, withNoData = true, autoRefresh = false } = request;
  if (kind === MaterializedViewKind.UNSPECIFIED) throw invalid("kind is missing");
  if (kind === MaterializedViewKind.UDTF || kind === MaterializedViewKind.CHUNKER) {
    throw new LanceError(
      "Unsupported",
      "views of the kinds udtf and chunker need a Python function, which this server does not run; it has those of the kind query",
    );
  }
  // Rights are decided by the sources of a view, before fields are checked.
  if (kind !== MaterializedViewKind.QUERY) throw invalid(`kind has the unknown value ${kind}`);
  if (udtfSpec !== undefined) throw invalid("udtf_spec is not for views of the kind query");
  return { sourceQuery, outputSchema, withNoData, autoRefresh };
}

/** A schema as the start of an Arrow IPC stream. */
export interface OutputSchema {
  readonly schema: ArrowSchema;
  /** The schema message with its prefix. */
  readonly message: Uint8Array;
}

/**
 * Reads the schema of a view: an Arrow schema message, as `pyarrow.Schema.serialize` makes it, or an IPC stream
 * without rows.
 *
 * @throws LanceError InvalidInput
 */
export async function readOutputSchema(outputSchema: string, maxBytes: number): Promise<OutputSchema> {
  // With the spaces at the end in the pattern, too, a text of spaces would be read once for each of them.
  if (!/^[A-Za-z0-9+/\s]+={0,2}$/.test(outputSchema.trimEnd())) throw invalid("output_schema is not base64");
  const bytes = Buffer.from(outputSchema, "base64");
  const ended = bytes.subarray(-END_OF_STREAM.byteLength).equals(END_OF_STREAM);
  if (bytes.subarray(0, 6).toString("latin1") === "ARROW1") {
    throw invalid("output_schema is an Arrow IPC file; it must be a schema message or an IPC stream");
  }
  async function* stream() {
    yield bytes;
    if (!ended) yield END_OF_STREAM;
  }
  const { file, schema } = await collectUpload(stream(), { maxBytes });
  if (schema.fields.length === 0) throw invalid("output_schema has no columns");
  return { schema, message: splitIpcFile(file).schema };
}

/**
 * Checks that the result of a view's query has the columns of the view's schema.
 *
 * @throws LanceError TableSchemaValidationError
 */
export function checkResult(result: ArrowSchema, view: ArrowSchema): void {
  for (let i = 0; i < Math.max(result.fields.length, view.fields.length); i++) {
    const [actual, wanted] = [result.fields[i], view.fields[i]];
    if (
      actual !== undefined &&
      wanted !== undefined &&
      actual.name === wanted.name &&
      sameType(actual, wanted)
    ) {
      continue;
    }
    throw new LanceError(
      "TableSchemaValidationError",
      `column ${i + 1} of source_query is ${describe(actual)}, and of output_schema ${describe(wanted)}`,
    );
  }
}

/** Compares types without the names of list items, which differ between writers and have no meaning. */
function sameType(a: ArrowField, b: ArrowField): boolean {
  const named = a.type.name === "struct";
  return (
    JSON.stringify(a.type) === JSON.stringify(b.type) &&
    (a.dictionary === undefined) === (b.dictionary === undefined) &&
    a.children.length === b.children.length &&
    a.children.every((child, i) => {
      const other = b.children[i] as ArrowField;
      return (!named || child.name === other.name) && sameType(child, other);
    })
  );
}

function describe(field: ArrowField | undefined): string {
  if (field === undefined) return "missing";
  return `${JSON.stringify(field.name)} of the type ${JSON.stringify(field.type)}`;
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}
