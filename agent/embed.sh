#!/bin/sh
# Writes assembler that carries what runs in the kernel inside the agent:
#   sh agent/embed.sh build/generated/cpu.bpf.o … > bpf.S
# cpu.bpf.o becomes bpf_cpu_start and bpf_cpu_end.
set -eu
echo '    .section .rodata'
for object in "$@"; do
    name=$(basename "$object" .bpf.o)
    printf '    .balign 16\n    .globl bpf_%s_start, bpf_%s_end\n' "$name" "$name"
    printf 'bpf_%s_start:\n    .incbin "%s"\nbpf_%s_end:\n' "$name" "$object" "$name"
done
echo '    .section .note.GNU-stack,"",@progbits'
