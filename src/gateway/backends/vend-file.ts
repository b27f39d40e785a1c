import { type BucketPlace, placeOf } from "../../backends/dir/stores/open-store.ts";
import type { StaticOptions } from "../../backends/dir/vending/static-options.ts";
import { PERMISSIONS } from "../../backends/dir/vending/vendor.ts";
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
import { parseChoice } from "../../config/parsers.ts";

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
