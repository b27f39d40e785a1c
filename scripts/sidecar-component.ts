// Makes deploy/kubernetes/sidecar, a component of Kustomize that puts the gateway beside the containers of a Deployment that
// exists, from the chart's output for a sidecar: node scripts/run.mjs scripts/sidecar-component.ts MANIFESTS FOLDER
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, stringify } from "yaml";

interface Named {
  readonly name: string;
}

interface Container extends Named {
  readonly volumeMounts: readonly Named[];
}

interface Manifest {
  readonly kind: string;
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly template: { readonly spec: { initContainers: Container[]; volumes: (Named & object)[] } };
  };
}

const NAME = "lance-gateway-sidecar";
const SELECTOR = "lance-gateway/sidecar=true";

const [manifests = "", folder = ""] = process.argv.slice(2);
const documents = parseAllDocuments(readFileSync(manifests, "utf8")).map((each) => each.toJSON() as Manifest);
const find = (kind: string) => {
  const found = documents.find((each) => each?.kind === kind);
  if (found === undefined) throw new Error(`${manifests} has no ${kind}`);
  return found;
};
const { initContainers, volumes } = find("Deployment").spec.template.spec;

/** The application's pod may have volumes of the chart's short names. */
const rename = <T extends Named>(each: T): T => ({ ...each, name: `lance-gateway-${each.name}` });

const patch = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "any" },
  spec: {
    template: {
      spec: {
        initContainers: initContainers.map((each) => ({
          ...each,
          volumeMounts: each.volumeMounts.map(rename),
        })),
        volumes: volumes.map((each) =>
          rename("configMap" in each ? { ...each, configMap: { name: NAME } } : each),
        ),
      },
    },
  },
};
const kustomization = {
  apiVersion: "kustomize.config.k8s.io/v1alpha1",
  kind: "Component",
  configMapGenerator: [{ name: NAME, files: ["config.yaml"] }],
  patches: [{ path: "patch.yaml", target: { kind: "Deployment", labelSelector: SELECTOR } }],
};

mkdirSync(folder, { recursive: true });
const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
write("patch.yaml", stringify(patch));
write(
  "kustomization.yaml",
  `# Puts the gateway beside the containers of each Deployment with the label ${SELECTOR}.\n${stringify(kustomization)}`,
);
write("config.yaml", find("ConfigMap").data["config.yaml"] ?? "");
