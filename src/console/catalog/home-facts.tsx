import type { Connection } from "../session/connection.ts";
import { useCall } from "../shell/hooks.ts";

interface HomeFactsProps {
  readonly connection: Connection;
  /** Who the caller is. Default: callers prove nothing. */
  readonly principal: string | undefined;
  /** Version of the gateway. Default: it does not tell. */
  readonly version: string | undefined;
  /** Where the data is. Default: the caller may not list the root, or the backend does not tell. */
  readonly storage: string | undefined;
}

/** What one wants to know of a gateway first: whether it is well, its version, its storage, and who is signed in. */
export function HomeFacts({ connection, principal, version, storage }: HomeFactsProps) {
  const health = useCall(
    async (signal) => {
      const { ok } = await connection.fetch("/readyz", { signal });
      return ok ? "ready" : "not ready";
    },
    [connection],
  );
  const facts: readonly (readonly [name: string, value: string | undefined])[] = [
    ["Gateway", health.error === undefined ? health.value : "does not answer"],
    ["Version", version],
    ["Storage", storage],
    ["Signed in", principal ?? "nobody, as the gateway asks for nothing"],
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
