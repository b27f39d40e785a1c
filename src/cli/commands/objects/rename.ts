import { parsePath, pathText } from "../../../client/object-path.ts";
import { UsageError } from "../../../config/option-spec.ts";
import { catalogCommand } from "../catalog-command.ts";

/** `lance-gateway rename`: changes the name or the namespace of a table. */
export const rename = catalogCommand({
  operands: "<TABLE> <NEW-PATH>",
  options: {},
  async run({ namespace, operands: [from = "", to = ""], options, signal, print }) {
    const [id, target] = [parsePath(from), parsePath(to)];
    const newTableName = target.at(-1);
    if (newTableName === undefined) throw new UsageError("NEW-PATH has no name of a table");
    await namespace.renameTable({ id, newTableName, newNamespaceId: target.slice(0, -1) }, { signal });
    await print(
      options.json
        ? `${JSON.stringify({ from: pathText(id), to: pathText(target) })}\n`
        : `renamed ${pathText(id)} to ${pathText(target)}\n`,
    );
  },
});
