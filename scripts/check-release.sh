#!/usr/bin/env bash
# Does what the release workflow does, as far as it goes without an account and without a container engine
# (docs/releasing.md). It publishes nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

ACTIONLINT=v1.7.12
HELM=v3.22.0

cache=$PWD/.cache
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
release() { node scripts/run.mjs scripts/release.ts "$@"; }

# An environment as those of scripts/python-environment.ts.
python=$cache/release-python
requirements=scripts/release/requirements.txt
if ! cmp -s "$requirements" "$python/requirements.txt"; then
  python3 -m venv --clear "$python"
  "$python/bin/pip" install --quiet -r "$requirements"
  cp "$requirements" "$python/requirements.txt"
fi
actionlint=$cache/bin/actionlint-$ACTIONLINT/actionlint
[ -x "$actionlint" ] || GOBIN=$(dirname "$actionlint") go install "github.com/rhysd/actionlint/cmd/actionlint@$ACTIONLINT"
helm=$cache/bin/helm-$HELM/helm
[ -x "$helm" ] || GOBIN=$(dirname "$helm") go install "helm.sh/helm/v3/cmd/helm@$HELM"

echo "workflow"
"$actionlint" -shellcheck= .github/workflows/*.yml

echo "version"
version=$(release version)
echo "$version"

echo "package"
npm publish --dry-run --ignore-scripts --access public 2>&1 | grep '^+ lance-gateway@'

echo "chart"
release chart "$folder/chart" registry.example.com/lance-gateway
"$helm" lint --strict --quiet "$folder/chart"
"$helm" package "$folder/chart" --destination "$folder" >/dev/null
"$helm" template catalog "$folder/lance-gateway-$version.tgz" --kube-version 1.33 | grep "image: registry.example.com/lance-gateway:$version" >/dev/null

echo "contract"
release contract "$folder/contract" buf.example.com/owner/lance-namespace
buf build "$folder/contract" -o /dev/null

echo "Python stubs"
release python "$folder/python" "$python/bin/python"
"$python/bin/python" -m build --outdir "$folder/python/dist" "$folder/python" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
"$python/bin/twine" check --strict "$folder"/python/dist/*
"$python/bin/pip" install --quiet --target "$folder/installed" --no-deps "$folder"/python/dist/*.whl
PYTHONPATH=$folder/installed "$python/bin/python" - <<'PYTHON'
import grpc
from lance_gateway_grpc.lance.namespace.v1 import namespace_pb2, service_pb2_grpc

stub = service_pb2_grpc.LanceNamespaceServiceStub(grpc.insecure_channel("localhost:1"))
assert namespace_pb2.ListNamespacesRequest(id=["a"]).id == ["a"] and stub.ListNamespaces
PYTHON

echo "Java stubs"
release java "$folder/java" io.github.example
mvn --batch-mode --quiet --file "$folder/java" package
unzip -l "$folder/java/target/lance-gateway-grpc-$version.jar" | grep lance/namespace/v1/LanceNamespaceServiceGrpc.class >/dev/null
