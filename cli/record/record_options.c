#include "cli/record/record_options.h"

#include "cli/cli.h"
#include "lib/base/err.h"
#include "lib/input/share_text.h"

#include <stdlib.h>

enum { DEFAULT_SECONDS = 10, MAX_SECONDS = 24 * 3600 };

static enum err_code take_target(void *values, const struct option_row *row, const char *text,
                                 struct err *err)
{
    struct record_options *options = values;
    uint64_t process_id;
    if (!span_parse_u64(span_text(text), &process_id) || process_id == 0 || process_id > INT32_MAX)
        return options_refuse(row, text, err);
    if (options->target_count == RECORD_TARGETS_MAX)
        return err_set(err, ERR_INVALID,
                       "-p can be given at most %d times: use -a to record all processes",
                       RECORD_TARGETS_MAX);
    options->targets[options->target_count++] = (uint32_t)process_id;
    return ERR_NONE;
}

/* The row's max is the longest time. */
static enum err_code take_seconds(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    struct record_options *options = values;
    char *end;
    options->seconds = strtod(text, &end);
    return end == text || *end || !(options->seconds >= 0.01) || options->seconds > MAX_SECONDS
               ? options_refuse(row, text, err)
               : ERR_NONE;
}

static enum err_code take_event(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    struct record_options *options = values;
    return event_kind_find(text, &options->event) ? ERR_NONE : options_refuse(row, text, err);
}

/* text is NULL for all intervals. */
static enum err_code take_off_cpu(void *values, const struct option_row *row, const char *text,
                                  struct err *err)
{
    struct record_options *options = values;
    char *end;
    options->off_cpu_fraction = text ? strtod(text, &end) : 1;
    return text && (end == text || *end ||
                    !(options->off_cpu_fraction >= AGENT_OFF_CPU_FRACTION_MIN) ||
                    options->off_cpu_fraction > 1)
               ? options_refuse(row, text, err)
               : ERR_NONE;
}

static enum err_code take_quiet(void *values, const struct option_row *row, const char *text,
                                struct err *err)
{
    (void)row;
    (void)text;
    (void)err;
    ((struct record_options *)values)->cli->terminal.is_quiet = true;
    return ERR_NONE;
}

static const char *const visibilities[] = {"public", "unlisted", "team", NULL};

/* Kinds and places of values in struct record_options. */
#define TEXT(member) OPTION_TEXT(struct record_options, member)
#define FLAG(member) OPTION_FLAG(struct record_options, member)
#define MIN_OFF_CPU                                                                                \
    OPTION_NUMBER(struct record_options, min_off_cpu_ns, 0, MAX_SECONDS *UINT64_C(1000000), 1000), \
        .error = "--min-off-cpu takes microseconds, not {value}"

/* Groups: what to record, the share, how to record. */
static const struct option_row rows[] = {
    {"pid", 'p', "PID", "Record this process and its children; may be repeated",
     .take = take_target, .error = "-p takes a process id, not {value}"},
    {"all", 'a', NULL, "Record all processes of this host", FLAG(is_all)},
    {"duration", 'd', "SECONDS", "Stop after this time (10, or when COMMAND ends)",
     .take = take_seconds, .max = MAX_SECONDS,
     .error = "-d takes seconds from 0.01 to {max}, not {value}"},
    {"frequency", 'F', "HZ", "Samples per second on each busy processor (99)",
     OPTION_NUMBER(struct record_options, frequency_hz, 1, AGENT_FREQUENCY_MAX_HZ, 1),
     .error = "-F takes a number from {min} to {max}, not {value}"},
    {"event", 0, "EVENT",
     "Event to sample by: cycles, instructions, cache-misses, page-faults or context-switches "
     "(CPU time, by a timer, which does not fire while interrupts are off)",
     .take = take_event,
     .error = "--event is cpu, cpu-clock, cycles, instructions, cache-misses, page-faults or "
              "context-switches, not {value}"},
    {"off-cpu", 0, "FRACTION",
     "Also record where and how long threads wait: all off-CPU intervals, or this fraction of "
     "them (1)",
     .take = take_off_cpu, .is_value_optional = true,
     .error = "--off-cpu takes a number from 0.0001 to 1, not {value}"},
    {"wall", 0, NULL, "Record CPU time and off-CPU time as one type, wall", FLAG(is_wall)},
    {"min-off-cpu", 0, "MICROSECONDS", "Ignore shorter off-CPU intervals (0)", MIN_OFF_CPU},
    {"min-wait", 0, "MICROSECONDS", "Former name of --min-off-cpu", MIN_OFF_CPU, .is_hidden = true},
    {"top", 0, NULL,
     "Show the most expensive functions once per second until q is typed; the profile is written "
     "only with -o or --share",
     FLAG(is_live)},
    {"output", 'o', "FILE",
     "Write pprof to FILE (" RECORD_DEFAULT_FILE " unless shared), - is standard output",
     TEXT(output)},
    {"no-names", 0, NULL, "Write addresses without names; the server adds the names",
     FLAG(is_unnamed)},
    {"share", 0, NULL, "Upload the profile and print its link", FLAG(is_shared), .group = 1},
    {"title", 0, "TEXT", "Title of the share (the command, or the process)", TEXT(settings.title),
     .group = 1},
    {"description", 0, "TEXT", "Description, as Markdown", TEXT(settings.description), .group = 1},
    {"expires", 0, "TIME", "When the share expires: 12h, 30d, 8w or never", TEXT(settings.expires),
     .group = 1},
    {"visibility", 0, "VISIBILITY", "public, unlisted or team",
     OPTION_WORD(struct record_options, settings.visibility, visibilities), .group = 1,
     .error = "--visibility is {words}, not {value}"},
    {"json", 0, NULL, "Print the response of the server as one line of JSON", FLAG(is_json),
     .group = 1},
    {"open", 0, NULL, "Open the link in a browser", FLAG(is_opened), .group = 1},
    {"quiet", 'q', NULL, "Print only warnings and errors", .take = take_quiet, .group = 2},
    {"progress", 0, NULL, "Report slow steps even if standard error is not a terminal",
     FLAG(has_progress), .group = 2},
    {"frame-pointers", 0, NULL, "Unwind by frame pointers only, without unwind tables",
     FLAG(has_no_tables), .group = 2},
    {"bounded-loops", 0, NULL, "Use the kernel program for Linux before 5.17 on any kernel",
     FLAG(has_bounded_loops), .group = 2},
    {"force", 0, NULL, "Record even on kernels that are known to hang (5.19 to 6.0)",
     FLAG(is_forced), .group = 2},
    {0},
};

