import type { BucketResult } from "../../bench/bucket.ts";
import type { Rounds } from "../../bench/support/results.ts";
import { markdownTable } from "./markdown.ts";
import { missedText, numberText, originText, readResult, shownWhole } from "./rounds.ts";

const GOAL_CONNECTIONS = 64;
/** Calls per second that so many connections are to get. */
const GOALS: Readonly<Record<string, number>> = { describe: 2_000, exists: 2_000, list: 2_000, declare: 500 };

/** The gateway and the adapter on a bucket, as `npm run bench -- bucket` has written it for these numbers of tables and connections. */
export function bucketTable(tables: number, connections: number): () => string {
  return () => {
    const { origin, delayMs, results } = readResult<BucketResult>(`bucket-${tables}-${connections}`);
    const rows = Object.entries(results).flatMap(([operation, sides]) =>
      Object.entries(sides).map(([side, { requests, depth, p50Ms, perSecond }], index) => [
        index === 0 ? operation : "",
        side,
        `${requests}, ${depth}`,
        shownWhole(p50Ms),
        shownWhole(perSecond),
        index === 0 && connections === GOAL_CONNECTIONS ? goalText(operation, perSecond) : "",
      ]),
    );
    const rate = `${connections} connections, /s`;
    const heads = ["", "", "requests, in a row", "p50, ms", rate, "goal"];
    const rounds = Object.values(Object.values(results)[0] ?? {})[0]?.perSecond.rounds.length;
    return `${markdownTable(heads, rows)}\n\n${originText(rounds, origin)}; ${numberText(tables)} tables, ${delayMs} ms away.`;
  };
}

function goalText(operation: string, { median }: Rounds): string {
  const goal = GOALS[operation];
  if (goal === undefined) return "";
  return `${numberText(goal)}${missedText(median < goal)}`;
}
