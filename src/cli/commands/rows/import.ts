import { parseMessageHead, readPrefix } from "../../../arrow/ipc/message.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { schemaForRows } from "../../../client/rows/schema-for-rows.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseDuration, parseSwitch, parseText } from "../../../config/parsers.ts";
import { FILE_FORMATS, type FileFormat, formatOfName, isTextFormat, STANDARD } from "../../files/formats.ts";
import { type InputOptions, openRows } from "../../files/read.ts";
import { createProgress, type Progress } from "../../terminal/progress.ts";
import { catalogCommand } from "../catalog-command.ts";
import { PROPERTY_OPTION } from "../objects/change-objects.ts";

/** Format of rows that no name reveals. */
export const FORMAT_OPTION = {
  flag: "format",
  value: "FORMAT",
  help: "Format of the rows: arrow (an IPC file, or Feather 2), arrows (an IPC stream), parquet, csv (with names in the first line), tsv (with tabs) or jsonl (an object in each line). Default: by the name of FILE.",
  common: "Format: arrow, arrows, parquet, csv, tsv or jsonl.",
  parse: parseChoice(FILE_FORMATS),
} as const satisfies OptionSpec;

const OPTIONS = {
  mode: {
    flag: "mode",
    value: "MODE",
    help: "Action if the table exists: create (fail), append, overwrite or exist-ok (leave it).",
    fallback: "create",
    parse: parseChoice(["create", "append", "overwrite", "exist-ok"]),
  },
  format: FORMAT_OPTION,
  encoding: {
    flag: "encoding",
    value: "NAME",
    help: "Encoding of a text, such as latin1 or shift_jis. Default: that of its byte order mark, or else UTF-8.",
    common: "Encoding of a text, such as latin1 or shift_jis.",
    parse: parseText,
  },
  types: {
    flag: "type",
    value: "COLUMN=TYPE",
    help: "Type of a new column from a CSV or JSON text, such as int64, decimal(20,4), timestamp(us,UTC), vector(768) or string. Default: the narrowest that is exact.",
    common: "Type of a new column, such as price=decimal(20,4).",
    parse: parseColumnType,
    repeatable: true,
    named: true,
  },
  round: {
    flag: "round",
    help: "Round numbers of a CSV or JSON text to what their floating-point columns hold, instead of refusing those with more digits.",
    common: "Round numbers with more digits than a column holds.",
    fallback: "false",
    parse: parseSwitch,
  },
  properties: PROPERTY_OPTION,
  engine: {
    flag: "engine",
    value: "embedded|ray",
    help: "Place where FILE is read. A cluster reads csv, tsv and jsonl for columns with known types: with --mode append, or --type for each column (docs/how-to/jobs-on-ray.md).",
    common: false,
    fallback: "embedded",
    parse: parseChoice(["embedded", "ray"]),
  },
  wait: {
    flag: "wait",
    value: "TIME",
    help: "Longest wait until a gateway begins.",
    common: false,
    fallback: "2m",
    parse: parseDuration,
    needs: { flag: "engine", is: ["ray"] },
  },
} as const satisfies OptionTable;

/** Parses the last = as the separator, because names may have some. */
function parseColumnType(text: string): readonly [column: string, type: string] {
  const at = text.lastIndexOf("=");
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  throw new UsageError("must be a column and its type, such as price=decimal(20,4)");
}

interface TextFlags {
  readonly encoding: string | undefined;
  readonly types: readonly (readonly [column: string, type: string])[];
  readonly round: boolean;
}

async function textOptions(
  format: FileFormat,
  { encoding, types, round }: TextFlags,
): Promise<InputOptions["text"]> {
  if (!isTextFormat(format)) {
    if (encoding === undefined && types.length === 0 && !round) return {};
    throw new UsageError(`--encoding, --type and --round are for csv, tsv and jsonl, and not for ${format}`);
  }
  const { encodingOf } = await import("../../../client/text/decode.ts");
  const { typeOfName } = await import("../../../client/text/type-names.ts");
  const arrow = await import("apache-arrow");
  return {
    encoding: encoding === undefined ? undefined : encodingOf(encoding),
    types: new Map(types.map(([column, type]) => [column, typeOfName(arrow, type)])),
    isRounded: round,
  };
}

