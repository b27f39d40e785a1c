import type { DescMethod } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { isRead } from "../namespace/actions.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../namespace/lance-namespace.ts";

type Handler = (...args: unknown[]) => unknown;

/**
 * Returns the operations of a directory that does not exist yet. A change creates it; a read fails, because an empty catalog in place of
 * a misspelt path would look like one that lost its tables.
 *
 * @param isMissing whether the directory still does not exist
 * @param open opens the directory, and creates it
 */
export function lateDirectory(
  root: string,
  isMissing: () => boolean,
  open: () => Promise<Backend>,
): Required<Pick<Backend, "operations" | "close">> {
  let opened: Promise<Backend> | undefined;

  async function handlerOf(method: DescMethod): Promise<Handler> {
    if (opened === undefined && isRead(method) && isMissing())
      throw new LanceError("NamespaceNotFound", `there is no directory ${root}; the first change creates it`);
    opened ??= open().catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    const handler = (await opened).operations[method.localName as keyof LanceNamespace];
    if (handler === undefined)
      throw new LanceError("Unsupported", `${method.name} is not supported by a directory`);
    return handler as Handler;
  }
  const entries = LanceNamespaceService.methods.map((method) => [
    method.localName,
    method.methodKind === "server_streaming"
      ? async function* (...args: unknown[]) {
          yield* (await handlerOf(method))(...args) as AsyncIterable<unknown>;
        }
      : async (...args: unknown[]) => (await handlerOf(method))(...args),
  ]);
  return {
    operations: Object.fromEntries(entries) as Partial<LanceNamespace>,
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}
