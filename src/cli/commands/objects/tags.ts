import { parsePath } from "../../../client/object-path.ts";
import { catalogCommand } from "../catalog-command.ts";
import { parseVersion } from "../operands.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";

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
