import { OPTION_GROUPS } from "../../../config/options/groups.ts";
import { loadConfiguration } from "../../serving/load-configuration.ts";
import type { CommandDefinition } from "../command.ts";

/** `lance-gateway serve`: serves a directory or an upstream catalog. */
export const serve: CommandDefinition = {
  groups: Object.entries(OPTION_GROUPS).map(([heading, options]) => ({
    heading,
    options,
    environment: true,
  })),
  async run({ layers }, environment) {
    const load = () => loadConfiguration(layers, environment);
    const first = await load();
    const { runServer } = await import("../../serving/run-server.ts");
    await runServer(first, load, environment);
    return 0;
  },
};
