import { expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { loadLibrary } from "./load-library.ts";

function missing(name: string, code = "ERR_MODULE_NOT_FOUND") {
  const error = Object.assign(new Error(`Cannot find package '${name}'`), { code });
  return () => Promise.reject(error);
}

test("names a missing package and the command that installs it", async () => {
  await expect(loadLibrary("x://", "@a/b", missing("@a/b"))).rejects.toThrow(
    "x:// needs the package @a/b, which is not installed; install it with npm install @a/b",
  );
});

test("names the version of a package of which only that version works", async () => {
  const name = "@lancedb/lancedb";
  const version = packageJson.optionalDependencies[name];
  for (const code of ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]) {
    const loading = loadLibrary("a directory", name, missing(name, code));
    await expect(loading).rejects.toThrow(new RegExp(`npm install ${name}@${version}$`));
  }
});

test("names the command that installs everything for a package of a clone", async () => {
  const name = "@azure/identity";
  await expect(loadLibrary("az://", name, missing(name))).rejects.toThrow(/install it with npm ci$/);
});

test("leaves every other failure as it is", async () => {
  const load = missing("@a/b");
  const failure = await load().catch((error: unknown) => error);
  await expect(loadLibrary("x://", "@a/c", load)).rejects.toBe(failure);
});
