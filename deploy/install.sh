#!/bin/sh
# make install: copies the built files to DESTDIR and PREFIX.
#   sh deploy/install.sh BUILD_FOLDER DESTDIR PREFIX
# Programs look for each other in their own folder, so any DESTDIR works. An existing settings file
# is not replaced.
set -eu
cd "$(dirname "$0")/.."
if [ $# -ne 3 ]; then
    echo "usage: install.sh BUILD_FOLDER DESTDIR PREFIX" >&2
    exit 2
fi
built=$1 prefix=$3
target=$2$3
settings=$2/etc/perfolio/perfolio.ini

install -d "$target/bin" "$target/share/man/man1" "$target/share/man/man8" \
    "$target/share/bash-completion/completions" "$target/share/zsh/site-functions" \
    "$target/share/fish/vendor_completions.d" "$target/share/doc/perfolio" \
    "$target/lib/systemd/system" "$target/lib/sysusers.d" "$2/etc/perfolio"
install -m 755 "$built/perfoliod" "$built/perfolio" "$built/perfolio-symbolize" \
    "$built/perfolio-agent" "$target/bin/"
install -m 644 deploy/man/*.1 "$target/share/man/man1/"
install -m 644 deploy/man/*.8 "$target/share/man/man8/"
install -m 644 deploy/completion/perfolio.bash "$target/share/bash-completion/completions/perfolio"
install -m 644 deploy/completion/_perfolio "$target/share/zsh/site-functions/_perfolio"
install -m 644 deploy/completion/perfolio.fish "$target/share/fish/vendor_completions.d/"
install -m 644 deploy/completion/perfolio-agent.bash \
    "$target/share/bash-completion/completions/perfolio-agent"
install -m 644 deploy/completion/_perfolio-agent "$target/share/zsh/site-functions/"
install -m 644 deploy/completion/perfolio-agent.fish "$target/share/fish/vendor_completions.d/"
install -m 644 deploy/kubernetes/perfolio-agent.yaml "$target/share/doc/perfolio/"
install -m 644 deploy/prometheus-rules.yaml deploy/perfolio.ini README.md LICENSE \
    web/dist/licenses.txt "$target/share/doc/perfolio/"
install -m 644 deploy/perfolio.sysusers "$target/lib/sysusers.d/perfolio.conf"
for unit in perfoliod perfolio-agent; do
    sed "s|@PREFIX@|$prefix|g" "deploy/$unit.service" >"$target/lib/systemd/system/$unit.service"
    chmod 644 "$target/lib/systemd/system/$unit.service"
done
[ -e "$settings" ] || install -m 640 deploy/perfolio.ini "$settings"
