import { globSync } from "node:fs";
import { join } from "node:path";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { joinedProgram } from "./test/support/joined-program.ts";
import { SESSIONS, scratchDirectory } from "./test/support/scratch.ts";
import { seedOf } from "./test/support/seed.ts";

// All workers of a run draw from the same seed, which the reporter prints.
process.env["TEST_SEED"] = String(seedOf("TEST_SEED"));

// A run that a test starts has the program of the run around it, unless it is in another checkout.
const isOwn = process.env["JOINED_PROGRAM"]?.startsWith(join(import.meta.dirname, "/"));
if (isOwn !== true) process.env["JOINED_PROGRAM"] = await joinedProgram();

const ownFile = (path: string) => join(import.meta.dirname, path);

/** Time limit of a test or hook, in milliseconds. */
const TIME_LIMIT_MS = 120_000;
/** The same for real clients, which install their environments first. */
const CLIENT_TIME_LIMIT_MS = 20 * 60_000;

interface ProjectOptions {
  /** Time limit of a test or hook, in milliseconds. */
  readonly limit?: number;
  /**
   * Whether each file has a process of its own: files that measure memory, replace modules or damage their process need
   * it. The others share a process and its modules, which spares them the imports, and undo what they change outside of
   * their file. Node itself loads these modules: it keeps what it has compiled, and what they import from each other is no getter, as
   * which Vite has it. Default: true.
   */
  readonly isolate?: boolean;
  /** Files that belong to another project. Default: none. */
  readonly exclude?: readonly string[];
  /** Variables of the environment in addition to those of the run. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
}

function project(
  name: string,
  include: readonly string[],
  { limit = TIME_LIMIT_MS, isolate = true, exclude = [], env = {} }: ProjectOptions = {},
) {
  return {
    extends: true,
    test: {
      name,
      include: [...include],
      exclude: ["**/node_modules/**", ...exclude],
      isolate,
      experimental: { viteModuleRunner: isolate, nodeLoader: isolate },
      execArgv: isolate ? [] : [FEWER_COLLECTIONS],
      env,
      testTimeout: limit,
      hookTimeout: limit,
    },
  } satisfies TestProjectConfiguration;
}

/**
 * Has buffers count towards the size at which V8 collects all garbage of a process with many files. By themselves they have it
 * mark the whole heap after every 64 MB, which tests of rows soon make.
 */
const FEWER_COLLECTIONS = "--external-memory-accounted-in-global-limit";

/** For tests that are not about disks, which take their time to sync every commit. */
const SHARED: ProjectOptions = { isolate: false, env: { TMPDIR: scratchDirectory() } };
/** Clients wait for the commits of gateways for most of their time. */
const CLIENTS: ProjectOptions = { limit: CLIENT_TIME_LIMIT_MS, env: { TMPDIR: scratchDirectory(SESSIONS) } };
/** Ray's sockets need a short path. */
const ENGINES: ProjectOptions = { limit: CLIENT_TIME_LIMIT_MS };
/** Cut everything off at moments that a seed draws: the more schedules, the more they find. `.ci/run` has many. */
const CUTS = ["power", "disk-faults", "store-cuts", "foreign-cuts", "aborted-data", "aborted-streams"].map(
  (name) => `test/faults/${name}.test.ts`,
);

/** Replace modules of the sources, or end their thread for them, which the files of a shared process keep. */
const MOCKS = ["test/faults/failed-start.test.ts", "test/faults/leaving-worker.test.ts"];

/** Files of `unit`, `contract` and `matrix` that take more than ten seconds or start programs, the longest first: `npm test` is short. */
const LONG = [
  "test/contract/composed.test.ts",
  "test/contract/composed-managed.test.ts",
  "test/contract/catalogs/*.test.ts",
  "src/cli/workers/supervisor.test.ts",
  "src/backends/dir/cache/cached-table.test.ts",
  "test/matrix/composed.test.ts",
  "src/sql/pushdown.test.ts",
  "src/sql/hostile.test.ts",
  "src/sql/source-types.test.ts",
  "src/sql/namespace-tables.test.ts",
  "src/sql/views.test.ts",
  "src/sql/writes/writes.test.ts",
  "src/backends/dir/batch/batch.test.ts",
  "src/backends/dir/upkeep/upkeep.test.ts",
  "src/backends/dir/upkeep/writers.test.ts",
  "src/backends/dir/stores/azure/bodies.test.ts",
  "src/backends/dir/stores/gcs/bodies.test.ts",
  "src/backends/dir/operations/jobs/cluster-import.test.ts",
  "src/backends/dir/operations/read/read.test.ts",
  "src/backends/dir/operations/rows/merge-cancelled.test.ts",
  "src/backends/dir/operations/rows/merge-locks.test.ts",
  "src/backends/dir/operations/tables/refuse-misread.test.ts",
  "src/backends/dir/catalog/manifest/reader.test.ts",
  "src/backends/composed/renewed-credentials.test.ts",
  "src/gateway/services/open-sql.test.ts",
  "src/server/rest-answers.test.ts",
  "src/server/connections/client-silence.test.ts",
  "src/server/requests/request-head.test.ts",
  "src/cli/program.test.ts",
  "test/client/examples.test.ts",
  "test/client/mounted.test.ts",
];

// A file that is renamed would go back to `npm test` without a word.
for (const path of LONG)
  if (globSync(path, { cwd: import.meta.dirname }).length === 0)
    throw new Error(`vitest.config.ts names ${path}, and there is no such file`);

const SHORT: ProjectOptions = { ...SHARED, exclude: LONG };

/** Files that take longest in their runs. A run without durations of an earlier one would begin such a small file last. */
const LONGEST = [
  "test/engines/ray-jobs.test.ts",
  "test/engines/engines.test.ts",
  "test/clients/pages/pages.test.ts",
  "test/clients/costs.test.ts",
  "test/clients/fuzz.test.ts",
  "test/faults/workers.test.ts",
  "test/contract/composed.test.ts",
  "test/contract/grpc.test.ts",
  "test/contract/rest.test.ts",
  "test/contract/dir.test.ts",
];

/** Begins with the longest files, so that no worker is left alone with one at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isAt = (path: string) => sorted.filter(({ moduleId }) => moduleId.endsWith(`/${path}`));
    return [...new Set([...LONGEST.flatMap(isAt), ...sorted])];
  }
}

/** Whether the run is to have a random order, which Vitest gives only to a run without a sequencer. */
const isShuffled = process.argv.some((argument) => argument.startsWith("--sequence.shuffle"));

export default defineConfig({
  test: {
    reporters: [ownFile("test/support/reporter.ts")],
    ...(!isShuffled && { sequence: { sequencer: LongestFirst } }),
    pool: "forks",
    // Two processors: tests wait for clocks, disks, the threads of engines and child processes more than a third of the time.
    maxWorkers: 6,
    execArgv: [
      // The tests of memory collect what nobody refers to.
      "--expose-gc",
      "--disable-warning=ExperimentalWarning",
      // A worker ends with the test run that started it, also when that is killed.
      "--require",
      ownFile("scripts/follow-caller.mjs"),
    ],
    expect: { poll: { interval: 10, timeout: 60_000 } },
    setupFiles: [ownFile("test/support/setup.ts")],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/gen/**", "**/*.test.ts", "**/*fixture.ts", "**/test-support.ts"],
      reporter: ["text-summary", "html"],
      reportsDirectory: ".cache/coverage",
    },
    projects: [
      project("unit", ["src/**/*.test.ts", "test/{client,dialects,docs,spec,support}/**/*.test.ts"], SHORT),
      project("contract", ["test/{contract,stores}/**/*.test.ts"], SHORT),
      project("matrix", ["test/matrix/**/*.test.ts"], SHORT),
      project("long", LONG, SHARED),
      project("cli", ["test/cli/**/*.test.ts"], SHARED),
      project("faults", ["test/faults/**/*.test.ts"], { isolate: false, exclude: [...CUTS, ...MOCKS] }),
      project("mocks", MOCKS),
      project("cuts", CUTS, { env: SHARED.env }),
      project("clients", ["test/{clients,chains}/**/*.test.ts"], CLIENTS),
      project("engines", ["test/engines/**/*.test.ts"], ENGINES),
      project("browser", ["test/browser/**/*.test.ts"], CLIENTS),
    ],
  },
});
