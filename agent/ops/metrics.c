#include "agent/ops/metrics.h"

#include "agent/agent.h"
#include "agent/unwind/unwind_names.h"
#include "agent/upload/profile_uploader.h"
#include "agent/upload/spool.h"
#include "agent/upload/symbol_uploader.h"
#include "lib/base/buf.h"

#include <inttypes.h>

static void append_head(struct buf *text, const char *name, const char *type, const char *help)
{
    buf_printf(text, "# HELP perfolio_agent_%s %s\n# TYPE perfolio_agent_%s %s\n", name, help, name,
               type);
}

static void append_count(struct buf *text, const char *name, const char *help, uint64_t value)
{
    append_head(text, name, "counter", help);
    buf_printf(text, "perfolio_agent_%s %" PRIu64 "\n", name, value);
}

static void append_gauge(struct buf *text, const char *name, const char *help, uint64_t value)
{
    append_head(text, name, "gauge", help);
    buf_printf(text, "perfolio_agent_%s %" PRIu64 "\n", name, value);
}

static void append_stacks(const struct agent_counts *agent, struct buf *text)
{
    append_head(
        text, "stacks_total", "counter",
        "Unwound stacks, by the reason why unwinding ended; root and root-zero are complete.");
    for (uint32_t i = 1; i < UNWIND_STOP_COUNT; i++)
        buf_printf(text, "perfolio_agent_stacks_total{stop=\"%s\"} %" PRIu64 "\n",
                   unwind_stop_name((enum unwind_stop)i), agent->stops[i]);
}

static void append_interpreters(const struct interpreter_counts *counts, struct buf *text)
{
    append_head(text, "interpreters", "gauge",
                "Processes whose interpreter is ready or starting, and those refused since the "
                "start, by reason.");
    for (uint32_t kind = 0; kind < INTERPRETER_KINDS; kind++) {
        for (uint32_t i = 0; i < INTERPRETER_OUTCOME_COUNT; i++)
            buf_printf(
                text, "perfolio_agent_interpreters{runtime=\"%s\",state=\"%s\"} %" PRIu64 "\n",
                interpreter_kind_name(kind), interpreter_outcome_name((enum interpreter_outcome)i),
                counts->outcomes[kind][i]);
    }
}

static void append_agent(const struct agent_counts *agent, struct buf *text)
{
    append_count(text, "samples_total", "Samples taken.", agent->samples);
    append_count(text, "waits_total", "Off-CPU intervals of threads that were recorded.",
                 agent->off_cpu);
    append_count(text, "tallied_samples_total",
                 "Samples counted in the kernel (--aggregate=kernel).", agent->tallied);
    append_count(text, "lost_samples_total", "Samples lost because the ring buffer was full.",
                 agent->lost_samples);
    append_count(text, "lost_events_total", "Process events lost; /proc was read again.",
                 agent->lost_events);
    append_count(text, "restarted_cpus_total",
                 "Processors that came online or returned, and are sampled since then.",
                 agent->restarted_cpus);
    append_gauge(text, "unsampled_cpus", "Online processors that cannot be sampled.",
                 agent->unsampled_cpus);
    append_count(text, "foreign_samples_total",
                 "Samples of processes outside of the agent's PID namespace.", agent->foreign);
    append_count(text, "unwanted_samples_total", "Samples that relabelling rules left out.",
                 agent->unwanted);
    append_count(
        text, "refused_total",
        "Processes, mappings, off-CPU intervals, unwind tables and processes' names of code that "
        "did not fit.",
        agent->refused);
    append_count(
        text, "left_out_names_total",
        "Users, and processes of root, whose names did not all fit a batch, summed over batches.",
        agent->left_out_names);
    append_count(text, "failed_tables_total", "Unwind tables that could not be built.",
                 agent->failed_tables);
    append_stacks(agent, text);
    append_count(
        text, "short_of_memory_seconds_total",
        "Seconds above the memory limit, in which no tables were built and no JIT names were read.",
        agent->short_seconds);
    append_gauge(text, "resident_memory_bytes", "Resident memory of the agent.",
                 agent->memory_bytes);
    append_count(text, "interpreted_frames_total", "Frames of interpreted functions.",
                 agent->interpreted_frames);
    append_interpreters(&agent->interpreters, text);
    append_gauge(text, "processes", "Known processes.", agent->processes);
    append_gauge(text, "mappings", "Executable mappings of known processes.", agent->mappings);
    append_gauge(text, "binaries", "Mapped files.", agent->binaries);
    append_gauge(text, "unread_binaries", "Mapped files that could not be read.",
                 agent->unread_binaries);
    append_gauge(text, "tables", "Unwind tables.", agent->tables);
    append_gauge(text, "table_memory_bytes", "Kernel memory of unwind tables.", agent->shard_bytes);
}

static void append_symbols(const struct symbol_uploader_counts *symbols, struct buf *text)
{
    append_count(text, "symbols_queried_total", "Binaries for which the server was queried.",
                 symbols->queried);
    append_count(text, "symbols_asked_total",
                 "Former name of symbols_queried_total, reported until version 0.2.",
                 symbols->queried);
    append_count(text, "symbols_known_total", "Queried binaries for which the server had names.",
                 symbols->known);
    append_count(text, "symbols_sent_total", "Symbol tables sent.", symbols->sent_tables);
    append_count(text, "symbols_sent_files_total", "Debug files sent.", symbols->sent_files);
    append_count(text, "symbols_sent_bytes_total", "Bytes of sent symbol tables and debug files.",
                 symbols->sent_bytes);
    append_count(text, "symbols_nameless_total", "Binaries without names on this host.",
                 symbols->nameless);
    append_count(text, "symbols_failed_total", "Tables that could not be built, or were refused.",
                 symbols->failed);
    append_gauge(text, "symbols_waiting", "Binaries that wait for a query or a symbol table.",
                 symbols->waiting);
}

void metrics_append(const struct metrics *metrics, struct buf *text)
{
    append_agent(metrics->agent, text);
    append_count(text, "sent_batches_total", "Batches that the server accepted.",
                 metrics->uploader->sent_batches);
    append_count(text, "sent_bytes_total", "Bytes of accepted batches.",
                 metrics->uploader->sent_bytes);
    append_count(text, "failed_tries_total",
                 "Attempts to send a batch that failed and are retried.",
                 metrics->uploader->failed_tries);
    append_count(text, "refused_batches_total", "Batches that the server refused for good.",
                 metrics->uploader->refused_batches);
    append_count(text, "lost_batches_total", "Batches that could not be encoded or stored.",
                 metrics->lost_batches);
    append_count(text, "dropped_batches_total",
                 "Batches that were deleted from the spool for newer ones, or could not be read.",
                 metrics->spool->dropped_batches);
    append_count(text, "kept_batches_total", "Batches written to the spool or to --offline-dir.",
                 metrics->spool->put_batches);
    append_count(text, "kept_bytes_total", "Bytes of written batches.", metrics->spool->put_bytes);
    append_symbols(metrics->symbols, text);
    if (metrics->is_offline) /* without a server other programs remove the batches */
        return;
    append_gauge(text, "spool_batches", "Batches in the spool.", metrics->spool->batches);
    append_gauge(text, "spool_bytes", "Bytes of the batches in the spool.", metrics->spool->bytes);
}
