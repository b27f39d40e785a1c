import type { DataType, Vector } from "apache-arrow";
import { LanceError } from "../namespace/errors.ts";

type Arrow = typeof import("apache-arrow");

/** Converts values of plain objects for the builders of apache-arrow. */
type Fit = (value: unknown) => unknown;

/**
 * Converts the values of a column to the type of a table's column: integers may be numbers or bigints.
 *
 * @param firstRow number of the first value in errors.
 * @throws LanceError InvalidInput, if the type has no such value.
 */
export function fittingVector(
  arrow: Arrow,
  name: string,
  values: readonly unknown[],
  type: DataType,
  firstRow = 0,
): Vector {
  const fit = fitOf(arrow, type);
  const fitting = values.map((value, row) => {
    try {
      return fit(value);
    } catch (cause) {
      const { message } = cause as Error;
      throw new LanceError(
        "InvalidInput",
        `column ${JSON.stringify(name)}, row ${firstRow + row}: ${message}`,
        {
          cause,
        },
      );
    }
  });
  return vectorOf(arrow, fitting, type);
}

/** Returns a column of fitting values; the builder of fixed-size lists omits the items of nulls at the end. */
export function vectorOf(arrow: Arrow, values: readonly unknown[], type: DataType): Vector {
  if (!arrow.DataType.isFixedSizeList(type)) return arrow.vectorFromArray(values, type);
  const last = new Array(type.listSize).fill(null);
  return arrow.vectorFromArray([...values, last], type).slice(0, values.length);
}

function fitOf(arrow: Arrow, type: DataType): Fit {
  const fit = fitOfValue(arrow, type);
  return (value) => (value === null || value === undefined ? null : fit(value));
}

function fitOfValue(arrow: Arrow, type: DataType): Fit {
  const { DataType: Is } = arrow;
  if (Is.isInt(type)) return fitInteger(type);
  if (Is.isFloat(type)) return (value) => Number(only(["number", "bigint"], value, type));
  if (Is.isUtf8(type) || Is.isLargeUtf8(type)) return (value) => only(["string"], value, type);
  if (Is.isBool(type)) return (value) => only(["boolean"], value, type);
  if (Is.isList(type) || Is.isFixedSizeList(type)) {
    const item = fitOf(arrow, type.children[0]?.type as DataType);
    return (value) => Array.from(iterable(value, type), item);
  }
  if (Is.isStruct(type)) {
    const members = type.children.map((child) => [child.name, fitOf(arrow, child.type)] as const);
    return (value) => {
      const object = only(["object"], value, type) as Readonly<Record<string, unknown>>;
      return Object.fromEntries(members.map(([name, fit]) => [name, fit(object[name])]));
    };
  }
  return (value) => value;
}

function fitInteger(type: DataType & { readonly bitWidth: number; readonly isSigned: boolean }): Fit {
  const { bitWidth, isSigned } = type;
  const clamp = isSigned ? BigInt.asIntN : BigInt.asUintN;
  return (value) => {
    only(["number", "bigint"], value, type);
    const integer =
      typeof value === "bigint" || Number.isSafeInteger(value) ? BigInt(value as number) : undefined;
    if (integer === undefined || clamp(bitWidth, integer) !== integer) throw unfit(value, type);
    return bitWidth === 64 ? integer : Number(integer);
  };
}

function only(kinds: readonly string[], value: unknown, type: DataType): unknown {
  if (kinds.includes(typeof value)) return value;
  throw unfit(value, type);
}

function iterable(value: unknown, type: DataType): Iterable<unknown> {
  if (typeof value === "object" && value !== null && Symbol.iterator in value)
    return value as Iterable<unknown>;
  throw unfit(value, type);
}

function unfit(value: unknown, type: DataType): TypeError {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new TypeError(`${type} cannot hold ${text.slice(0, 100)}`);
}