/* Refuses before the recording what the server would refuse after it. */
static enum err_code check_texts(const struct upload_settings *settings, struct err *err)
{
    int64_t ignored;
    enum err_code code = ERR_NONE;
    if (settings->expires)
        code = share_text_parse_expires(span_text(settings->expires), &ignored, err);
    if (!code && settings->title)
        code = share_text_check("title", span_text(settings->title), SHARE_TITLE_CHARACTERS, true,
                                err);
    if (!code && settings->description)
        code = share_text_check("description", span_text(settings->description),
                                SHARE_DESCRIPTION_CHARACTERS, false, err);
    if (!code)
        return ERR_NONE;
    const struct err why = *err; /* its message begins with the name of the option */
    return err_set(err, code, "--%s", why.message);
}

static enum err_code check_target_count(const struct record_options *options, struct err *err)
{
    const int ways = options->is_all + (options->target_count > 0) + (options->command != NULL);
    if (ways == 0)
        return err_set(err, ERR_INVALID, "give what to record: -p PID, -a, or -- COMMAND");
    if (ways > 1)
        return err_set(err, ERR_INVALID, "-p, -a and COMMAND cannot be combined");
    return ERR_NONE;
}

static bool has_share_options(const struct record_options *options)
{
    const struct upload_settings *settings = &options->settings;
    return settings->title || settings->description || settings->expires || settings->visibility ||
           options->is_json || options->is_opened;
}

static enum err_code check_off_cpu(struct record_options *options, struct err *err)
{
    if (options->is_wall && !event_kind_is_time(options->event))
        return err_set(err, ERR_INVALID, "--wall cannot be combined with --event=%s",
                       event_facts(options->event)->name);
    if (options->is_wall && options->off_cpu_fraction == 0)
        options->off_cpu_fraction = 1;
    if (options->min_off_cpu_ns && options->off_cpu_fraction == 0)
        return err_set(err, ERR_INVALID, "--min-off-cpu needs --off-cpu or --wall");
    return ERR_NONE;
}

static enum err_code check_output(const struct record_options *options, struct err *err)
{
    if (options->output && !options->output[0])
        return err_set(err, ERR_INVALID, "-o takes the name of a file, or - for standard output");
    if (options->is_live && options->output && strcmp(options->output, "-") == 0)
        return err_set(err, ERR_INVALID, "--top and -o - both write to standard output");
    return ERR_NONE;
}

static void set_defaults(struct record_options *options)
{
    /* With a live table the user ends the recording. */
    const bool is_watched = options->is_live && options->cli->terminal.is_output_terminal;
    if (options->seconds == 0 && !options->command && !is_watched)
        options->seconds = DEFAULT_SECONDS;
    if (!options->output && !options->is_shared && !options->is_live)
        options->output = RECORD_DEFAULT_FILE;
}

static enum err_code check_arguments(void *values, struct err *err)
{
    struct record_options *options = values;
    if (check_texts(&options->settings, err) || check_target_count(options, err))
        return err->code;
    if (!options->is_shared && has_share_options(options))
        return err_set(err, ERR_INVALID,
                       "--title, --description, --expires, --visibility, --json and --open "
                       "apply to shares: add --share");
    if (check_off_cpu(options, err) || check_output(options, err))
        return err->code;
    set_defaults(options);
    return ERR_NONE;
}

static void take_command(void *values, char **words)
{
    ((struct record_options *)values)->command = words;
}

const struct option_table record_options_table = {
    .rows = rows,
    .take_words = take_command,
    .check = check_arguments,
    .arguments = "[-- COMMAND [ARGUMENT...]]",
    .text = "Sample where programs spend CPU time, and write or share the profile.\v"
            "The programs need no change. Run it as root, or with CAP_BPF, CAP_PERFMON, "
            "CAP_SYS_PTRACE and CAP_SYSLOG; without these it samples only your own programs. "
            "Function names come from files on this host; the server looks up the others. "
            "Ctrl-C and a closed terminal stop the recording; the profile is still written.",
};
