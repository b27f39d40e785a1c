import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** Returns the version of a checkout. @throws Error if its files differ */
export function sharedVersion(root: string): string {
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const chart = parse(read("deploy/helm/lance-gateway/Chart.yaml")) as {
    version: string;
    appVersion: string;
  };
  const lock = JSON.parse(read("package-lock.json")) as { version: string };
  const others = {
    "package-lock.json": lock.version,
    "the version in Chart.yaml": chart.version,
    "appVersion in Chart.yaml": chart.appVersion,
  };
  for (const [where, other] of Object.entries(others)) {
    if (other !== version) throw new Error(`package.json has version ${version}, and ${where} ${other}`);
  }
  return version;
}

/** Returns the changelog's section for a version. @throws Error if it has none */
export function releaseNotes(root: string, version: string): string {
  const text = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const section = text.split(/^## /m).find((each) => each.split(/\s/, 1)[0] === version);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section ${version}`);
  return section.slice(section.indexOf("\n")).trim();
}
