import { type OptionTable, UsageError } from "../../option-spec.ts";
import { parseAge, parseChoice, parseText } from "../../parsers.ts";

/** Shortest and longest life of a session of AWS, in milliseconds. */
const DURATIONS = [15 * 60_000, 12 * 3_600_000] as const;

/** Options about the credentials that clients get for the storage of a directory (docs/security.md). */
export const VENDING_OPTIONS = {
  vend: {
    flag: "vend",
    value: "static|aws-sts|google-token|azure-sas",
    help: "Hand out credentials for the object store with describe and declare: static (those of --vend-file), or an assumed role (aws-sts), a token (google-token) or a signature (azure-sas) that is cut to the directory of the table. Default: clients bring their own (docs/security.md).",
    parse: parseChoice(["static", "aws-sts", "google-token", "azure-sas"]),
    backends: ["dir"],
  },
  vendAccess: {
    flag: "vend-access",
    value: "read|write|manage",
    help: "Most that handed-out credentials allow in the directory of a table: read, also write, or also delete its files (manage). A caller gets no more than its role allows.",
    fallback: "read",
    parse: parseChoice(["read", "write", "manage"]),
    backends: ["dir"],
    needs: { flag: "vend" },
  },
  vendDurationMs: {
    flag: "vend-duration",
    value: "AGE",
    help: "Life of handed-out credentials, from 15m to 12h, if the service grants it; google-token lives for up to an hour.",
    fallback: "1h",
    parse(text) {
      const duration = parseAge(text);
      if (duration >= DURATIONS[0] && duration <= DURATIONS[1]) return duration;
      throw new UsageError("must be from 15m to 12h");
    },
    backends: ["dir"],
    needs: { flag: "vend" },
  },
  vendFile: {
    flag: "vend-file",
    value: "FILE",
    help: "Locations in the object store and the storage options that clients get for the tables in them, in YAML or JSON, for --vend static.",
    parse: parseText,
    isFile: true,
    backends: ["dir"],
  },
  vendAwsRole: {
    flag: "vend-aws-role",
    value: "ARN",
    help: "Role that the gateway assumes for --vend aws-sts, for example arn:aws:iam::123456789012:role/tables.",
    parse(text) {
      if (/^arn:[a-z0-9-]+:iam::\d{12}:role\/[!-~]+$/.test(text)) return text;
      throw new UsageError("must be the ARN of a role such as arn:aws:iam::123456789012:role/tables");
    },
    backends: ["dir"],
  },
  vendAwsExternalId: {
    flag: "vend-aws-external-id",
    value: "ID",
    help: "External id that the role of --vend-aws-role asks for.",
    parse: parseText,
    backends: ["dir"],
  },
  vendAwsEndpoint: {
    flag: "vend-aws-endpoint",
    value: "URL",
    help: "Endpoint of STS, for services other than that of AWS. Default: that of the region.",
    parse(text) {
      if (/^https?:\/\//.test(text) && URL.canParse(text)) return text;
      throw new UsageError("must be a URL such as https://sts.example.com");
    },
    backends: ["dir"],
  },
} as const satisfies OptionTable;
