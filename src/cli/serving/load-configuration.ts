import { type Configuration, configurationOf, readSources } from "../../config/configuration.ts";
import { explain, type ShownConfiguration } from "../../config/explain.ts";
import type { Layer } from "../../config/layers.ts";
import type { Environment } from "../../config/option-spec.ts";
import { contentsOf } from "../../config/watched-files.ts";
import { redactText } from "../../observability/log/redact.ts";

/** A configuration as it was read, and as operators may see it. */
export interface LoadedConfiguration {
  readonly configuration: Configuration;
  readonly shown: ShownConfiguration;
}

/** Reads the configuration of `serve`. */
export async function loadConfiguration(
  layers: readonly Layer[],
  environment: Environment,
): Promise<LoadedConfiguration> {
  const sources = await readSources(layers, environment);
  const configuration = configurationOf(sources);
  const contents = await contentsOf(configuration);
  return { configuration: { ...configuration, contents }, shown: explain(sources, redactText) };
}
