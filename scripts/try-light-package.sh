#!/usr/bin/env bash
# Installs the packed package without its optional packages, as programs do that only call gateways, and uses it on a gateway.
#   bash scripts/try-light-package.sh PACKAGE URI
set -euo pipefail
package=$1 uri=$2
scripts=$(cd "$(dirname "$0")" && pwd)

folder=$(mktemp -d)
trap 'kill "${proxy:-0}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --ignore-scripts --no-audit --no-fund --omit=optional "$package"
test ! -e node_modules/@lancedb
test ! -e node_modules/parquet-wasm

cat >session.mjs <<'SESSION'
import assert from "node:assert/strict";
import { connect } from "lance-gateway/client";

const [name, uri] = process.argv.slice(2);
const where = name === "grpc" ? { address: new URL(uri).host } : { uri };
{
  await using ns = await connect(name, where);
  await ns.createTable(`light_${name}`, [{ id: 1, vector: [1, 2] }, { id: 2, vector: [3, 4] }]);
  const rows = await ns.queryTable({ id: [`light_${name}`], k: 10, vector: [1, 2], columns: ["id"] }).toArray();
  assert.equal(rows.length, 2);
  await assert.rejects(ns.openTable(`light_${name}`), /openTable needs the package @lancedb\/lancedb, which is not installed/);
}
await assert.rejects(connect("dir", { root: "tables" }), /npm install @lancedb\/lancedb@\d/);
SESSION
for name in rest grpc connect; do node session.mjs "$name" "$uri"; done

# The line that a command without its package ends with.
refuse() {
  local expected=$1
  shift
  if ./node_modules/.bin/lance-gateway "$@" 2>refused; then return 1; fi
  test "$(wc -l <refused)" -eq 1
  grep -q "needs the package $expected, which is not installed; install it with npm install $expected@" refused
}
refuse @lancedb/lancedb serve --port 0
touch people.parquet
refuse parquet-wasm import people.parquet people --uri "$uri"

./node_modules/.bin/lance-gateway serve --port 0 --uri "$uri" >printed &
proxy=$!
proxied=$(bash "$scripts/rest-address.sh" printed)
curl --fail --silent --show-error "$proxied/v1/namespace/%24/table/list" | grep -q light_rest
kill -TERM "$proxy"
wait "$proxy"
echo "the package without its optional packages has $(du -sm node_modules | cut -f1) MB, calls gateways and passes calls on"
