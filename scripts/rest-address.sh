#!/usr/bin/env bash
# Prints the address of the REST API that a starting gateway prints, without /v1, once it is there.
#   bash scripts/rest-address.sh PRINTED    PRINTED is the file with the gateway's standard output
set -euo pipefail
for _ in $(seq 100); do
  address=$(sed -n 's|^ *REST *\(http://[^ ]*\)/v1$|\1|p' "$1")
  if [ -n "$address" ]; then
    echo "$address"
    exit
  fi
  sleep 0.1
done
echo "the gateway has printed no address within ten seconds" >&2
exit 1
