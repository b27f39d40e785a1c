import { pino } from "pino";
import { type Configuration, configurationOf, readSources } from "../../config/configuration.ts";
import { type Layer, type Report, serviceLinks } from "../../config/layers.ts";
import { backendKindOf, type Environment, REMOTE_KINDS, UsageError } from "../../config/option-spec.ts";
import { SERVE_OPTIONS, type ServeOptions } from "../../config/options/groups.ts";
import { unknownVariables } from "../../config/serve-options.ts";
import { openAuthenticator, openAuthorizer, refuseStrangers } from "../../gateway/access/open-access.ts";
import { upstreamIdentityOf } from "../../gateway/access/upstream-identity.ts";
import { clusterOf } from "../../gateway/backends/cluster-of.ts";
import { openTls } from "../../gateway/open-tls.ts";
import { adminPlace } from "./open-admin.ts";

/** Findings of a check of a configuration, a line each. */
export interface Findings {
  /** Mistakes that keep the gateway from starting. */
  readonly mistakes: readonly string[];
  /** Facts that may be mistakes. */
  readonly notes: readonly string[];
}

/**
 * Checks a configuration without starting anything: each option by itself, then what options mean together, and the files of
 * keys, policies, certificates and the Ray cluster.
 */
export async function checkConfiguration(
  given: readonly Layer[],
  environment: Environment,
): Promise<Findings> {
  const mistakes = new Set<string>();
  const report: Report = ({ message }) => void mistakes.add(message);
  const configuration = await read(given, environment, report);
  if (configuration !== undefined && mistakes.size === 0)
    await checkTogether(configuration, environment, report);
  return {
    mistakes: [...mistakes],
    notes: [...linkedVariables(environment), ...unknownVariables(environment)],
  };
}

async function read(given: readonly Layer[], environment: Environment, report: Report) {
  try {
    return configurationOf(await readSources(given, environment, report), report);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    report(error);
    return undefined;
  }
}

const LOG = pino({ level: "silent" });

/** Checks of options that belong together; each throws at a mistake, and leaves nothing open. */
const CHECKS: readonly ((options: ServeOptions) => Promise<unknown>)[] = [
  refuseStrangers,
  async (options) => adminPlace(options),
  async (options) => (await openTls(options, LOG))?.close(),
  async (options) => (await openAuthenticator(options, LOG))?.close(),
  async (options) => (await openAuthorizer(options, LOG))?.close(),
];

async function checkTogether(
  { options, databases }: Configuration,
  environment: Environment,
  report: Report,
): Promise<void> {
  const work = CHECKS.map((check) => () => check(options));
  for (const [name, own] of databases?.byName ?? [["", options] as const]) {
    const kind = backendKindOf(own.backend);
    const isRemote = REMOTE_KINDS.some((each) => each === kind);
    if (!isRemote && kind !== "dir") continue;
    work.push(async () => {
      try {
        if (isRemote) upstreamIdentityOf(own, environment);
        else await clusterOf(own);
      } catch (error) {
        throw name === "" ? error : new UsageError(`database ${name}: ${(error as Error).message}`);
      }
    });
  }
  for (const check of work) {
    await check().catch((error: Error) =>
      report(error instanceof UsageError ? error : new UsageError(error.message)),
    );
  }
}

/** Returns a line for each variable of an option that Kubernetes has set to the address of a Service. */
function linkedVariables(environment: Environment): readonly string[] {
  return serviceLinks(SERVE_OPTIONS, environment).map(
    (name) => `${name} has the address of a Kubernetes Service, and no effect`,
  );
}
