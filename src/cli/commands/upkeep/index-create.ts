import { parsePath } from "../../../client/object-path.ts";
import { type OptionTable, type OptionValues, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseInteger, parseSwitch, parseText } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { TIMEOUT_OPTION, waitForIndices } from "./index-commands.ts";

/** Types of indices, and which call builds them. */
const SCALAR = ["BTREE", "BITMAP", "LABEL_LIST", "NGRAM", "ZONEMAP", "BLOOMFILTER", "FM", "RTREE"] as const;
const VECTOR = [
  "IVF_FLAT",
  "IVF_PQ",
  "IVF_SQ",
  "IVF_RQ",
  "IVF_HNSW_FLAT",
  "IVF_HNSW_PQ",
  "IVF_HNSW_SQ",
] as const;

const count = (flag: string, help: string, common: string) =>
  ({ flag, value: "N", help, common, parse: parseInteger(1, 2 ** 31 - 1) }) as const;

const OPTIONS = {
  type: {
    flag: "type",
    value: "TYPE",
    help: "Type of the index, of columns with plain values, words (FTS) or vectors (IVF_…).",
    common: "Type of the index, such as BTREE, FTS or IVF_PQ.",
    parse: parseChoice([...SCALAR, "FTS", ...VECTOR]),
  },
  name: {
    flag: "name",
    value: "NAME",
    help: "Name of the index. Default: the server's choice.",
    parse: parseText,
  },
  distance: {
    flag: "distance",
    value: "TYPE",
    help: "Distance of vectors. Default: l2.",
    parse: parseChoice(["l2", "cosine", "dot", "hamming"]),
  },
  partitions: count(
    "partitions",
    "Number of partitions of vectors. Default: by the number of rows.",
    "Number of partitions of vectors.",
  ),
  subVectors: count(
    "sub-vectors",
    "Number of parts into which IVF_PQ and IVF_HNSW_PQ split vectors.",
    "Number of parts into which IVF_PQ splits vectors.",
  ),
  withPosition: {
    flag: "with-position",
    help: "Keep the positions of words, which searches for phrases need.",
    common: "Keep the positions of words, for phrases.",
    fallback: "false",
    parse: parseSwitch,
    needs: { flag: "type", is: ["FTS"] },
  },
  branch: BRANCH_OPTION,
  wait: { flag: "wait", help: "Wait until the index has all rows.", fallback: "false", parse: parseSwitch },
  timeout: { ...TIMEOUT_OPTION, needs: { flag: "wait" } },
} as const satisfies OptionTable;

type Options = OptionValues<typeof OPTIONS>;

/** @throws UsageError for options that do nothing for the type of the index */
function checkUse({ type, distance, partitions, subVectors }: Options): void {
  const isVector = VECTOR.some((each) => each === type);
  if (!isVector && [distance, partitions, subVectors].some((value) => value !== undefined))
    throw new UsageError(`--distance, --partitions and --sub-vectors are for vectors, and --type is ${type}`);
}

/** `lance-gateway index create`: builds an index of a column. */
export const indexCreate = catalogCommand({
  operands: "<TABLE> <COLUMN>",
  options: OPTIONS,
  async run({ namespace, operands: [path = "", column = ""], options, signal, answer }) {
    const { type, name, distance, partitions, subVectors, withPosition, branch, wait, timeout } = options;
    if (type === undefined) throw new UsageError("--type is missing");
    checkUse(options);
    const id = parsePath(path);
    const isScalar = SCALAR.some((each) => each === type);
    const operation = isScalar ? namespace.createTableScalarIndex : namespace.createTableIndex;
    const request = {
      ...{ id, column, indexType: type, branch },
      ...(name !== undefined && { name }),
      ...(distance !== undefined && { distanceType: distance }),
      ...(partitions !== undefined && { numPartitions: partitions }),
      ...(subVectors !== undefined && { numSubVectors: subVectors }),
      ...(type === "FTS" && { withPosition }),
    };
    const before = await namesOf();
    const { jobId } = await operation(request, { signal });
    const made = name ?? (await namesOf()).find((each) => !before.includes(each));
    if (wait) {
      await waitForIndices(
        namespace,
        { id, branch, names: made === undefined ? [] : [made], timeout },
        signal,
      );
    }
    await answer(
      { index: made ?? null, ...(jobId !== undefined && { job: jobId }) },
      () => `created index${made === undefined ? "" : ` ${made}`} of ${column}\n`,
    );

    async function namesOf(): Promise<string[]> {
      const indices = await Array.fromAsync(namespace.listTableIndices({ id, branch }, { signal }));
      return indices.map(({ indexName }) => indexName);
    }
  },
});
