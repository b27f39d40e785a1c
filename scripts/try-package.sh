#!/usr/bin/env bash
# Packs the project, installs the package into an empty folder, starts it there and asks it something; then installs it
# without its optional packages and does so again.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts=$PWD/scripts
# Elsewhere than in a container, this is the default.
export LANCE_GATEWAY_DRAIN_DELAY=0s
export PATH="$PWD/node_modules/.bin:$PATH"

folder=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; rm -rf "$folder"' EXIT

npm pack --silent --pack-destination "$folder" >/dev/null
cd "$folder"
npm init --yes >/dev/null
npm install --silent --ignore-scripts --no-audit --no-fund ./lance-gateway-*.tgz

grep -q '"bomFormat": "CycloneDX"' node_modules/lance-gateway/dist/sbom.cdx.json
./node_modules/.bin/lance-gateway --version
./node_modules/.bin/lance-gateway --help >/dev/null
./node_modules/.bin/lance-gateway serve --port 0 >printed &
server=$!
uri=$(bash "$scripts/rest-address.sh" printed)
cat printed
curl --fail --silent --show-error "$uri/v1/namespace/%24/list"
curl --fail --silent --show-error --output /dev/null "$uri/console/"
echo
curl --fail --silent --show-error "$uri/openapi.json" "${uri}/docs" "${uri}/docs/docs.js" "${uri}/docs/docs.css" >/dev/null
bash "$scripts/try-image.sh" "$folder"
bash "$scripts/try-light-package.sh" "$folder"/lance-gateway-*.tgz "$uri"
kill -TERM "$server"
wait "$server"
echo "the packed package starts, answers and ends cleanly"
