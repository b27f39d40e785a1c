import type { TableVersion } from "../../../client/exports.ts";
import { parsePath } from "../../../client/object-path.ts";
import {
  changesOf,
  rowChangeOf,
  rowChangeText,
  type VersionChange,
} from "../../../client/version-changes.ts";
import { UsageError } from "../../../config/option-spec.ts";
import { parseInteger } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";
import { BRANCH_OPTION } from "../rows/read-options.ts";
import { factTable, isoTime, sizeText, timeText } from "../text-table.ts";

/** `lance-gateway versions ls`: lists versions of a table. */
export const versionsLs = catalogCommand({
  operands: "<TABLE>",
  access: "read",
  options: {
    branch: BRANCH_OPTION,
    limit: {
      flag: "limit",
      value: "N",
      help: "Maximum number of versions; 0 for all.",
      fallback: "20",
      parse: parseInteger(0, 2 ** 31 - 1),
    },
  },
  async run({ namespace, operands: [path = ""], options: { branch, limit, json }, signal, answerList }) {
    const id = parsePath(path);
    // A listing of another version tells whether there are more.
    const request = { id, branch, descending: true, limit: limit === 0 ? undefined : limit + 1 };
    let hasMore = false;
    async function* shown() {
      let left = limit === 0 ? Number.POSITIVE_INFINITY : limit;
      for await (const version of namespace.listTableVersions(request, { signal })) {
        hasMore = left === 0;
        if (hasMore) return;
        left--;
        yield version;
      }
    }
    await answerList(changesOf(namespace, { id, branch }, shown(), signal), {
      headings: ["VERSION", "CREATED", "OPERATION", "ROWS", "CHANGE", "METADATA"],
      row(change) {
        const { created, metadata } = factsOf(change.version);
        const { operation = "", rows = "" } = change;
        const figures = [operation, String(rows), rowChangeText(change)];
        return [String(change.version.version), timeText(created), ...figures, pairsText(metadata)];
      },
      facts: changeFacts,
    });
    if (hasMore && !json) process.stderr.write(`There are older versions; --limit 0 lists all.\n`);
  },
});

function changeFacts(change: VersionChange) {
  const { version, operation, rows } = change;
  const known = rowChangeOf(change);
  return {
    ...factsOf(version),
    ...(operation !== undefined && { operation }),
    ...(rows !== undefined && { rows }),
    ...(known !== undefined && { rows_added: known.added, rows_removed: known.removed }),
  };
}

/** `lance-gateway versions describe`: describes a version of a table. */
export const versionsDescribe = catalogCommand({
  operands: "<TABLE> <VERSION>",
  access: "read",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, operands: [path = "", text = ""], options: { branch }, signal, answer }) {
    const request = { id: parsePath(path), version: parseVersion(text), branch };
    const { version } = await namespace.describeTableVersion(request, { signal });
    const facts = factsOf(version as TableVersion);
    await answer(facts, () =>
      factTable({
        version: facts.version,
        created: timeText(facts.created),
        manifest: facts.manifest,
        "manifest size":
          facts.manifest_bytes === undefined ? undefined : sizeText(Number(facts.manifest_bytes)),
        metadata: pairsText(facts.metadata),
      }),
    );
  },
});

/** `lance-gateway restore`: makes the content of an old version the newest. */
export const restore = catalogCommand({
  operands: "<TABLE> <VERSION>",
  options: { branch: BRANCH_OPTION },
  async run({ namespace, operands: [path = "", text = ""], options: { branch }, signal, answer }) {
    const version = parseVersion(text);
    await namespace.restoreTable({ id: parsePath(path), version, branch }, { signal });
    await answer({ restored: version }, () => `restored version ${version}\n`);
  },
});

function factsOf({ version, timestampMillis, manifestPath, manifestSize, metadata }: TableVersion) {
  return {
    version,
    ...(timestampMillis !== undefined && { created: isoTime(Number(timestampMillis)) }),
    manifest: manifestPath,
    ...(manifestSize !== undefined && { manifest_bytes: manifestSize }),
    metadata,
  };
}

function pairsText(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** Parses the operand VERSION. */
export function parseVersion(text: string): number {
  try {
    return parseInteger(1, Number.MAX_SAFE_INTEGER)(text);
  } catch {
    throw new UsageError(`VERSION must be a positive integer, not ${JSON.stringify(text)}`);
  }
}
