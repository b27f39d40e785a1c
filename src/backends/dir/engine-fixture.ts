import type { TableContext } from "./catalog/catalog-context.ts";
import type { NativeTable } from "./engine/native/native.ts";

type Engine = TableContext["engine"];

/** Returns an engine that does something else right before each call of a method of its tables, for example what another gateway does. */
export function engineWith(
  engine: Engine,
  method: keyof NativeTable,
  before: () => Promise<unknown>,
): Engine {
  const interrupted = (table: NativeTable) =>
    new Proxy(table, {
      get(target, key) {
        const value = target[key as keyof NativeTable] as (...args: unknown[]) => unknown;
        if (key !== method) return value.bind(target);
        return async (...args: unknown[]) => {
          await before();
          return value.apply(target, args);
        };
      },
    });
  return {
    ...engine,
    async acquire(...args: Parameters<Engine["acquire"]>) {
      const lease = await engine.acquire(...args);
      return { ...lease, table: interrupted(lease.table) };
    },
  };
}
