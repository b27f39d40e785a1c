import { whyNoSource } from "../../namespace/root.ts";
import { type OptionTable, UsageError } from "../option-spec.ts";
import { parseBaseUri, parseChoice, parseInteger, parseText } from "../parsers.ts";

/** Kinds of jobs that a cluster can do. */
export const CLUSTER_KINDS = [
  "create_index",
  "compact_table",
  "import_files",
  "backfill_column",
  "refresh_view",
] as const;

/** Options about where the heavy work on tables is done (docs/how-to/jobs-on-ray.md). */
export const JOB_ENGINE_OPTIONS = {
  jobEngine: {
    flag: "job-engine",
    value: "embedded|ray",
    help: "Where heavy work on large tables is done: in this process, or on a Ray cluster (docs/how-to/jobs-on-ray.md). The property lance-gateway.job-engine of a table overrides it.",
    fallback: "embedded",
    parse: parseChoice(["embedded", "ray"]),
    backends: ["dir"],
  },
  rayAddresses: {
    flag: "ray-address",
    value: "URL",
    help: "Address of the dashboard of the cluster's head, such as http://head:8265, for --job-engine ray. The first that answers is used.",
    parse: parseBaseUri,
    repeatable: true,
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  rayTokenFile: {
    flag: "ray-token-file",
    value: "FILE",
    help: "File with the token of the cluster. Default: the cluster asks for none.",
    parse: parseText,
    isFile: true,
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  rayGatewayUrl: {
    flag: "ray-gateway-url",
    value: "URL",
    help: "Address of the gateway for the drivers on the cluster; each of several databases adds its path. Default: --host and --port of the gateway, for a cluster on the same machine. Required with --port 0, --listen and --tls-cert.",
    parse(text) {
      // It becomes a part of a command line on the cluster.
      if (/^https?:\/\/[\w.:[\]-]+(?:\/[\w.~/-]*)?$/.test(text)) return parseBaseUri(text);
      throw new UsageError("must be an address such as http://gateway.internal:2333");
    },
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  rayRuntimeEnv: {
    flag: "ray-runtime-env",
    value: "FILE",
    help: "Ray's runtime environment of the drivers, as JSON. Default: the cluster has the driver installed.",
    parse: parseText,
    isFile: true,
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  rayWorkers: {
    flag: "ray-workers",
    value: "N",
    help: "Number of workers of the cluster over which a job is spread.",
    fallback: "4",
    parse: parseInteger(1, 10_000),
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  importLocations: {
    flag: "import-location",
    value: "LOCATION",
    help: "Absolute directory, or place in an S3 bucket, from whose files the cluster may fill tables (lance-gateway import --engine ray). Default: none.",
    parse(text) {
      const location = text.replace(/\/+$/, "");
      const why = location.includes("*") ? "it must not have a *" : whyNoSource(location);
      if (why === undefined) return location;
      throw new UsageError(`must be a directory such as /data/raw, or s3://bucket/raw: ${why}`);
    },
    repeatable: true,
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  functions: {
    flag: "functions",
    value: "on|off",
    help: "Whether the cluster runs Python functions that owners of the catalog have stored (docs/how-to/functions.md). They may do all that the workers may.",
    fallback: "off",
    parse: parseChoice(["on", "off"]),
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  functionSecretKeyFile: {
    flag: "function-secret-key-file",
    value: "FILE",
    help: "File with a secret of at least 32 characters, of which the key of the secrets of functions is made (AES-256-GCM). All gateways of a catalog need the same. Default: no secrets are kept.",
    parse: parseText,
    isFile: true,
    backends: ["dir"],
    needs: { flag: "functions", is: ["on"] },
  },
  jobEngineMinRows: {
    flag: "job-engine-min-rows",
    value: "N",
    help: "Number of rows of a table from which on its heavy work goes to the cluster.",
    fallback: "1000000",
    parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
  jobEngineKinds: {
    flag: "job-engine-kinds",
    value: "KIND",
    help: "Kinds of jobs that go to the cluster. Default: all that it can do.",
    parse: parseChoice(CLUSTER_KINDS),
    repeatable: true,
    commas: true,
    backends: ["dir"],
    needs: { flag: "job-engine", is: ["ray"] },
  },
} as const satisfies OptionTable;
