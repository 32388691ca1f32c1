#!/bin/sh
# Runs both commands of the README in an empty Debian 12, as root: debootstrap makes a minimal
# system in a temporary folder, a clean clone goes to /root/perfolio in it, and there
#   1. `make run` until https://localhost:7443/readyz responds, then the upload command that it
#      printed;
#      SIGTERM must end all processes, and a second start must take less than two seconds;
#   2. `make test`.
# Uses the apt mirrors, proxies and certificate authorities of this system. Needs root, debootstrap,
# 5 GB in FRESH_DIR (/var/tmp) and port 7443. FRESH_KEEP=1 keeps the folder, FRESH_TEST=no skips 2.
set -eu
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
    echo "tests/fresh.sh needs root (debootstrap, chroot)" >&2
    exit 1
fi
command -v debootstrap >/dev/null || sh deploy/install-packages.sh test

# Everything below runs in new namespaces, so mounts and processes end with this script.
if [ -z "${FRESH_INSIDE:-}" ]; then
    root=$(mktemp -d "${FRESH_DIR:-/var/tmp}/perfolio-fresh.XXXXXX")
    chmod 755 "$root" # the users inside pass through it
    status=0
    FRESH_INSIDE=$root unshare --mount --pid --fork --kill-child --propagation private \
        sh tests/fresh.sh || status=$?
    [ -n "${FRESH_KEEP:-}" ] || rm -rf --one-file-system "$root"
    exit "$status"
fi
root=$FRESH_INSIDE

report() {
    echo "fresh: $(date -u +%T) $*"
}
fail() {
    report "FAILED: $*"
    grep -A 12 -E '^ *(not ok|FAILED)' "$root/run.log" 2>/dev/null | head -n 200 || true
    tail -n 40 "$root/run.log" 2>/dev/null || true
    exit 1
}

# The Debian mirrors of this system, as one-line sources: "site release component".
# shellcheck disable=SC2016  # apt's own variables
sources=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    grep -E ' bookworm[^ ]* ' | sort -u || true)
mirror=$(echo "$sources" | sed -n 's/^\([^ ]*\) bookworm main$/\1/p' | head -n 1)
proxy=$(apt-config dump --format '%v%n' Acquire::http::Proxy)
if [ -n "$proxy" ]; then export http_proxy="$proxy"; fi

report "debootstrap from ${mirror:-the default mirror}"
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" && rm -f "$root.log" && fail "debootstrap"; }
rm -f "$root.log"
if [ -n "$sources" ]; then echo "$sources" | sed 's/^/deb /' >"$root/etc/apt/sources.list"; fi
apt-config dump | grep -E '^Acquire::(http|https|ftp)::' >"$root/etc/apt/apt.conf.d/99host" || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/hosts "$root/etc/hosts"
# The certificate authorities of this system, in case a proxy to the npm registry needs them.
mkdir -p "$root/usr/local/share/perfolio-fresh"
if [ -f /etc/ssl/certs/ca-certificates.crt ]; then
    cp -L /etc/ssl/certs/ca-certificates.crt "$root/usr/local/share/perfolio-fresh/ca.crt"
fi

mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys" 2>/dev/null || true
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" 2>/dev/null || true
git clone -q --no-hardlinks . "$root/root/perfolio"

# A clean environment, as after login, except for a proxy and the certificates.
become_inside() {
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LANG=C.UTF-8 ${http_proxy:+"http_proxy=$http_proxy"} \
        ${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
        NODE_EXTRA_CA_CERTS=/usr/local/share/perfolio-fresh/ca.crt \
        chroot "$root" sh -c "cd /root/perfolio && $1"
}
inside() {
    (become_inside "$1")
}
# The README's commands need make, and cloning needs git.
inside 'apt-get -q update && apt-get -q -y install --no-install-recommends make git' \
    >"$root/run.log" 2>&1 || fail "installing make"

# start COMMAND SECONDS: runs COMMAND inside until the server responds.
start() {
    : >"$root/run.log"
    become_inside "exec $1" >"$root/run.log" 2>&1 &
    pid=$!
    waited=0
    while ! grep -q '^Perfolio is ready' "$root/run.log"; do
        kill -0 "$pid" 2>/dev/null || fail "$1 has ended"
        waited=$((waited + 1))
        [ "$waited" -lt $(($2 * 10)) ] || fail "$1 was not ready in $2 s"
        sleep 0.1
    done
    curl -sSf --cacert "$root/root/perfolio/perfolio-data/tls/ca.crt" \
        https://localhost:7443/readyz >/dev/null || fail "/readyz does not respond"
}
stop() {
    kill -TERM "$pid"
    wait "$pid" || true
    [ ! -e "$root/root/perfolio/perfolio-data/pg/postmaster.pid" ] ||
        fail "PostgreSQL was not stopped"
    grep -q 'all processes have ended' "$root/run.log" || fail "no clean end"
}

report "make run"
begin=$(date +%s)
start "make run" 1200
report "make run responded after $(($(date +%s) - begin)) s; pushing with the line it printed"
printf 'main;work 3\nmain;rest 1\n' >"$root/tmp/fresh.folded"
push=$(sed -n '/Push a profile/,/push cpu.pb.gz/p' "$root/run.log" |
    sed 's/^ *Push a profile *//; s/cpu\.pb\.gz/\/tmp\/fresh.folded/')
link=$(inside "$push" 2>>"$root/run.log") || fail "the printed line does not work: $push"
curl -sSf --cacert "$root/root/perfolio/perfolio-data/tls/ca.crt" "$link" | grep -q '<html' ||
    fail "$link shows no page"
curl -sSf --cacert "$root/root/perfolio/perfolio-data/tls/ca.crt" "$link/raw" |
    cmp - "$root/tmp/fresh.folded" || fail "$link/raw differs"
stop
report "second start"
begin=$(date +%s%N)
start "build/release/perfoliod serve --data-dir perfolio-data --listen localhost:7443" 30
duration=$((($(date +%s%N) - begin) / 1000000))
report "second start took $duration ms"
[ "$duration" -lt 2000 ] || fail "the second start took $duration ms"
curl -sSf --cacert "$root/root/perfolio/perfolio-data/tls/ca.crt" "$link/raw" |
    cmp - "$root/tmp/fresh.folded" || fail "$link/raw is lost"
stop

if [ "${FRESH_TEST:-yes}" != no ]; then
    report "make test"
    begin=$(date +%s)
    inside "make test" >"$root/run.log" 2>&1 || fail "make test"
    tail -n 1 "$root/run.log" | grep -Eq '^[0-9]+ passed, 0 failed' || fail "make test"
    report "make test took $(($(date +%s) - begin)) s: $(tail -n 1 "$root/run.log")"
fi
report "passed"
