import { Table, TimestampMillisecond, tableToIPC, Utf8, vectorFromArray } from "apache-arrow";
import { LanceError } from "../../../../namespace/errors.ts";
import { nameOf } from "../../engine/sql/tokens.ts";
import { isText } from "../../engine/sql/tree.ts";
import { parseSql } from "../../engine/sql/trees.ts";
import type { Job, JobEvent } from "../../jobs/job.ts";

/** Default and maximum number of events of an answer, as LanceDB's clients document them. */
const [DEFAULT_LIMIT, MAX_LIMIT] = [1_000, 10_000];

/** An event as a row. Jobs here are not spread over workers, so that nothing emits or claims a part of one. */
type EventRow = Readonly<Record<(typeof TEXTS)[number], string | null>> & { readonly timestamp: number };

const TEXTS = [
  "job_id",
  "state",
  "updated_by",
  "emitted_from",
  "emitted_by",
  "claim_entity",
  "message",
] as const;

/**
 * Returns the history of a job as an Arrow IPC stream.
 *
 * @param filter comparisons of text columns with texts, joined by AND. Default: all events
 * @throws LanceError InvalidInput
 */
export function eventsOf(job: Job, filter: string | undefined, limit = DEFAULT_LIMIT): Uint8Array {
  if (limit < 0) throw new LanceError("InvalidInput", `limit must not be negative: ${limit}`);
  const isWanted = parseFilter(filter ?? "");
  const rows = (job.events ?? []).map((event) => rowOf(job, event)).filter(isWanted);
  const shown = rows.slice(0, Math.min(limit, MAX_LIMIT));
  const times = shown.map(({ timestamp }) => timestamp);
  const texts = TEXTS.map((name) => [
    name,
    vectorFromArray(
      shown.map((row) => row[name]),
      new Utf8(),
    ),
  ]);
  const columns = {
    timestamp: vectorFromArray(times, new TimestampMillisecond("UTC")),
    ...Object.fromEntries(texts),
  };
  return tableToIPC(new Table(columns), "stream");
}

function rowOf({ id }: Job, { at, state, by, message }: JobEvent): EventRow {
  const nobody = { emitted_from: null, emitted_by: null, claim_entity: null };
  return { timestamp: at, job_id: id, state, updated_by: by, ...nobody, message: message ?? null };
}

const NEGATES: ReadonlyMap<string, boolean> = new Map([
  ["=", false],
  ["==", false],
  ["!=", true],
  ["<>", true],
]);

function parseFilter(text: string): (row: EventRow) => boolean {
  const { root } = parseSql(text);
  if (root.kind === "missing") return () => true;
  const conditions = root.kind === "operation" && root.operator === "and" ? root.operands : [root];
  const tests = conditions.map((condition) => {
    const [name, value] = condition.kind === "operation" ? condition.operands : [];
    const negates = condition.kind === "operation" ? NEGATES.get(condition.operator) : undefined;
    const column = TEXTS.find((each) => name?.kind === "word" && each === name.text);
    const isString = value !== undefined && isText(value) && value.text.startsWith("'");
    if (column === undefined || negates === undefined || !isString) throw badFilter(text);
    const wanted = nameOf(value);
    return (row: EventRow) => row[column] !== null && (row[column] === wanted) !== negates;
  });
  return (row) => tests.every((test) => test(row));
}

function badFilter(text: string): LanceError {
  const form = "column = 'text' or column != 'text', joined by AND";
  return new LanceError(
    "InvalidInput",
    `filter ${JSON.stringify(text)}: understood is ${form}, of ${TEXTS.join(", ")}`,
  );
}
