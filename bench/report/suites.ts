/** A need of a benchmark apart from this project's own dependencies. */
export type Need = "python" | "s3" | "h2load" | "package";

/** The report's form of a benchmark. */
export interface Suite {
  /** Its name in the page and in `bench/results`. */
  readonly name: string;
  /** Its command below `npm run bench --`. */
  readonly command: readonly string[];
  /** Its usual time on an idle machine with two cores, in seconds. */
  readonly seconds: number;
  readonly needs: readonly Need[];
}

const suite = (seconds: number, command: string, needs: readonly Need[] = [], name?: string): Suite => ({
  ...{ seconds, needs, command: command.split(" ") },
  name: name ?? command.split(" ", 1).join(),
});

/** Attacks that came nearest to a goal, and one without an attack. */
const ATTACKS = "nothing unread-rest abandoned stalled-uploads idle-connections health-checks many-vectors";

/** Calls that hold the event loop longest, one of each kind. */
const CALLS = "load changes cascade batch wide deep list-rest list-grpc versions-connect tags-json";

/** All benchmarks of the report, in the order in which they run. */
export const SUITES: readonly Suite[] = [
  suite(45, "wires --rounds 3 --seconds 2"),
  suite(130, "catalog --workers 2 --rounds 3 --seconds 1 --no-disk", ["python"]),
  suite(150, "cores --rounds 3 --warm 6", ["h2load"]),
  suite(125, "secured --rounds 3"),
  suite(100, "sight --rounds 3 --turns 3 --warm 4"),
  suite(135, "bucket --tables 100 --rounds 2 --only describe,exists,list,count,query,declare,insert", [
    "s3",
    "python",
  ]),
  suite(155, "bucket --cache --rows 20000 --rounds 2 --connections 16", ["s3"], "bucket-cached"),
  suite(75, `loop --rounds 1 ${CALLS}`),
  suite(140, `attacks --seconds 5 ${ATTACKS}`),
  suite(120, "memory --rounds 1", ["package"]),
  suite(45, "start --rounds 3", ["package"]),
  suite(110, "remote --rounds 3 --searches 30 --sides library,gateway", ["python"]),
  suite(80, "data --rounds 3 --seconds 2 --no-large", ["python"]),
  suite(40, "flight --size 128 --rounds 3 --statements 300", ["python"]),
  suite(40, "tpch --scale 0.1 --rounds 3", ["python"]),
  suite(145, "proxy --rounds 3 --turns 3 --warm 200000 --no-bodies", ["python"]),
  suite(70, "rows-here --rounds 3"),
  suite(95, "upkeep --rounds 2 --seconds 10"),
  suite(140, "soak --minutes 2 --steady --gateways 1 --restarts 0 --clients 16 --pause 0"),
];

/** Time in which a run of the report ends, in seconds. */
export const MOST_SECONDS = 2_400;

/** A benchmark's time limit as a multiple of its usual time. */
const MOST_TIMES = 1.5;

/** Returns the time limit of a benchmark, in seconds, in a report that has run for a while. */
export function limitOf({ seconds }: Suite, reportSeconds: number): number {
  return Math.max(0, Math.min(MOST_TIMES * seconds, MOST_SECONDS - reportSeconds));
}
