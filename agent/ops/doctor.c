#include "agent/ops/doctor.h"

#include "agent/agent.h"
#include "agent/kernel/kernel_features.h"
#include "agent/kernel/perf_event.h"
#include "agent/process/capabilities.h"
#include "agent/symbols/kernel_symbols.h"
#include "lib/base/clock.h"
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

static void say(bool is_fine, const char *what, const char *remedy)
{
    printf("%-7s %s%s%s\n", is_fine ? "ok" : "missing", what, is_fine || !remedy[0] ? "" : ": ",
           is_fine ? "" : remedy);
}

static void note(bool is_there, const char *what, const char *remark)
{
    printf("%-7s %s%s\n", is_there ? "ok" : "note", what, is_there ? "" : remark);
}

static void check_rights(void)
{
    char text[160];
    const uint64_t found = capabilities_effective();
    for (size_t i = 0; i < sizeof(rights) / sizeof(*rights); i++) {
        snprintf(text, sizeof(text), "%s, %s", rights[i].name, rights[i].purpose);
        say(found >> rights[i].number & 1, text, "run as root or grant it");
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
    say(!agent_check_kernel(host.release, &err), text, err.message);
}

static void check_proc(void)
{
    struct err err = {0};
    say(!agent_check_proc(&err), "/proc of this PID namespace", err.message);
}

/* What older kernels lack and what is done without it. */
static void check_features(void)
{
    struct kernel_features features;
    kernel_features_find(&features);
    say(features.has_types, "the kernel's own types (BTF)",
        "a kernel with CONFIG_DEBUG_INFO_BTF is needed");
    if (!(capabilities_effective() & MAY_LOAD)) {
        note(false, "other features of the kernel", " are not known without CAP_BPF");
        return;
    }
    say(features.has_ring, "ring buffers of programs", "Linux 5.8 or later is needed");
    note(features.has_loop, "bpf_loop",
         " is not there (Linux 5.17 has it): stacks are walked by bounded loops");
    note(features.has_registers, "bpf_task_pt_regs",
         " is not there (Linux 5.15 has it): registers are read from the kernel's stack");
    note(features.has_growing_tables, "tables that grow, at perf events",
         " are not there (Linux 6.1 has them): at most 16,384 processes are known");
}

/* What perf_event_open said: a kernel that lets nobody does not tell what it could. */
static void note_event(int fd, const char *what, const char *remark)
{
    const bool is_refused = fd < 0 && (errno == EACCES || errno == EPERM);
    note(fd >= 0, what,
         is_refused ? ": not known, since perf_event_open is refused (see above)" : remark);
}

static void check_events(void)
{
    fd_auto clock_fd = perf_event_open_sampler(0, 19, EVENT_CPU_CLOCK);
    say(clock_fd >= 0, "a timer of the kernel to sample by",
        "perf_event_open is refused: CAP_PERFMON, and a seccomp profile that allows it");
    fd_auto cycles_fd = perf_event_open_sampler(0, 19, EVENT_CYCLES);
    note_event(cycles_fd, "the processor's cycle counter",
               " is not there; the timer serves as well, but for code that has interrupts off");
    fd_auto build_id_fd = perf_event_open_side_band(0, true);
    note_event(build_id_fd, "build ids with mappings",
               " are not told (Linux 5.12 does); files are read for them");
}

static void check_symbols(void)
{
    struct kernel_symbols *symbols = kernel_symbols_create();
    struct kernel_symbol symbol;
    /* An address behind all others makes it read the file. */
    const bool is_found = kernel_symbols_find(symbols, UINT64_MAX, clock_monotonic_ns(), &symbol) ||
                          kernel_symbols_count(symbols) > 0;
    say(is_found, "names of the kernel's functions",
        "CAP_SYSLOG, and kernel.kptr_restrict of 0 or 1");
    kernel_symbols_destroy(symbols);
}

/* Of those that run now: what is read, and why the others are not. */
static void say_interpreters(const struct agent_counts *counts)
{
    buf_auto text;
    buf_init(&text, 4096);
    interpreter_counts_append(&counts->interpreters, &text);
    bool is_fine = true;
    for (uint32_t kind = 0; kind < INTERPRETER_KINDS; kind++) {
        for (uint32_t i = INTERPRETER_REFUSED_VERSION; i < INTERPRETER_OUTCOME_COUNT; i++)
            is_fine &= counts->interpreters.outcomes[kind][i] == 0;
    }
    printf("%-7s interpreters that run now: %.*s\n", is_fine ? "ok" : "note",
           text.size ? (int)text.size : 4, text.size ? (const char *)text.data : "none");
}

static void say_how(const struct agent *agent)
{
    struct agent_counts counts;
    agent_count(agent, &counts);
    if (counts.loop_error)
        printf("%-7s this kernel's verifier refuses the program with bpf_loop (%s): stacks are "
               "walked by bounded loops\n",
               "note", strerror(counts.loop_error));
    say_interpreters(&counts);
}

static bool check_all_together(void)
{
    const struct agent_options options = {.form = WINDOW_FOR_PEOPLE, .frequency_hz = 19};
    agent_auto agent = NULL;
    struct err err = {0};
    enum err_code code = agent_open(&options, &agent, &err);
    if (!code)
        code = agent_start(agent, &err);
    say(!code, "sampling", err.message);
    if (!code)
        say_how(agent);
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
