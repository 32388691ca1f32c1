# shellcheck shell=sh
# Defines apt functions for one architecture with lists, archives and sources in $folder; to be
# sourced. Nothing is installed or configured; apt verifies hashes. Uses the mirrors of this system,
# or DEBIAN_MIRROR and DEBIAN_SECURITY_MIRROR.
mirror_of() { # RELEASE
    # shellcheck disable=SC2016  # apt's own variables
    found=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
        awk -v release="$1" '$2 == release { print $1; exit }')
    [ -n "$found" ] || echo "no mirror of $1 in apt's sources: name one (tests/kernels/apt.sh)" >&2
    echo "$found"
}
mirror=${DEBIAN_MIRROR:-$(mirror_of bookworm)}
security=${DEBIAN_SECURITY_MIRROR:-$(mirror_of bookworm-security)}
keys=/usr/share/keyrings/debian-archive-keyring.gpg

apt_of() { # ARCHITECTURE PROGRAM ARGUMENT...
    home=${folder:?}/apt-$1
    mkdir -p "$home/lists/partial" "$home/archives/partial" "$home/parts"
    : >"$home/status"
    for suite in bullseye bookworm bookworm-backports; do
        echo "deb [signed-by=$keys] $mirror $suite main"
    done >"$home/sources.list"
    for suite in bullseye-security bookworm-security; do
        echo "deb [signed-by=$keys] $security $suite main"
    done >>"$home/sources.list"
    architecture=$1
    program=$2
    shift 2
    "$program" -q -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
        -o Dir::Etc::sourcelist="$home/sources.list" -o Dir::Etc::sourceparts="$home/parts" \
        -o Dir::State="$home" -o Dir::State::Lists="$home/lists" \
        -o Dir::State::status="$home/status" -o Dir::Cache="$home" \
        -o Dir::Cache::archives="$home/archives" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Retries=2 -o pkgCacheFile= -o srcpkgcache= "$@"
}

# Downloads the lists once.
apt_update() { # ARCHITECTURE
    [ -f "$folder/apt-$1/updated" ] || apt_of "$1" apt-get update
    touch "$folder/apt-$1/updated"
}
