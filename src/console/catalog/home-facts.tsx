import { parseMetrics } from "../activity/metrics-text.ts";
import type { Connection } from "../session/connection.ts";
import { useCall } from "../shell/hooks.ts";

interface HomeFactsProps {
  readonly connection: Connection;
  /** Who the caller is. Default: callers prove nothing. */
  readonly principal: string | undefined;
  /** A table of the root, by whose place the storage is known. Default: there is none. */
  readonly table: readonly string[] | undefined;
}

/** What one wants to know of a gateway first: whether it is well, its version, its storage, and who is signed in. */
export function HomeFacts({ connection, principal, table }: HomeFactsProps) {
  const health = useCall(
    async (signal) => {
      const { ok } = await connection.fetch("/readyz", { signal });
      return ok ? "ready" : "not ready";
    },
    [connection],
  );
  const version = useCall(
    async (signal) => {
      const response = await connection.fetch("/metrics", { signal });
      if (!response.ok) return undefined;
      const found = parseMetrics(await response.text()).find(
        ({ name }) => name === "lance_gateway_build_info",
      );
      return found?.labels["version"];
    },
    [connection],
  );
  const storage = useCall(
    async (signal) => {
      if (table === undefined) return undefined;
      const { location } = await connection.namespace.describeTable({ id: table }, { signal });
      return location?.replace(/\/[^/]+\/?$/, "");
    },
    [connection, table?.join("/")],
  );
  const facts: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Gateway", health.error === undefined ? health.value : "does not answer"],
    ["Version", version.value],
    ["Signed in", principal ?? "nobody, as the gateway asks for nothing"],
    ["Storage", storage.value],
  ];
  return (
    <dl class="figures home-facts">
      {facts.flatMap(([name, value]) =>
        value === undefined ? (
          []
        ) : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
