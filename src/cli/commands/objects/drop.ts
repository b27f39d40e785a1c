import { parsePath, pathText } from "../../../client/object-path.ts";
import { UsageError } from "../../../config/option-spec.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";

const switchOption = (flag: string, help: string) =>
  ({ flag, help, fallback: "false", parse: parseSwitch }) as const;

/** `lance-gateway drop`: removes a table with its data, or a namespace. */
export const drop = catalogCommand({
  operands: "<PATH>",
  options: {
    namespace: switchOption("namespace", "Remove a namespace instead of a table; it must be empty."),
    cascade: {
      ...switchOption("cascade", "Remove everything in the namespace, too."),
      needs: { flag: "namespace" },
    },
    ifExists: switchOption("if-exists", "Succeed if there is nothing to remove."),
  },
  question: ({ operands: [path = ""], options }) =>
    `Remove the ${options.namespace ? "namespace" : "table"} ${path} ${options.cascade ? "and everything in it " : ""}for good`,
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const id = parsePath(path);
    if (id.length === 0) throw new UsageError("the root cannot be removed");
    const missing = await remove().then(
      () => false,
      (error: unknown) => {
        if (options.ifExists && isMissing(error)) return true;
        throw error;
      },
    );
    const what = options.namespace ? "namespace" : "table";
    const text = missing ? `there is no ${what} ${pathText(id)}` : `removed ${what} ${pathText(id)}`;
    await print(
      options.json ? `${JSON.stringify({ path: pathText(id), removed: !missing })}\n` : `${text}\n`,
    );

    async function remove(): Promise<unknown> {
      if (!options.namespace) return await namespace.dropTable({ id }, { signal });
      const behavior = options.cascade ? "cascade" : "restrict";
      return await namespace.dropNamespace({ id, behavior }, { signal });
    }
  },
});

const MISSING: ReadonlySet<unknown> = new Set(["TableNotFound", "NamespaceNotFound"]);

function isMissing(error: unknown): boolean {
  return MISSING.has((error as { kind?: unknown }).kind);
}
