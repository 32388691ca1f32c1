#include "agent/ops/doctor.h"

#include "agent/agent.h"
#include "agent/kernel/kernel_features.h"
#include "agent/kernel/perf_event.h"
#include "agent/process/capabilities.h"
#include "agent/symbols/kernel_symbols.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MAY_LOAD (CAPABILITY_BIT(CAPABILITY_BPF) | CAPABILITY_BIT(CAPABILITY_SYS_ADMIN))

static const struct {
    enum capability number;
    const char *name;
    const char *purpose;
} rights[] = {
    {CAPABILITY_BPF, "CAP_BPF", "to load programs into the kernel"},
    {CAPABILITY_PERFMON, "CAP_PERFMON", "to sample all processes"},
    {CAPABILITY_SYS_PTRACE, "CAP_SYS_PTRACE",
     "to see the mappings and files of other users' processes"},
    {CAPABILITY_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH",
     "to read programs that only their owners may read"},
    {CAPABILITY_SYSLOG, "CAP_SYSLOG", "to name the kernel's functions"},
};

static void report_need(bool is_ok, const char *what, const char *remedy)
{
    printf("%-7s %s%s%s\n", is_ok ? "ok" : "missing", what, is_ok || !remedy[0] ? "" : ": ",
           is_ok ? "" : remedy);
}

static void report_option(bool is_present, const char *what, const char *remark)
{
    printf("%-7s %s%s\n", is_present ? "ok" : "note", what, is_present ? "" : remark);
}

static void check_rights(void)
{
    char text[160];
    const uint64_t found = capabilities_effective();
    for (size_t i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
        snprintf(text, sizeof(text), "%s, %s", rights[i].name, rights[i].purpose);
        report_need(found >> rights[i].number & 1, text, "run as root or grant it");
    }
}

static void check_kernel(void)
{
    struct utsname host;
    struct err err = {0};
    char text[256];
    if (uname(&host))
        return;
    snprintf(text, sizeof(text), "Linux %s", host.release);
    report_need(!agent_check_kernel(host.release, &err), text, err.message);
}

static void check_proc(void)
{
    struct err err = {0};
    report_need(!agent_check_proc(&err), "/proc of this PID namespace", err.message);
}

/* Features that older kernels lack, and what the agent does without them. */
static void check_features(void)
{
    struct kernel_features features;
    kernel_features_find(&features);
    report_need(features.has_types, "the kernel's own types (BTF)",
                "a kernel with CONFIG_DEBUG_INFO_BTF is needed");
    if (!(capabilities_effective() & MAY_LOAD)) {
        report_option(false, "other features of the kernel",
                      " cannot be determined without CAP_BPF");
        return;
    }
    report_need(features.has_ring, "BPF ring buffers", "Linux 5.8 or later is needed");
    report_option(features.has_loop, "bpf_loop",
                  " is missing (Linux 5.17 has it): stacks are unwound in bounded loops");
    report_option(features.has_registers, "bpf_task_pt_regs",
                  " is missing (Linux 5.15 has it): registers are read from the kernel's stack");
    report_option(features.has_unallocated_maps, "hash maps without preallocation at perf events",
                  " are missing (Linux 6.1 has them): at most 16,384 processes are known");
}

/* The result of perf_event_open. If it is not permitted, the kernel does not reveal what it
 * supports. */
static void report_event(int fd, const char *what, const char *remark)
{
    const bool is_refused = fd < 0 && (errno == EACCES || errno == EPERM);
    report_option(fd >= 0, what,
                  is_refused ? ": not known, since perf_event_open is refused (see above)"
                             : remark);
}

static void check_events(void)
{
    fd_auto clock_fd = perf_event_open_sampler(0, 19, EVENT_CPU);
    report_need(clock_fd >= 0, "a timer of the kernel for sampling",
                "perf_event_open is refused: CAP_PERFMON, and a seccomp profile that allows it");
    fd_auto cycles_fd = perf_event_open_sampler(0, 19, EVENT_CYCLES);
    report_event(cycles_fd, "the processor's cycle counter",
                 " is missing: perfolio record --event=cycles is refused");
    fd_auto build_id_fd = perf_event_open_sideband(0, true);
    report_event(build_id_fd, "build ids with mappings",
                 " are missing (Linux 5.12 has them); they are read from the files");
}

static void check_symbols(void)
{
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    /* An address above all others makes it read the file. */
    const bool is_found = kernel_symbols_find(symbols, UINT64_MAX, clock_monotonic_ns(), &symbol) ||
                          kernel_symbols_count(symbols) > 0;
    report_need(is_found, "names of the kernel's functions",
                "CAP_SYSLOG, and kernel.kptr_restrict of 0 or 1");
    kernel_symbols_destroy(symbols);
}

/* Reports the interpreters that run now: which are read, and why others are not. */
static void report_interpreters(const struct agent_counts *counts)
{
    buf_auto text;
    buf_init(&text, 4096);
    interpreter_counts_append(&counts->interpreters, &text);
    bool is_ok = true;
    for (uint32_t kind = 0; kind < INTERPRETER_KINDS; kind++) {
        for (uint32_t i = INTERPRETER_REFUSED_VERSION; i < INTERPRETER_OUTCOME_COUNT; i++)
            is_ok &= counts->interpreters.outcomes[kind][i] == 0;
    }
    printf("%-7s running interpreters: %.*s\n", is_ok ? "ok" : "note",
           text.size ? (int)text.size : 4, text.size ? (const char *)text.data : "none");
}

static void report_methods(const struct agent *agent)
{
    struct agent_counts counts;
    agent_count(agent, &counts);
    if (counts.loop_error)
        printf("%-7s this kernel's verifier refuses the program with bpf_loop (%s): stacks are "
               "unwound in bounded loops\n",
               "note", strerror(counts.loop_error));
    report_interpreters(&counts);
}

static bool check_all_together(void)
{
    const struct agent_options options = {.form = WINDOW_FOR_PEOPLE, .frequency_hz = 19};
    agent_auto agent = NULL;
    struct err err = {0};
    enum err_code code = agent_open(&options, &agent, &err);
    if (!code)
        code = agent_start(agent, &err);
    report_need(!code, "sampling", err.message);
    if (!code)
        report_methods(agent);
    return !code;
}

bool doctor_run(void)
{
    check_rights();
    check_kernel();
    check_proc();
    check_features();
    check_events();
    check_symbols();
    return check_all_together();
}
