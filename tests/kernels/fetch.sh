#!/bin/sh
# Downloads Debian's kernels and unpacks them as FOLDER/NAME/{vmlinuz,config,release}, and a busybox
# for each architecture, FOLDER/busybox-amd64:
#   sh tests/kernels/fetch.sh FOLDER NAME...        5.10 6.1 6.12 5.10-arm64 6.1-arm64 6.12-arm64
set -eu
folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
# shellcheck source=/dev/null
. "$(dirname "$0")/apt.sh"

# The kernel packages of a version, newest first: those without drivers for real hardware.
images_of() { # VERSION ARCHITECTURE
    apt_of "$2" apt-cache pkgnames linux-image-"$1" |
        grep -x "linux-image-$1\.[0-9][0-9a-z.+-]*-cloud-$2" | sort -rV
}

fetch_busybox() { # ARCHITECTURE
    [ ! -f "$folder/busybox-$1" ] || return 0
    rm -rf "$folder/busybox"
    mkdir -p "$folder/busybox"
    (cd "$folder/busybox" && apt_of "$1" apt-get download busybox-static/bookworm)
    dpkg-deb -x "$folder/busybox/"*.deb "$folder/busybox/files"
    mv "$folder/busybox/files/bin/busybox" "$folder/busybox-$1"
    rm -r "$folder/busybox"
}

fetch() { # NAME
    version=${1%-arm64}
    architecture=$([ "$version" = "$1" ] && echo amd64 || echo arm64)
    [ ! -f "$folder/$1/release" ] || return 0
    apt_update "$architecture"
    fetch_busybox "$architecture"
    rm -rf "${folder:?}/$1"
    mkdir -p "$folder/$1/package"
    # A mirror may lack a file of its list.
    for package in $(images_of "$version" "$architecture"); do
        (cd "$folder/$1/package" && apt_of "$architecture" apt-get download "$package") && break
    done
    [ -n "$(ls "$folder/$1/package")" ] || {
        echo "no image of Linux $version for $architecture" >&2
        return 1
    }
    dpkg-deb -x "$folder/$1/package/"*.deb "$folder/$1/files"
    mv "$folder/$1/files/boot/vmlinuz-"* "$folder/$1/vmlinuz"
    mv "$folder/$1/files/boot/config-"* "$folder/$1/config"
    rm -r "$folder/$1/files" "$folder/$1/package"
    echo "${package#linux-image-}" >"$folder/$1/release"
}

for name in "$@"; do
    fetch "$name"
done