/** `lance-gateway import`: writes the rows of a file, or of standard input, to a table, all or none. */
export const importRows = catalogCommand({
  operands: "<FILE> <TABLE>",
  options: OPTIONS,
  access: "create",
  question: ({ operands: [file, path = ""], options }) =>
    options.mode === "overwrite" && file !== STANDARD
      ? `Replace the rows of ${path} if it exists`
      : undefined,
  async run(work) {
    const { namespace, operands, options, signal, answer } = work;
    const [file = "", path = ""] = operands;
    const id = parsePath(path);
    const { mode } = options;
    if (mode === "append" && options.properties.length > 0)
      throw new UsageError("--property is for a new table, and --mode append adds rows to one that exists");
    if (options.engine === "ray") {
      const { importOnCluster } = await import("./import-on-cluster.ts");
      return importOnCluster(work, { source: file, id });
    }
    const format = options.format ?? formatOfName(file);
    let progress: Progress | undefined;
    const advanced = (amount: number) => progress?.advance(amount);
    const text = await textOptions(format, options);
    const schema =
      mode === "append" && isTextFormat(format) ? await schemaForRows(namespace, id, signal) : undefined;
    if (schema !== undefined && options.types.length > 0)
      throw new UsageError("--type is for new columns, and --mode append takes the types of the table");
    const { bytes, total, unit } = await openRows(file, { format, schema, text, signal, advanced });
    progress = createProgress({ label: pathText(id), total, unit });
    const properties = Object.fromEntries(options.properties);
    try {
      const counted = countRows(bytes);
      const rows = await begun(counted.bytes);
      const { version } =
        mode === "append"
          ? await namespace.insertIntoTable({ id, mode }, rows, { signal })
          : await namespace.createTable({ id, mode, properties }, rows, { signal });
      progress.end();
      const source = file === STANDARD ? "standard input" : file;
      const target = pathText(id);
      // A server names the version that it has made; a table that it leaves as it is gets none.
      const isKept = mode === "exist-ok" && version === undefined;
      const count = isKept ? 0 : counted.count();
      await answer({ path: target, rows: count ?? null, version: version ?? null }, () =>
        isKept
          ? `imported nothing: ${target} exists, and the server names no new version of it\n`
          : `imported ${rowsText(count)}${source} into ${target}${version === undefined ? "" : `, version ${version}`}\n`,
      );
    } finally {
      progress.end();
    }
  },
});

/** Returns the beginning of a sentence about rows; nothing if their number is unknown. */
function rowsText(count: number | undefined): string {
  if (count === undefined) return "";
  return count === 1 ? "1 row of " : `${count} rows of `;
}

/** Waits for the first piece: what precedes it may take longer than a server waits for the body of a request. */
async function begun(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await pieces.next();
  return (async function* () {
    if (first.done) return;
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => pieces };
  })();
}

/** Rows that have passed by. */
interface CountedRows {
  /** The pieces of the stream, unchanged. */
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Returns how many rows have passed; undefined for bytes that are not an Arrow IPC stream, which the server refuses. */
  count(): number | undefined;
}

/** Counts the rows of an Arrow IPC stream, split anywhere, from the heads of its batches. */
export function countRows(source: AsyncIterable<Uint8Array>): CountedRows {
  let rows: number | undefined = 0;
  /** The beginning of a message whose metadata has not arrived as a whole. */
  let held: Buffer = Buffer.alloc(0);
  /** Bytes of a message's body that are still to come. */
  let body = 0;

  function add(piece: Uint8Array): void {
    for (let at = 0; at < piece.byteLength; ) {
      const skipped = Math.min(body, piece.byteLength - at);
      body -= skipped;
      at += skipped;
      if (at === piece.byteLength) return;
      const rest = Buffer.from(piece.buffer, piece.byteOffset + at, piece.byteLength - at);
      const bytes = held.byteLength === 0 ? rest : Buffer.concat([held, rest]);
      const prefix = readPrefix(bytes, 0);
      const end = prefix && prefix.bytes + prefix.metadataLength;
      if (prefix === undefined || end === undefined || end > bytes.byteLength) {
        held = Buffer.from(bytes);
        return;
      }
      at = piece.byteLength - (bytes.byteLength - end);
      if (prefix.metadataLength > 0) {
        const head = parseMessageHead(bytes.subarray(prefix.bytes, end), 0);
        rows = (rows ?? 0) + head.rows;
        body = head.bodyLength;
      }
      held = Buffer.alloc(0);
    }
  }

  async function* passed(): AsyncIterable<Uint8Array> {
    for await (const piece of source) {
      try {
        if (rows !== undefined) add(piece);
      } catch {
        rows = undefined;
      }
      yield piece;
    }
  }
  return { bytes: passed(), count: () => rows };
}
