#!/bin/sh
# Unpacks Debian's arm64 libraries and headers, which make BUILD=arm64 needs, into ROOT; downloads
# stay in FOLDER:
#   sh tests/kernels/arm64_root.sh FOLDER ROOT
set -eu
packages="libc6-dev libgcc-12-dev linux-libc-dev libbpf-dev libcurl4-openssl-dev libssl-dev
    libzstd-dev libjansson-dev libexpat1-dev libdeflate-dev libpcre2-dev libxxhash-dev libinih-dev
    zlib1g-dev libpng-dev libfreetype-dev libpq-dev libh2o-evloop-dev libwslay-dev libiberty-dev
    libseccomp-dev liblzma-dev libelf-dev libdw-dev"
folder=$1
mkdir -p "$folder" "$2"
folder=$(cd "$folder" && pwd)
root=$(cd "$2" && pwd)
# shellcheck source=/dev/null
. "$(dirname "$0")/apt.sh"
[ ! -f "$root/done" ] || exit 0
apt_update arm64
# shellcheck disable=SC2086  # the list is split on purpose
apt_of arm64 apt-get install -y --download-only --no-install-recommends -t bookworm $packages
for package in "$folder"/apt-arm64/archives/*.deb; do
    dpkg-deb -x "$package" "$root"
done
# Absolute symbolic links lead out of ROOT.
find "$root" -type l -lname '/*' | while IFS= read -r link; do
    ln -snf "$root$(readlink "$link")" "$link"
done
touch "$root/done"
