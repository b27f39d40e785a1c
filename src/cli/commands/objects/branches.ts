import { parsePath } from "../../../client/object-path.ts";
import { parseInteger } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { isoTime, timeText } from "../text-table.ts";

/** `lance-gateway branches ls`: lists the branches of a table, except for main. */
export const branchesLs = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: {},
  async run({ namespace, operands: [path = ""], signal, answerList }) {
    const listing = namespace.listTableBranches({ id: parsePath(path) }, { signal });
    async function* facts() {
      for await (const [branch, { parentBranch = "main", parentVersion, createAt }] of listing)
        yield {
          branch,
          from: parentBranch,
          version: parentVersion,
          created: isoTime(Number(createAt) * 1000),
        };
    }
    await answerList(facts(), {
      headings: ["BRANCH", "FROM", "VERSION", "CREATED"],
      row: ({ branch, from, version, created }) => [branch, from, String(version), timeText(created)],
    });
  },
});

/** `lance-gateway branches create`: creates a branch. */
export const branchesCreate = catalogCommand({
  operands: "<TABLE> <BRANCH>",
  options: {
    from: { ...BRANCH_OPTION, flag: "from", help: "Branch to start from. Default: main." },
    version: {
      flag: "version",
      value: "N",
      help: "Version to start from. Default: the newest.",
      parse: parseInteger(1, Number.MAX_SAFE_INTEGER),
    },
  },
  async run({ namespace, operands: [path = "", name = ""], options, signal, answer }) {
    const { from: fromBranch, version: fromVersion } = options;
    await namespace.createTableBranch({ id: parsePath(path), name, fromBranch, fromVersion }, { signal });
    await answer({ branch: name }, () => `created branch ${name}\n`);
  },
});

/** `lance-gateway branches delete`: deletes a branch. */
export const branchesDelete = catalogCommand({
  operands: "<TABLE> <BRANCH>",
  options: {},
  question: ({ operands: [path = "", name = ""] }) => `Delete the branch ${name} of ${path} with its rows`,
  async run({ namespace, operands: [path = "", name = ""], signal, answer }) {
    await namespace.deleteTableBranch({ id: parsePath(path), name }, { signal });
    await answer({ branch: name }, () => `deleted branch ${name}\n`);
  },
});
