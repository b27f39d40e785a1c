/** A need of a benchmark apart from this project's own dependencies. */
export type Need = "python" | "s3" | "h2load" | "package";

/** The report's form of a benchmark. */
export interface Suite {
  /** Its name in the page and in `bench/results`. */
  readonly name: string;
  /** Its command below `npm run bench --`. */
  readonly command: readonly string[];
  /** Its time limit, in seconds. */
  readonly seconds: number;
  readonly needs: readonly Need[];
}

const suite = (seconds: number, command: string, needs: readonly Need[] = [], name?: string): Suite => ({
  ...{ seconds, needs, command: command.split(" ") },
  name: name ?? command.split(" ", 1).join(),
});

/** Attacks that came nearest to a goal, and one without an attack. */
const ATTACKS =
  "nothing unread-rest abandoned stalled-uploads idle-connections health-checks describe-resets deep-json many-vectors";

/** Calls that hold the event loop longest, one of each kind. */
const CALLS = "load changes cascade batch wide deep list-rest list-grpc versions-connect tags-json";

/** All benchmarks of the report, in the order in which they run: the sum of their limits is at most {@link MOST_SECONDS}. */
export const SUITES: readonly Suite[] = [
  suite(70, "wires --rounds 3 --seconds 2"),
  suite(230, "catalog --workers 2 --rounds 3 --seconds 1 --no-disk", ["python"]),
  suite(170, "cores --rounds 3 --warm 6", ["h2load"]),
  suite(120, "secured --rounds 3"),
  suite(110, "sight --rounds 3 --turns 3"),
  suite(170, "bucket --tables 100 --rounds 2", ["s3", "python"]),
  suite(150, "bucket --cache --rows 20000 --rounds 3 --connections 16", ["s3"], "bucket-cached"),
  suite(100, `loop --rounds 1 ${CALLS}`),
  suite(160, `attacks --seconds 5 ${ATTACKS}`),
  suite(120, "memory --rounds 1", ["package"]),
  suite(70, "start --rounds 3", ["package"]),
  suite(180, "remote --rounds 3 --searches 30 --sides library,gateway", ["python"]),
  suite(100, "data --rounds 3 --no-large", ["python"]),
  suite(70, "flight --size 128 --rounds 3 --statements 300", ["python"]),
  suite(50, "tpch --scale 0.1 --rounds 3", ["python"]),
  suite(170, "proxy --rounds 3 --turns 3 --warm 200000 --no-bodies", ["python"]),
  suite(80, "rows-here --rounds 3"),
  suite(100, "upkeep --rounds 3 --seconds 10"),
  suite(140, "soak --minutes 2 --steady --gateways 1 --restarts 0 --clients 16 --pause 0"),
];

/** Time in which the whole report ends, in seconds. */
export const MOST_SECONDS = 2_400;
