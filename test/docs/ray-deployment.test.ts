import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { runProgram } from "../../src/cli/program.ts";
import { CLUSTER_KINDS, JOB_ENGINE_OPTIONS } from "../../src/config/options/job-engine.ts";
import { temporaryDirectory } from "../support/directory.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly secrets: readonly string[];
  readonly volumes: readonly string[];
}

const compose: { readonly services: Readonly<Record<"gateway" | "ray", Service>> } = parse(
  read("deploy/compose/ray.yaml"),
);
const alone: { readonly services: { readonly gateway: Service } } = parse(read("deploy/compose/alone.yaml"));
const [cluster, job] = ["ray", "ray-job"].map((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}.yaml`))[0]?.toJS(),
);

test("the image and the Kubernetes cluster have the version of Ray with which the driver is tested", () => {
  const [, version] = /^ray\[default\]==(.*)$/m.exec(read("test/engines/ray/requirements.txt")) ?? [];
  const image = read("deploy/ray/Dockerfile");
  expect(/^FROM rayproject\/ray:([\d.]+)-py\d+$/m.exec(image)?.[1]).toBe(version);
  expect(/"ray==([\d.]+)"/.exec(image)?.[1]).toBe(version);
  expect(cluster.spec.rayVersion).toBe(version);
});

test("the nodes of the Kubernetes cluster have the same image, of the version of the driver", () => {
  const [, version] = /^version = "(.*)"$/m.exec(read("python/pyproject.toml")) ?? [];
  expect(JSON.parse(read("package.json")).version).toBe(version);
  const { headGroupSpec, workerGroupSpecs } = cluster.spec;
  const images = [headGroupSpec, ...workerGroupSpecs].map(
    ({ template }) => template.spec.containers[0].image,
  );
  expect(new Set(images)).toEqual(new Set([`lance-gateway-ray:${version}`]));
});

test("the RayJob runs a module of the driver on the cluster beside it", () => {
  expect(job.spec.clusterSelector).toEqual({ "ray.io/cluster": cluster.metadata.name });
  const [, name = ""] = /^python -m (\S+) --gateway http:/.exec(job.spec.entrypoint) ?? [];
  expect(read(`python/${name.replace(".", "/")}.py`)).toContain('add_argument("--gateway", required=True)');
});

test("the chart has the kinds, the limits and the defaults of the options", () => {
  const { ray } = JSON.parse(read("deploy/helm/lance-gateway/values.schema.json")).properties;
  const values = parse(read("deploy/helm/lance-gateway/values.yaml")).ray;
  expect(ray.properties.kinds.items.enum).toEqual(CLUSTER_KINDS);
  const { rayWorkers, jobEngineMinRows } = JOB_ENGINE_OPTIONS;
  expect([values.workers, values.minRows].map(String)).toEqual([
    rayWorkers.fallback,
    jobEngineMinRows.fallback,
  ]);
  const { minimum, maximum } = ray.properties.workers;
  for (const workers of [minimum, maximum]) expect(rayWorkers.parse(String(workers))).toBe(workers);
  for (const workers of [minimum - 1, maximum + 1]) expect(() => rayWorkers.parse(String(workers))).toThrow();
});

test("the gateway accepts the options of the compose file", async () => {
  const { gateway } = compose.services;
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  for (const name of gateway.secrets) await writeFile(join(path, name), "a-token-of-a-test");
  const environment = Object.fromEntries(
    Object.entries(gateway.environment).map(([name, value]) => [
      name,
      String(value).replace("/run/secrets", path),
    ]),
  );
  const printed = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const told = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => {
    for (const spy of [printed, told]) spy.mockRestore();
  });
  const [, ...options] = alone.services.gateway.command;
  const code = await runProgram(["config", "check", ...options], {
    LANCE_GATEWAY_HOST: "0.0.0.0",
    ...environment,
  });
  expect([code, printed.mock.calls]).toEqual([0, []]);
});

test("both services of the compose file have the same token, tables and ports", () => {
  const { gateway, ray } = compose.services;
  expect(ray.secrets).toEqual(gateway.secrets);
  expect(ray.environment["RAY_AUTH_TOKEN_PATH"]).toBe(gateway.environment["LANCE_GATEWAY_RAY_TOKEN_FILE"]);
  expect(ray.volumes).toEqual(alone.services.gateway.volumes);
  expect(`--num-cpus=${gateway.environment["LANCE_GATEWAY_RAY_WORKERS"]}`).toBe(
    ray.command.find((flag) => flag.startsWith("--num-cpus")),
  );
  expect(ray).not.toHaveProperty("ports");
});
