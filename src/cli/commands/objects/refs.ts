import { parsePath } from "../../../client/object-path.ts";
import { parseInteger } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { isoTime, timeText } from "../text-table.ts";
import { parseVersion } from "./versions.ts";

/** `lance-gateway tags ls`: lists the tags of a table. */
export const tagsLs = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: {},
  async run({ namespace, operands: [path = ""], signal, answerList }) {
    const listing = namespace.listTableTags({ id: parsePath(path) }, { signal });
    async function* facts() {
      for await (const [tag, { version, branch = "main" }] of listing) yield { tag, version, branch };
    }
    await answerList(facts(), {
      headings: ["TAG", "VERSION", "BRANCH"],
      row: ({ tag, version, branch }) => [tag, String(version), branch],
    });
  },
});

const OPERANDS = "<TABLE> <TAG> <VERSION>";
const OPTIONS = {
  branch: { ...BRANCH_OPTION, help: "Branch of the version. Default: main." },
} as const;

/** `lance-gateway tags create`: gives a version a name. */
export const tagsCreate = catalogCommand({
  operands: OPERANDS,
  options: OPTIONS,
  async run({ namespace, operands: [path = "", tag = "", text = ""], options: { branch }, signal, answer }) {
    const version = parseVersion(text);
    await namespace.createTableTag({ id: parsePath(path), tag, version, branch }, { signal });
    await answer({ tag, version }, () => `created tag ${tag} for version ${version}\n`);
  },
});

/** `lance-gateway tags update`: moves a tag to another version. */
export const tagsUpdate = catalogCommand({
  operands: OPERANDS,
  options: OPTIONS,
  question: ({ operands: [path = "", tag = "", version = ""] }) =>
    `Move the tag ${tag} of ${path}, which keeps its version from being pruned, to version ${version}`,
  async run({ namespace, operands: [path = "", tag = "", text = ""], options: { branch }, signal, answer }) {
    const version = parseVersion(text);
    await namespace.updateTableTag({ id: parsePath(path), tag, version, branch }, { signal });
    await answer({ tag, version }, () => `moved tag ${tag} to version ${version}\n`);
  },
});

/** `lance-gateway tags delete`: deletes a tag. */
export const tagsDelete = catalogCommand({
  operands: "<TABLE> <TAG>",
  options: {},
  question: ({ operands: [path = "", tag = ""] }) =>
    `Delete the tag ${tag} of ${path}, which keeps its version from being pruned`,
  async run({ namespace, operands: [path = "", tag = ""], signal, answer }) {
    await namespace.deleteTableTag({ id: parsePath(path), tag }, { signal });
    await answer({ tag }, () => `deleted tag ${tag}\n`);
  },
});

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
