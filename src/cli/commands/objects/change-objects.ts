import { parsePath, pathText } from "../../../client/object-path.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice, parseSwitch } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";

/** Properties of a new object. */
export const PROPERTY_OPTION = {
  flag: "property",
  value: "KEY=VALUE",
  help: "Property of the new object.",
  parse(text: string): readonly [key: string, value: string] {
    const at = text.indexOf("=");
    if (at <= 0) throw new UsageError("must be a property such as owner=ada");
    return [text.slice(0, at), text.slice(at + 1)];
  },
  repeatable: true,
  named: true,
} as const satisfies OptionSpec;

const OPTIONS = {
  mode: {
    flag: "mode",
    value: "MODE",
    help: "Action if the namespace exists: create (fail), exist-ok (leave it) or overwrite (replace its properties).",
    fallback: "create",
    parse: parseChoice(["create", "exist-ok", "overwrite"]),
  },
  properties: PROPERTY_OPTION,
} as const satisfies OptionTable;

/** `lance-gateway create`: creates a namespace. */
export const create = catalogCommand({
  operands: "<NAMESPACE>",
  options: OPTIONS,
  access: "create",
  question: ({ operands: [path = ""], options }) =>
    options.mode === "overwrite" ? `Replace the properties of the namespace ${path} if it exists` : undefined,
  async run({ namespace, operands: [path = ""], options, signal, print }) {
    const id = parsePath(path);
    const properties = Object.fromEntries(options.properties);
    const created = await namespace.createNamespace({ id, mode: options.mode, properties }, { signal });
    await print(
      options.json
        ? `${JSON.stringify({ path: pathText(id), properties: created.properties })}\n`
        : `created namespace ${pathText(id)}\n`,
    );
  },
});

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

/** `lance-gateway rename`: changes the name or the namespace of a table. */
export const rename = catalogCommand({
  operands: "<TABLE> <NEW-PATH>",
  options: {},
  async run({ namespace, operands: [from = "", to = ""], options, signal, print }) {
    const [id, target] = [parsePath(from), parsePath(to)];
    const newTableName = target.at(-1);
    if (newTableName === undefined) throw new UsageError("NEW-PATH has no name of a table");
    // An empty namespace in the request is the present one.
    if (target.length === 1 && id.length > 1)
      throw new UsageError("NEW-PATH needs a namespace: a rename cannot move a table into the root");
    await namespace.renameTable({ id, newTableName, newNamespaceId: target.slice(0, -1) }, { signal });
    await print(
      options.json
        ? `${JSON.stringify({ from: pathText(id), to: pathText(target) })}\n`
        : `renamed ${pathText(id)} to ${pathText(target)}\n`,
    );
  },
});
