// Fails when a package that comes with the gateway has a licence that is not listed here. A licence is listed when the project may
// be used and passed on together with such a package.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BUNDLED } from "./bundled.ts";

interface Package {
  readonly dev?: boolean;
  readonly license?: string;
}

const ALLOWED = new Set([
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
]);

/** Packages whose licence is not in their metadata, or is allowed for them alone. */
const KNOWN: readonly (readonly [pattern: RegExp, licence: string, why: string])[] = [
  [/^base-64$/, "MIT", "named in an older form of the metadata"],
  [/^json-bignum$/, "MIT", "named in an older form of the metadata"],
  [/^flatbuffers$/, "Apache-2.0", "named in a file"],
  [/^@lancedb\/lancedb-/, "Apache-2.0", "the engine for another system, which is not installed"],
  [
    /^@img\/sharp-/,
    "LGPL-3.0-or-later",
    "a library that an optional package of the engine links to, and that is not changed",
  ],
];

const root = join(import.meta.dirname, "..");
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  readonly packages: Readonly<Record<string, Package>>;
};

/** Whether an SPDX expression of AND and OR allows what the list allows. */
function isAllowed(expression: string): boolean {
  const parts = expression.replaceAll(/[()]/g, "").split(" AND ");
  return parts.every((part) => part.split(" OR ").some((licence) => ALLOWED.has(licence)));
}

const bundled = new Set(BUNDLED.map((name) => `node_modules/${name}`));
const shipped = Object.entries(lock.packages).filter(
  ([path, { dev }]) => path !== "" && (dev !== true || bundled.has(path)),
);
const refused = shipped.flatMap(([path, { license }]) => {
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  if (KNOWN.some(([pattern]) => pattern.test(name)) || (license !== undefined && isAllowed(license)))
    return [];
  return [`${name}: ${license ?? "no licence"}`];
});
for (const line of refused) console.error(line);
if (refused.length > 0) process.exit(1);
console.log(`The licences of ${shipped.length} packages are allowed.`);
