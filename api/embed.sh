#!/bin/sh
# Writes assembler that puts files into the server (see api/core/assets.h): web/dist, the SQL
# migrations, the OpenAPI description and the font of preview pictures. Run from the root of the
# source tree; the table is sorted by name in byte order, since assets.c searches it by halves.
# $1: the OpenAPI description, compressed by gzip.
set -eu
LC_ALL=C
export LC_ALL
font=${PERFOLIO_FONT:-/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf}

# One line per file: name in the table, a tab, path on disk.
list_files() {
    if [ -d web/dist ]; then
        find web/dist -type f ! -name '.*' | while IFS= read -r path; do
            printf 'web/%s\t%s\n' "${path#web/dist/}" "$path"
        done
    fi
    for path in api/migrations/*.sql; do
        [ -f "$path" ] && printf 'migrations/%s\t%s\n' "$(basename "$path")" "$path"
    done
    printf 'openapi.yaml\tapi/openapi.yaml\nopenapi.yaml.gz\t%s\n' "$1"
    if [ ! -f "$font" ]; then
        echo "embed.sh: the font $font is missing (Debian: fonts-dejavu-core)" >&2
        exit 1
    fi
    printf 'DejaVuSans.ttf\t%s\n' "$font"
}

tab=$(printf '\t')
files=$(list_files "$1" | sort -t "$tab" -k 1,1)

echo '    .section .note.GNU-stack,"",%progbits'
echo '    .section .rodata'
count=0
while IFS="$tab" read -r name path; do
    printf '    .balign 16\n.Lbytes%d:\n    .incbin "%s"\n.Lend%d:\n    .byte 0\n' \
        "$count" "$path" "$count"
    printf '.Lname%d:\n    .asciz "%s"\n' "$count" "$name"
    count=$((count + 1))
done <<LIST
$files
LIST
# The table holds addresses, which a position-independent program has relocated at its start.
echo '    .section .data.rel.ro,"aw"'
echo '    .balign 8'
echo '    .globl embedded_assets'
echo 'embedded_assets:'
row=0
while [ "$row" -lt "$count" ]; do
    printf '    .quad .Lname%d, .Lbytes%d, .Lend%d - .Lbytes%d\n' "$row" "$row" "$row" "$row"
    row=$((row + 1))
done
echo '    .globl embedded_asset_count'
echo 'embedded_asset_count:'
printf '    .quad %d\n' "$count"
