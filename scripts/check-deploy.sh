#!/usr/bin/env bash
# Checks the files in deploy/ without a container engine and without a cluster (docs/deployment.md#checks). With "write" it
# writes deploy/kubernetes from the chart.
set -euo pipefail
cd "$(dirname "$0")/.."

HELM=v3.22.0
KUSTOMIZE=v5.8.1
COMPOSE=v2.16.2
KUBERAY=v1.6.2
KUBERNETES=1.33
# The exposure of a unit without any protection is 100.
MAX_EXPOSURE=25

cache=$PWD/.cache/deploy-python
tools=$cache/bin
chart=deploy/helm/lance-gateway
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The environment of scripts/python-environment.ts.
requirements=test/clients/deploy/requirements.txt
if ! cmp -s "$requirements" "$cache/requirements.txt"; then
  python3 -m venv --clear "$cache"
  "$tools/pip" install --quiet -r "$requirements"
  cp "$requirements" "$cache/requirements.txt"
fi
helm=$PWD/.cache/bin/helm-$HELM/helm
[ -x "$helm" ] || GOBIN=$(dirname "$helm") go install "helm.sh/helm/v3/cmd/helm@$HELM"
kustomize=$PWD/.cache/bin/kustomize-$KUSTOMIZE/kustomize
[ -x "$kustomize" ] || GOBIN=$(dirname "$kustomize") go install "sigs.k8s.io/kustomize/kustomize/v5@$KUSTOMIZE"
compose=$PWD/.cache/bin/compose-$COMPOSE/cmd
[ -x "$compose" ] || GOBIN=$(dirname "$compose") go install "github.com/compose-spec/compose-go/v2/cmd@$COMPOSE"
kuberay=$(go mod download -json "github.com/ray-project/kuberay/ray-operator@$KUBERAY" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')

# Without helm's remark on the link to the alerts.
run_helm() { "$helm" "$@" 2> >(grep -v 'found symbolic link' >&2); }
render() { run_helm template lance-gateway "$chart" --namespace lance --kube-version "$KUBERNETES" --values "$chart/ci/$1.yaml"; }

echo "Dockerfiles"
"$tools/hadolint" deploy/Dockerfile deploy/ray/Dockerfile

echo "compose files"
# Their paths begin at the folder of each.
for file in deploy/compose/*.yaml; do (cd deploy/compose && "$compose" "$(basename "$file")" >/dev/null); done

echo "chart"
for values in "$chart"/ci/*.yaml; do
  name=$(basename "$values" .yaml)
  run_helm lint --strict --quiet "$chart" --values "$values"
  render "$name" >"$folder/$name.yaml"
  "$tools/kubernetes-validate" --strict --quiet -k "$KUBERNETES" "$folder/$name.yaml"
done
for name in standalone sidecar; do
  if [ "${1:-}" = write ]; then cp "$folder/$name.yaml" deploy/kubernetes/; fi
  diff "deploy/kubernetes/$name.yaml" "$folder/$name.yaml" || { echo "run: bash scripts/check-deploy.sh write" >&2; exit 1; }
done

refuse() {
  local expected=$1
  shift
  if "$helm" template lance-gateway "$chart" --kube-version "$KUBERNETES" "$@" >/dev/null 2>"$folder/refused"; then return 1; fi
  grep -q "$expected" "$folder/refused" || { cat "$folder/refused" >&2; exit 1; }
}
# Others than the namespace's pods would reach a gateway without keys.
for open in ingress.enabled=true networkPolicy.enabled=false service.type=LoadBalancer; do refuse 'set config.auth' --set "$open"; done
refuse "'replica' not allowed" --set replica=2
refuse "'request' not allowed" --set resources.request.cpu=1

echo "chart with a Ray cluster"
with_ray() {
  local expected=$1
  shift
  refuse "$expected" --values "$chart/ci/ray.yaml" "$@"
}
refuse 'needs ray.addresses' --set ray.enabled=true --set config.root=s3://lance/catalog
# A volume that the cluster does not mount, the gateway's own included.
for place in config.root=null config.root=/data/catalog config.root=catalog; do with_ray 'opens the files of the tables' --set "$place"; done
with_ray 'opens the files of the tables' --set config.root=/data/catalog --set persistence.enabled=true
with_ray 'a name of the certificate' --set tlsSecret=gateway
with_ray 'does not reach a sidecar' --set-json 'application.containers=[{"name": "a", "image": "a"}]'
with_ray 'config.backend is grpc' --set config.backend=grpc
with_ray 'in each of them' --set-json 'config.databases={"sales": {"root": "s3://lance/sales"}}'
refuse 'would run code' --set-json 'ray={"enabled": true, "addresses": ["http://head:8265"], "functions": {"enabled": true}}' \
  --set config.root=s3://lance/catalog
with_ray 'does not match pattern' --set-json 'ray.addresses=["head:8265"]'
with_ray 'must be one of' --set-json 'ray.kinds=["create_indices"]'
with_ray "'worker' not allowed" --set ray.worker=2

# The gateway reads the configuration, with other files in the place of the secrets.
files=$folder/lance-gateway
mkdir -p "$files/config" "$files/ray" "$files/secrets"
"$tools/python" test/clients/deploy/config_map.py "$folder/ray.yaml" "$files/config"
sed -i "s#/etc/lance-gateway#$files#" "$files/config/config.yaml"
openssl rand -hex 32 | tee "$files/ray/token" >"$files/ray/function-key"
gateway=(node scripts/run.mjs src/cli/main.ts)
"${gateway[@]}" keys create --file "$files/secrets/keys.json" --name check --role owner >/dev/null
LANCE_GATEWAY_HOST=0.0.0.0 "${gateway[@]}" config check "$files/config/config.yaml"

echo "resources of KubeRay"
"$tools/kubernetes-validate" --strict --quiet -k "$KUBERNETES" deploy/kubernetes/ray.yaml deploy/kubernetes/ray-job.yaml
"$tools/python" test/clients/deploy/custom_resources.py "$kuberay/config/crd/bases" deploy/kubernetes/ray.yaml deploy/kubernetes/ray-job.yaml

echo "sidecar for a Deployment that exists"
node scripts/run.mjs scripts/sidecar-component.ts deploy/kubernetes/sidecar.yaml "$folder/sidecar"
if [ "${1:-}" = write ]; then cp "$folder"/sidecar/* deploy/kubernetes/sidecar/; fi
diff deploy/kubernetes/sidecar "$folder/sidecar" || { echo "run: bash scripts/check-deploy.sh write" >&2; exit 1; }
cp -r test/clients/deploy/application "$folder/"
"$kustomize" build "$folder/application" >"$folder/application.yaml"
"$tools/kubernetes-validate" --strict --quiet -k "$KUBERNETES" "$folder/application.yaml"
grep -q 'name: lance-gateway-sidecar-' "$folder/application.yaml"
grep -q 'image: lance-gateway:' "$folder/application.yaml"

echo "alerts"
promtool check config --syntax-only deploy/prometheus/prometheus.yaml
promtool check rules deploy/prometheus/alerts.yaml
promtool test rules deploy/prometheus/alerts.test.yaml

echo "systemd unit"
system=$folder/system
mkdir -p "$system/usr/bin" "$system/usr/lib/systemd" "$system/etc/systemd/system"
cp -r /usr/lib/systemd/system "$system/usr/lib/systemd/"
for command in lance-gateway kill; do install -m 755 /dev/null "$system/usr/bin/$command"; done
cp deploy/systemd/lance-gateway.service "$system/etc/systemd/system/"
# Unknown settings are warnings, which end with code 0.
findings=$(systemd-analyze verify --man=no --root="$system" lance-gateway.service 2>&1 | grep lance-gateway || true)
if [ -n "$findings" ]; then
  echo "$findings" >&2
  exit 1
fi
systemd-analyze security --offline=true --root="$system" --threshold="$MAX_EXPOSURE" --no-pager lance-gateway.service |
  tail -1
