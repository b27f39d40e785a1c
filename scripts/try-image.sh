#!/usr/bin/env bash
# Runs the steps of deploy/Dockerfile in a folder, and then its program as the image does: as user 1000, who may write
# nothing except the data and temporary files.
#   bash scripts/try-image.sh PACKED    PACKED is the folder with the packed package
# Needs libjemalloc2, which the image has.
set -euo pipefail
packed=$1
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'kill "${server:-0}" 2>/dev/null || true; cd /; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
app=$folder/app
mkdir -p "$app" "$folder/data" "$folder/tmp"
cp package.json package-lock.json .npmrc "$app"
node deploy/image.mjs dependencies "$app"
node deploy/image.mjs program "$packed" "$app"
# The user may not reach the folder in which Node is installed.
cp -L "$(command -v node)" "$folder/node"
for name in $(node -p 'Object.keys(require("./package.json").peerDependencies).join(" ")'); do
  test -e "$app/node_modules/$name/package.json"
done
test ! -e "$app/node_modules/typescript"
test ! -e "$app/node_modules/onnxruntime-node"

chmod -R a-w,a+rX "$folder"
as_user=()
if [ "$(id -u)" -eq 0 ]; then
  chown -R 1000:1000 "$folder/data" "$folder/tmp"
  as_user=(setpriv --reuid=1000 --regid=1000 --clear-groups)
fi
chmod u+w "$folder/data" "$folder/tmp"

allocator=$(sed -n 's/^ *MALLOC_CONF=\([^ ]*\).*/\1/p' deploy/Dockerfile)
port=$(node -e 'const s = require("net").createServer().listen(0, () => { console.log(s.address().port); s.close(); })')
cd "$folder/data"
run=(
  env -i TMPDIR="$folder/tmp" LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF="$allocator" NODE_ENV=production
  LANCE_GATEWAY_HOST=0.0.0.0 LANCE_GATEWAY_PORT="$port" LANCE_GATEWAY_DRAIN_DELAY=0s
  "${as_user[@]}" "$folder/node" "$app/bin/lance-gateway.js"
)
if "${run[@]}" serve 2>"$folder/tmp/refused"; then exit 1; fi
grep -q 'use --auth api-key, or --insecure' "$folder/tmp/refused"
# The allocator prints options that it does not know.
if grep -q jemalloc "$folder/tmp/refused"; then exit 1; fi
if "${run[@]}" ready 2>/dev/null; then exit 1; fi

"${run[@]}" serve --insecure >"$folder/tmp/printed" &
server=$!
for _ in $(seq 100); do
  "${run[@]}" ready 2>/dev/null && break
  sleep 0.1
done
curl --fail --silent --show-error -H 'content-type: application/json' -d '{}' "http://127.0.0.1:$port/v1/namespace/demo/create" >/dev/null
test -d lance-data/data/__manifest
grep -q libjemalloc "/proc/$server/maps"
kill -TERM "$server"
wait "$server"
echo "the program of the image has $(du -sm "$app" | cut -f1) MB, and runs as a user who may not write it"
