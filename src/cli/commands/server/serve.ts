import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { readConfiguration } from "../../../config/configuration.ts";
import { OPTION_GROUPS, type ServeOptions } from "../../../config/options/groups.ts";
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

/** Maximum time for the gateway to answer, in milliseconds. */
const TIMEOUT_MS = 3_000;
/** Status of a gateway that can answer calls. */
const READY = 200;

/**
 * `lance-gateway ready`: asks the gateway that runs here with equal options whether it can answer calls, for the health
 * checks of containers. The exit code is 0 if it can.
 */
export const ready: CommandDefinition = {
  groups: serve.groups,
  async run({ layers }, environment) {
    const { options } = await readConfiguration(layers, environment);
    const { host, port, socketPath } = options;
    const place = socketPath ?? `${host}:${port}`;
    const status = await askReadiness(options).catch((cause: Error) => {
      throw new Error(`no gateway answers at ${place}: ${cause.message}`, { cause });
    });
    if (status !== READY) throw new Error(`the gateway at ${place} is not ready`);
    process.stdout.write(`the gateway at ${place} is ready\n`);
    return 0;
  },
};

async function askReadiness({ host, port, socketPath, tlsCert }: ServeOptions): Promise<number | undefined> {
  const { get } = tlsCert === undefined ? http : https;
  const request = get({
    ...(socketPath === undefined ? { host, port } : { socketPath }),
    path: "/readyz",
    // The certificate is for the names by which clients call, and the request has nothing to hide.
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.destroy();
  return response.statusCode;
}
