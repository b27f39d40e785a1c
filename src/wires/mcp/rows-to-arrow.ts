import type { DataType, Field, Schema } from "apache-arrow";
import { NumberText, textOfJson } from "../../arrow/rows/json-text.ts";
import { LanceError } from "../../client/exports.ts";
import { isNumberText } from "../../client/text/numbers.ts";
import { schemaOfText, textToArrow } from "../../client/text/text-to-arrow.ts";
import { typeOfName } from "../../client/text/type-names.ts";

/** A row as a tool receives it. */
export type JsonRow = Readonly<Record<string, unknown>>;

/** How rows become Arrow. */
export interface JsonRowsOptions {
  /** Schema of the table. Default: the rows determine it. */
  readonly schema?: Schema | undefined;
  /** Types of columns by name, as `lance-gateway import --type` names them. Default: the narrowest that hold all values. */
  readonly types?: Readonly<Record<string, string>> | undefined;
  /** Whether numbers are rounded to what floating-point columns hold. Default: they are refused. */
  readonly isRounded?: boolean | undefined;
}

/** Digits that every decimal number keeps as a JSON number; more may have been lost before a tool receives it. */
const KEPT_DIGITS = 15;

/**
 * Returns the Arrow IPC stream of rows, as the import of JSON lines makes it: each row is a line. Strings with numbers are also numbers where the
 * type of a column is an integer or a decimal.
 *
 * @throws LanceError InvalidInput for values that their columns do not hold exactly.
 */
export async function rowsToArrow(
  rows: readonly JsonRow[],
  { schema, types = {}, isRounded = false }: JsonRowsOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const arrow = await import("apache-arrow");
  const chosen = new Map(Object.entries(types).map(([name, type]) => [name, typeOfName(arrow, type)]));
  const fields = schema?.fields ?? [...chosen].map(([name, type]) => new arrow.Field(name, type, true));
  const toExact = createExact(arrow.DataType, fields);
  const text = Buffer.from(rows.map((row, index) => `${textOfJson(toExact(row, index))}\n`).join(""));
  const open = async function* () {
    yield text;
  };
  const options = { format: "jsonl", types: chosen, isRounded } as const;
  const target =
    schema ?? (rows.length === 0 ? new arrow.Schema([...fields]) : await schemaOfText(open, options));
  return textToArrow(open, target, { ...options, isForTable: schema !== undefined || rows.length === 0 });
}

/** Creates the function that gives the numbers of rows the digits that were sent. */
function createExact(Is: typeof DataType, fields: readonly Field[]) {
  const types = new Map(fields.map(({ name, type }) => [name, type]));

  function exact(value: unknown, type: DataType | undefined): unknown {
    if (typeof value === "number") {
      if (isExact(value, Is.isDecimal(type))) return value;
      throw new Error(`a number such as ${value} may have lost digits on its way; send it as a string`);
    }
    if (typeof value === "string")
      return (Is.isInt(type) || Is.isDecimal(type)) && isNumberText(value) ? new NumberText(value) : value;
    if (Array.isArray(value)) return value.map((item) => exact(item, type?.children?.[0]?.type));
    if (typeof value !== "object" || value === null) return value;
    const typeOf = (name: string) =>
      (type?.children as readonly Field[] | undefined)?.find((child) => child.name === name)?.type;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, exact(item, typeOf(name))]));
  }

  return (row: JsonRow, index: number) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => {
        try {
          return [name, exact(value, types.get(name))];
        } catch (cause) {
          const { message } = cause as Error;
          const place = `line ${index + 1}, column ${JSON.stringify(name)}`;
          throw new LanceError("InvalidInput", `${place}: ${message}`, { cause });
        }
      }),
    );
}

/** Whether a number certainly has the digits that were sent. */
function isExact(value: number, isDecimal: boolean): boolean {
  if (Number.isInteger(value)) return Number.isSafeInteger(value);
  if (!isDecimal) return true;
  const digits = String(value)
    .replace(/e.*$/, "")
    .replaceAll(/^-?0*\.?0*|\./g, "");
  return digits.length <= KEPT_DIGITS;
}
