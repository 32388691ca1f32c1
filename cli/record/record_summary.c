#include "cli/record/record_summary.h"

#include "cli/terminal.h"
#include "cli/value.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MAX_BYTES = 4096 };

/* Warns of unsupported interpreters, of which the profile contains only C functions. */
static void warn_of_interpreters(struct terminal *terminal, const struct agent_counts *counts)
{
    struct interpreter_counts refused = counts->interpreters;
    buf_auto text;
    buf_init(&text, TEXT_MAX_BYTES);
    for (uint32_t kind = 0; kind < INTERPRETER_KINDS; kind++)
        refused.outcomes[kind][INTERPRETER_READY] = refused.outcomes[kind][INTERPRETER_NOT_YET] = 0;
    interpreter_counts_append(&refused, &text);
    if (text.size)
        terminal_warn(terminal, "functions of interpreted programs are missing: %.*s",
                      SPAN_PRINT(buf_span(&text)));
}

static void print_unwinding(struct terminal *terminal, const struct agent_counts *counts)
{
    buf_auto stops;
    buf_init(&stops, TEXT_MAX_BYTES);
    if (counts->loop_error)
        terminal_note(
            terminal,
            "this kernel refuses the program with bpf_loop (%s): stacks were unwound with "
            "bounded loops",
            strerror(counts->loop_error));
    else if (counts->has_bounded_loops)
        terminal_note(terminal, "stacks were unwound with bounded loops, as before Linux 5.17");
    if (agent_append_stops(counts, &stops))
        terminal_note(terminal, "stacks that end before their root: %.*s",
                      SPAN_PRINT(buf_span(&stops)));
}

/* Prints nothing if count is 0. */
static void warn_of(struct terminal *terminal, uint64_t count, const char *one, const char *many,
                    const char *words)
{
    if (count)
        terminal_warn(terminal, "%" PRIu64 " %s %s", count, count == 1 ? one : many, words);
}

static void warn_of_losses(struct terminal *terminal, const struct agent_counts *counts)
{
    warn_of(terminal, counts->lost_samples, "sample was", "samples were",
            "lost because the ring buffer was full: use a lower -F");
    warn_of(terminal, counts->lost_events, "event of processes was", "events of processes were",
            "lost, so that some addresses may be those of another binary");
    warn_of(terminal, counts->restarted_cpus, "processor", "processors",
            "came online or returned during the recording: samples are missing until up to a "
            "minute later");
    warn_of(terminal, counts->unsampled_cpus, "processor", "processors",
            "that came online or returned could not be sampled");
    warn_of(terminal, counts->foreign, "sample of a process", "samples of processes",
            "outside of this PID namespace left out");
    warn_of(terminal, counts->refused_processes, "process was", "processes were",
            "too many, and left out");
    warn_of(terminal, counts->refused_mappings, "mapping was", "mappings were",
            "too many: code in the mappings left out has no names");
    warn_of(terminal, counts->refused_off_cpu, "off-CPU interval was", "off-CPU intervals were",
            "too many, and left out");
    warn_of(terminal, counts->refused_tables, "unwind table", "unwind tables",
            "did not fit into memory: some stacks end early");
    warn_of(terminal, counts->refused_names, "process has", "processes have",
            "more names of JIT-compiled code than the limit: further functions are "
            "named " WINDOW_NAME_LEFT_OUT);
}

void record_summary_print(struct terminal *terminal, const struct record_summary *summary)
{
    const struct agent_counts *counts = summary->counts;
    char text[VALUE_TEXT_BYTES];
    terminal_note(terminal, "%s at %u Hz by the %s",
                  value_counted(counts->samples, "sample", "samples", text), summary->frequency_hz,
                  event_facts(counts->event)->source);
    if (counts->is_unprivileged)
        terminal_warn(
            terminal,
            "without rights: frames of the kernel and of interpreted programs are missing, and "
            "deep "
            "stacks are cut off; run as root for complete stacks, or once: "
            "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog+ep perfolio, which lets every "
            "user of this machine sample the programs of all users");
    if (summary->has_off_cpu)
        terminal_note(
            terminal, "%s",
            value_counted(counts->off_cpu, "off-CPU interval", "off-CPU intervals", text));
    print_unwinding(terminal, counts);
    warn_of_interpreters(terminal, counts);
    warn_of_losses(terminal, counts);
    if (summary->is_full)
        terminal_warn(terminal, "stopped early: the profile reached its maximum size");
}
