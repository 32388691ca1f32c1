#!/bin/sh
# Starts an S3 server (radosgw.sh) and runs tests with it: those of the object store, those of
# servers with a bucket, and those of the store and of shares that otherwise use a folder.
#   sh tests/s3/run.sh [pytest arguments instead of these tests]
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-/usr/bin/python3}
radosgw=$PWD/tests/s3/radosgw.sh
dir=$(mktemp -d)
trap 'sh "$radosgw" stop "$dir" || true; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
sh "$radosgw" start "$dir"
set -a
# shellcheck disable=SC1091
. "$dir/environment"
set +a
export PERFOLIO_TEST_S3_DIR="$dir"
if [ $# -gt 0 ]; then
    "$python" -m pytest "$@"
    exit
fi
"$python" -m pytest -q --durations=5 tests/s3
cd tests/integration
"$python" -m pytest -q --durations=5 ops/test_s3_servers.py debuginfo/test_debuginfo_servers.py \
    store/test_store.py store/test_store_shares.py store/test_store_metadata.py \
    store/test_store_crash.py ingest/test_ingest_wire.py cli/test_query_cli.py \
    share/test_shares.py share/test_uploads.py share/test_quotas.py ops/test_crash.py
