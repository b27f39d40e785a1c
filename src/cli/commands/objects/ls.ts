import type { Identifier } from "../../../client/exports.ts";
import type { Namespace } from "../../../client/namespace.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { parseSwitch } from "../../../config/parsers.ts";
import { catalogCommand } from "../catalog-command.ts";

interface Entry {
  readonly kind: "namespace" | "table";
  readonly path: string;
}

/** `lance-gateway ls`: lists a namespace. */
export const ls = catalogCommand({
  operands: "[NAMESPACE]",
  access: "read",
  options: {
    recursive: {
      flag: "recursive",
      help: "List the namespaces below, too.",
      fallback: "false",
      parse: parseSwitch,
    },
  },
  async run({ namespace, operands: [path = ""], options, signal, answerList }) {
    await answerList(walk(namespace, parsePath(path), options.recursive, signal), {
      headings: ["KIND", "PATH"],
      row: ({ kind, path: at }) => [kind, at],
    });
  },
});

/** Yields what is in a namespace. */
export async function* walk(
  namespace: Namespace,
  id: Identifier,
  recursive: boolean,
  signal: AbortSignal,
): AsyncIterable<Entry> {
  const at = (name: string) => pathText([...id, name]);
  for await (const name of namespace.listNamespaces({ id }, { signal })) {
    yield { kind: "namespace", path: at(name) };
    if (recursive) yield* walk(namespace, [...id, name], true, signal);
  }
  for await (const name of namespace.listTables({ id, includeDeclared: true }, { signal })) {
    yield { kind: "table", path: at(name) };
  }
}
