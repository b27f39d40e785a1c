import { parsePath, pathText } from "../../../client/object-path.ts";
import { type OptionSpec, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { parseChoice } from "../../../config/parsers.ts";
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
