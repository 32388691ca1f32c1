#!/bin/sh
# Downloads arm64 packages of the running distribution and unpacks them below FOLDER:
#   arm64_files.sh FOLDER
# The lists of arm64 packages are kept in FOLDER; nothing is installed or configured.
set -eu
packages="libc6 libstdc++6 libgcc-s1 libssl3 libcrypto++8 python3.11-minimal perl-base coreutils
    bash libsqlite3-0 libcurl4 libzstd1 postgresql-15 libgnutls30 libglib2.0-0"
folder=$1
mkdir -p "$folder/lists/partial" "$folder/archives/partial" "$folder/files"
: >"$folder/status"
here=$(cd "$folder" && pwd)
apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$here" \
        -o Dir::State::Lists="$here/lists" -o Dir::State::status="$here/status" \
        -o Dir::Cache="$here" -o Dir::Cache::archives="$here/archives" -o APT::Sandbox::User=root \
        -o pkgCacheFile= -o srcpkgcache= "$@"
}
if [ ! -f "$folder/done" ]; then
    apt update
    (
        cd "$folder/archives"
        # shellcheck disable=SC2086  # the list is split on purpose
        apt download $packages
    )
    for package in "$folder"/archives/*.deb; do
        dpkg-deb -x "$package" "$folder/files"
    done
    touch "$folder/done"
fi
