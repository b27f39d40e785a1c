import { existsSync } from "node:fs";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { pino } from "pino";
import { createEngine } from "../../src/backends/dir/engine/engine.ts";

/**
 * Returns the object ids in the manifest of a base directory as the Lance engine reads them, one for each row; an empty
 * list without a manifest.
 */
export async function manifestIds(base: string): Promise<string[]> {
  if (!existsSync(join(base, "__manifest", "_versions"))) return [];
  const engine = createEngine({ log: pino({ level: "silent" }) });
  try {
    const { table, release } = await engine.acquire(join(base, "__manifest"));
    try {
      const query = table.query();
      query.selectColumns(["object_id"]);
      const batches = await query.execute(65_536);
      const ids: string[] = [];
      for (let batch = await batches.next(); batch !== null; batch = await batches.next()) {
        for (const id of tableFromIPC(batch).getChild("object_id") ?? []) ids.push(String(id));
      }
      return ids;
    } finally {
      release();
    }
  } finally {
    await engine.close();
  }
}
