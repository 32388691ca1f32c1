#!/bin/sh
# A real S3 server for tests: radosgw with one monitor and one storage daemon, from the
# distribution's packages (sh deploy/install-packages.sh s3), on free ports of 127.0.0.1.
#   sh tests/s3/radosgw.sh start DIR    new, with all files in DIR; writes settings of clients to
#                                       DIR/environment; takes about 20 s
#   sh tests/s3/radosgw.sh kill DIR     kills radosgw and the storage daemon with SIGKILL
#   sh tests/s3/radosgw.sh resume DIR   starts them again, on the same ports
#   sh tests/s3/radosgw.sh stop DIR     ends all processes; DIR stays
# RADOSGW_STORE=memstore keeps objects in memory; the default, bluestore, keeps them in a sparse
# file of 4 GiB, so that they survive SIGKILL.
set -eu
action=${1:?start, kill, resume or stop} dir=${2:?a folder}
store=${RADOSGW_STORE:-bluestore}
access_key=perfolioaccess secret_key=perfolio/secret+key bucket=perfolio-test region=us-east-1
empty_hash=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855

free_ports() {
    /usr/bin/python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))'
}

write_config() {
    cat >"$dir/ceph.conf" <<END
[global]
fsid = $fsid
mon_host = v1:127.0.0.1:$monitor_port
ms_bind_msgr2 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $dir
admin_socket =
pid_file = $dir/\$name.pid
log_file = $dir/\$name.log
log_to_stderr = false
mon_data = $dir/mon
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_data = $dir/osd
osd_objectstore = $store
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
memstore_device_bytes = 4294967296
bluestore_block_size = 4294967296
bluestore_cache_autotune = false
bluestore_cache_size = 67108864
rgw_data = $dir/rgw
rgw_dns_name = localhost
rgw_frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw_enable_usage_log = false
END
}

write_environment() {
    cat >"$dir/environment" <<END
PERFOLIO_TEST_S3_ENDPOINT=http://127.0.0.1:$port
PERFOLIO_TEST_S3_BUCKET=$bucket
PERFOLIO_TEST_S3_ACCESS_KEY=$access_key
PERFOLIO_TEST_S3_SECRET_KEY=$secret_key
PERFOLIO_TEST_S3_REGION=$region
END
}

# Runs a command; prints its output only if all fails.
quietly() {
    "$@" >>"$dir/setup.log" 2>&1
}

# The storage daemon exits if the monitor does not know its own id yet.
is_storage_up() {
    pid=$(cat "$dir/osd.0.pid" 2>/dev/null || true)
    if [ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null; then
        quietly ceph-osd -i 0
    fi
    ceph osd stat | grep ' 1 up'
}

responds() {
    curl -sS -o /dev/null "http://127.0.0.1:$port/"
}

start_storage() {
    wait_until is_storage_up
    quietly radosgw -n client.rgw.a
    wait_until responds
}

# Waits until the command succeeds, at most two minutes.
wait_until() {
    end=$(($(date +%s) + 120))
    until "$@" >"$dir/wait.log" 2>&1; do
        if [ "$(date +%s)" -ge "$end" ]; then
            echo "radosgw did not start: $*; see $dir/*.log" >&2
            tail -n 5 "$dir"/*.log >&2
            exit 1
        fi
        sleep 0.2
    done
}

make_bucket() {
    curl -fsS -o /dev/null -X PUT --user "$access_key:$secret_key" \
        --aws-sigv4 "aws:amz:$region:s3" -H "x-amz-content-sha256: $empty_hash" \
        "http://127.0.0.1:$port/$bucket"
}

start() {
    mkdir -p "$dir/mon" "$dir/osd" "$dir/rgw"
    dir=$(cd "$dir" && pwd)
    export CEPH_CONF="$dir/ceph.conf"
    fsid=$(cat /proc/sys/kernel/random/uuid)
    ports=$(free_ports)
    monitor_port=${ports% *} port=${ports#* }
    write_config
    monmaptool --create --fsid "$fsid" --addv a "v1:127.0.0.1:$monitor_port" "$dir/monmap" \
        >"$dir/setup.log"
    trap 'if [ $? -ne 0 ]; then cat "$dir/setup.log" >&2; fi' EXIT
    quietly ceph-mon -i a --mkfs --monmap "$dir/monmap"
    quietly ceph-mon -i a
    osd_uuid=$(cat /proc/sys/kernel/random/uuid)
    # A new monitor refuses commands for a moment; a repeated "osd new" changes nothing.
    wait_until ceph osd new "$osd_uuid"
    quietly ceph-osd -i 0 --mkfs --osd-uuid "$osd_uuid"
    quietly ceph osd crush add osd.0 1.0 root=default host=h
    start_storage
    quietly radosgw-admin user create --uid=test --display-name=test \
        --access-key="$access_key" --secret-key="$secret_key"
    wait_until make_bucket
    write_environment
}

# Sends a signal to the given daemons and waits until they have ended.
end() {
    signal=$1
    shift
    for name in "$@"; do
        pid=$(cat "$dir/$name.pid" 2>/dev/null || true)
        [ -n "$pid" ] || continue
        kill -s "$signal" "$pid" 2>/dev/null || true
        rm -f "$dir/$name.pid"
        end=$(($(date +%s) + 30))
        while kill -0 "$pid" 2>/dev/null; do
            if [ "$(date +%s)" -ge "$end" ]; then
                kill -s KILL "$pid" || true
            fi
            sleep 0.1
        done
    done
}

resume() {
    dir=$(cd "$dir" && pwd)
    export CEPH_CONF="$dir/ceph.conf"
    # shellcheck disable=SC1091
    . "$dir/environment"
    port=${PERFOLIO_TEST_S3_ENDPOINT##*:}
    start_storage
}

case $action in
start) start ;;
kill) end KILL client.rgw.a osd.0 ;;
resume) resume ;;
stop) end TERM client.rgw.a osd.0 mon.a ;;
*)
    echo "usage: radosgw.sh start|kill|resume|stop DIR" >&2
    exit 2
    ;;
esac
