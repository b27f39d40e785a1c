import { readConfiguration } from "../../config/configuration.ts";
import { OPTION_GROUPS } from "../../config/options.ts";
import type { CommandDefinition } from "./command.ts";

/** `lance-gateway serve`: serves a directory or an upstream catalog. */
export const serve: CommandDefinition = {
  groups: Object.entries(OPTION_GROUPS).map(([heading, options]) => ({
    heading,
    options,
    environment: true,
  })),
  async run({ layers }, environment) {
    const configuration = await readConfiguration(layers, environment);
    const { runServer } = await import("../run-server.ts");
    await runServer(configuration, environment);
    return 0;
  },
};
