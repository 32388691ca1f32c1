#include "agent/kernel/kernel_features.h"

#include "lib/base/err.h"
#include "lib/base/os.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <unistd.h>

#define TYPES_FILE "/sys/kernel/btf/vmlinux"

/* Tries to load a perf-event program that refers to a hash map without preallocation. Kernels
 * before 6.1 refuse it. It is not a tracepoint program, because these kernels would load that and
 * write a warning to their log. */
static bool can_use_unallocated_maps(void)
{
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_NO_PREALLOC);
    fd_auto table_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "probe", 4, 4, 1, &options);
    if (table_fd < 0)
        return false;
    const struct bpf_insn program[] = {
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = BPF_REG_1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = table_fd},
        {.code = 0}, /* the second half of the load, which is 16 bytes long */
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    fd_auto program_fd = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "GPL", program,
                                       sizeof(program) / sizeof(*program), NULL);
    return program_fd >= 0;
}

static bool has_helper(enum bpf_func_id helper)
{
    return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, NULL) == 1;
}

void kernel_features_find(struct kernel_features *ret_features)
{
    *ret_features = (struct kernel_features){
        .has_types = access(TYPES_FILE, R_OK) == 0,
        .has_ring = libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1,
        .has_registers = has_helper(BPF_FUNC_task_pt_regs),
        .has_loop = has_helper(BPF_FUNC_loop),
        .has_unallocated_maps = can_use_unallocated_maps(),
    };
}

enum err_code kernel_features_check(const struct kernel_features *features, struct err *err)
{
    if (!features->has_types)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel has no type information (" TYPES_FILE
                       "): use one with CONFIG_DEBUG_INFO_BTF");
    if (!features->has_ring)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel has no BPF ring buffers: use Linux 5.8 or later (5.10 or later "
                       "is tested)");
    return ERR_NONE;
}
