#!/bin/sh
# Installs the Debian 12 packages that Perfolio needs, if they are missing:
#   sh deploy/install-packages.sh SET...      run, build, test, s3 or kernels
# If packages are missing, it needs root or sudo; otherwise it prints nothing and returns at once.
# When run by root, it also creates the user perfolio.
set -eu

run="postgresql-15 libpq5 ca-certificates fonts-dejavu-core"
build="make gcc libc6-dev pkg-config libh2o-evloop-dev libh2o-dev-common libwslay-dev libpq-dev
    libssl-dev libzstd-dev libjansson-dev libexpat1-dev libdeflate-dev libdeflate-tools
    libpcre2-dev libxxhash-dev libinih-dev libcurl4-openssl-dev zlib1g-dev libpng-dev
    libfreetype-dev fonts-dejavu-core
    libiberty-dev libseccomp-dev liblzma-dev libelf-dev libbpf-dev linux-libc-dev clang-14 llvm-14"
test="ccache g++ clang libclang-rt-14-dev clang-format libcmocka-dev chromium-headless-shell
    firefox-esr debootstrap valgrind shellcheck black mandoc curl git openssl perl procps
    python3-pytest python3-pytest-xdist python3-psycopg2 python3-yaml python3-jsonschema llvm
    elfutils libdw-dev debuginfod libarchive-tools binutils dwz xz-utils libc6-dbg ruby"
# For make test-kernels, and a real S3 server for make test-s3.
kernels="qemu-system-x86 qemu-system-arm lld-14"
s3="radosgw ceph-mon ceph-osd ceph-common"

is_node_missing() {
    command -v npm >/dev/null 2>&1 || return 0
    major=$(node --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p')
    [ "${major:-0}" -lt 18 ]
}

wanted=
for set in "$@"; do
    case $set in
    run) wanted="$wanted $run" ;;
    build)
        wanted="$wanted $build"
        # Another Node (18 or newer) serves as well, and would conflict with Debian's.
        if is_node_missing; then wanted="$wanted nodejs npm"; fi
        ;;
    test) wanted="$wanted $test" ;;
    s3) wanted="$wanted $s3" ;;
    kernels) wanted="$wanted $kernels" ;;
    *)
        echo "usage: install-packages.sh run|build|test|s3|kernels..." >&2
        exit 2
        ;;
    esac
done

# One query for all packages; dpkg-query complains about unknown ones, which are simply missing.
# shellcheck disable=SC2086  # the lists are split on purpose
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' $wanted 2>/dev/null |
    sed -n 's/ installed$//p' | tr '\n' ' ')
missing=
for package in $wanted; do
    case " $installed " in
    *" $package "*) ;;
    *) missing="$missing $package" ;;
    esac
done

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        echo "these packages are missing and installing them needs root or sudo:$missing" >&2
        exit 1
    fi
}

if [ -n "$missing" ]; then
    echo "installing:$missing" >&2
    case "$missing " in
    *" postgresql-15 "*)
        # Perfolio runs its own cluster; Debian shall not create and start one named main.
        as_root mkdir -p /etc/postgresql-common/createcluster.d
        echo 'create_main_cluster = false' |
            as_root tee /etc/postgresql-common/createcluster.d/perfolio.conf >/dev/null
        ;;
    esac
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 update
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Use-Pty=0 install --no-install-recommends $missing
fi

# The server's own user: when root starts perfoliod, the part that serves runs as this one.
if [ "$(id -u)" -eq 0 ] && ! getent passwd perfolio >/dev/null; then
    useradd --system --user-group --no-create-home --home-dir /nonexistent \
        --shell /usr/sbin/nologin perfolio
fi
