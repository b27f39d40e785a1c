import type { OptionTable } from "../../../config/option-spec.ts";
import { SERVER_OPTIONS } from "../../../config/options/server.ts";
import { packageVersion } from "../../../gateway/version.ts";
import { catalogCommand } from "../catalog-command.ts";

const OPTIONS = { writes: SERVER_OPTIONS.mcpWrites } as const satisfies OptionTable;

/** `lance-gateway mcp`: serves a catalog to an agent, by the Model Context Protocol over standard input and output. */
export const mcp = catalogCommand({
  options: OPTIONS,
  access: ({ writes }) => (writes ? "change" : "read"),
  async run({ namespace, options: { writes }, signal }) {
    const { serveMcpStdio } = await import("../../../wires/mcp/stdio.ts");
    const onFault = (fault: unknown, tool: string) => {
      process.stderr.write(`lance-gateway: ${tool} failed: ${String(fault)}\n`);
    };
    await serveMcpStdio({ namespace, writes, version: packageVersion(), signal, onFault });
  },
});
