import type { Logger } from "pino";
import { type BucketPlace, placeOf } from "../../backends/dir/stores/open-store.ts";
import type { StorageOptions } from "../../backends/dir/stores/storage-options.ts";
import {
  type CredentialSource,
  PERMISSIONS,
  type StaticOptions,
  type Vendor,
} from "../../backends/dir/vending/vendor.ts";
import {
  checkKeys,
  expandVariables,
  listedSections,
  readConfigFile,
  type Section,
  subsection,
  textAt,
} from "../../config/config-file.ts";
import { type Environment, UsageError } from "../../config/option-spec.ts";
import type { ServeOptions } from "../../config/options/groups.ts";
import { parseChoice } from "../../config/parsers.ts";

type Mode = NonNullable<ServeOptions["vend"]>;

/** Facts from which a source is created. */
interface Settings {
  readonly options: ServeOptions;
  readonly place: BucketPlace;
  readonly storageOptions: StorageOptions;
  readonly environment: Environment;
}

/**
 * Opens what the options say about the credentials that clients get; undefined if they bring their own.
 *
 * @throws UsageError for options that are missing or contradict each other, and for a file that cannot be read.
 */
export async function openVendor(
  options: ServeOptions,
  storageOptions: StorageOptions,
  environment: Environment,
  log: Logger,
): Promise<Vendor | undefined> {
  const { vend, root, readOnly, vendAccess, auth } = options;
  if (vend === undefined) return undefined;
  const place = placeOf(root);
  if (place === undefined || place.scheme === "file") {
    throw new UsageError("--vend needs a root in an object store, because a disk has no credentials");
  }
  const { createVendor } = await import("../../backends/dir/vending/vendor.ts");
  const isOpen = auth.length === 0;
  const most = readOnly ? "read" : vendAccess;
  const source = await SOURCES[vend]({ options, place, storageOptions, environment });
  if (isOpen) {
    log.warn({ access: most }, "everyone who reaches the port gets credentials for the storage of tables");
  }
  return createVendor({ source, most, isOpen });
}

const SOURCES: Readonly<Record<Mode, (settings: Settings) => Promise<CredentialSource>>> = {
  async static({ options, place, environment }) {
    const { createStaticSource } = await import("../../backends/dir/vending/vendor.ts");
    const file = required("static", "--vend-file", options.vendFile);
    const entries = await readVendFile(file, environment);
    const ofBucket = entries.filter(
      ({ location }) => location.scheme === place.scheme && location.bucket === place.bucket,
    );
    return createStaticSource(ofBucket.map(({ location, ...rest }) => ({ key: location.key, ...rest })));
  },

  async "aws-sts"({ options, place, storageOptions }) {
    requireScheme("aws-sts", place, "s3");
    const { createStsSource } = await import("../../backends/dir/vending/aws-sts.ts");
    return createStsSource({
      bucket: place.bucket,
      storageOptions,
      roleArn: required("aws-sts", "--vend-aws-role", options.vendAwsRole),
      externalId: options.vendAwsExternalId,
      endpoint: options.vendAwsEndpoint,
      durationMs: options.vendDurationMs,
    });
  },

  async "google-token"({ place, storageOptions }) {
    requireScheme("google-token", place, "gs");
    const { createGoogleSource } = await import("../../backends/dir/vending/google-token.ts");
    return createGoogleSource({ bucket: place.bucket, storageOptions });
  },

  async "azure-sas"({ options, place, storageOptions }) {
    requireScheme("azure-sas", place, "az");
    if (options.vendAccess === "write") {
      throw new UsageError(
        "--vend azure-sas requires --vend-access read or manage, because a SAS cannot leave out files",
      );
    }
    const { createSasSource } = await import("../../backends/dir/vending/azure-sas.ts");
    return createSasSource({ container: place.bucket, storageOptions, durationMs: options.vendDurationMs });
  },
};

function requireScheme(mode: Mode, { scheme }: BucketPlace, needed: string): void {
  if (scheme !== needed)
    throw new UsageError(`--vend ${mode} needs a root such as ${needed}://bucket/prefix`);
}

function required(mode: Mode, flag: string, value: string | undefined): string {
  if (value !== undefined) return value;
  throw new UsageError(`--vend ${mode} requires ${flag}`);
}

/** An entry of the file: a place in an object store, and the options that clients get there. */
export interface VendEntry extends Omit<StaticOptions, "key"> {
  readonly location: BucketPlace;
}

const parseAccess = parseChoice(PERMISSIONS);

/**
 * Reads the file of static options: under `locations`, a list of `location`, `access` (default: `read`) and
 * `storage-options`, whose values may refer to environment variables.
 *
 * @throws UsageError with a single line that names the file and the key, and repeats no value of an option.
 */
export async function readVendFile(file: string, environment: Environment): Promise<readonly VendEntry[]> {
  const content = await readConfigFile(file);
  checkKeys(content, ["locations"]);
  const sections = listedSections(content, "locations");
  if (sections.length === 0) throw new UsageError(`${content.at}locations must name at least one location`);
  return sections.map((section) => {
    checkKeys(section, ["location", "access", "storage-options"]);
    return {
      location: locationIn(section),
      permission: accessIn(section),
      options: optionsIn(section, environment),
    };
  });
}

function locationIn(section: Section): BucketPlace {
  const text = textAt(section, "location") ?? "";
  const place = placeOf(text);
  if (place !== undefined && /^(?:s3|gs|az)$/.test(place.scheme) && place.bucket !== "") return place;
  throw new UsageError(`${section.at}location must be a place in an object store such as s3://bucket/prefix`);
}

function accessIn(section: Section): StaticOptions["permission"] {
  const text = textAt(section, "access") ?? "read";
  try {
    return parseAccess(text);
  } catch (error) {
    throw new UsageError(`${section.at}access ${(error as Error).message}`);
  }
}

function optionsIn(section: Section, environment: Environment): StaticOptions["options"] {
  const options = subsection(section, "storage-options");
  if (options === undefined) throw new UsageError(`${section.at}storage-options is missing`);
  const entries = Object.keys(options.entries).map((name) => {
    const text = textAt(options, name) ?? "";
    return [name.toLowerCase(), expandVariables(text, environment, `${options.at}${name}`)] as const;
  });
  return Object.fromEntries(entries);
}
