#include "agent/interpreter/interpreter.h"

#include "agent/interpreter/cpython.h"
#include "agent/interpreter/ruby.h"
#include "agent/process/binaries.h"
#include "agent/process/elf_exports.h"
#include "agent/process/process.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"

#include <inttypes.h>

enum { TRIES_MAX = 40 };
#define FIRST_FILE_PAUSE_NS (100 * CLOCK_NS_PER_MS)
#define LONGEST_FILE_PAUSE_NS (50 * CLOCK_NS_PER_S)
#define FIRST_PAUSE_NS (4 * CLOCK_NS_PER_MS)
#define LONGEST_PAUSE_NS CLOCK_NS_PER_S
#define CODE_MAX_BYTES (UINT64_C(64) << 20)

/* The result of examining the binary with the same number. It is valid while the binary has the
 * same serial. */
struct known_file {
    uint64_t serial;
    struct interpreter_file file;
    bool is_read; /* false: the last attempt to open it failed */
};

struct interpreter {
    struct interpreters *owner;
    struct process *process;
    struct interpreter *next, *previous; /* list of those with INTERPRETER_NOT_YET */
    uint64_t serial;
    struct interpreter_file file;
    uint64_t bias;
    enum interpreter_outcome outcome;
    uint32_t tries; /* attempts that found an unexpected layout or no state */
    int64_t next_try_ns;
    int64_t pause_ns;
    struct interpreter_process settings;
    void *own; /* the kind's state of this process */
};

struct interpreters {
    struct interpreters_options options;
    struct known_file *files;
    uint32_t file_count;
    struct interpreter *waiting;
    uint64_t newest_serial;
    struct interpreter_counts counts;
    struct code_budget code_budget;
};

static const struct interpreter_kind *const kinds[INTERPRETER_KINDS] = {&cpython_kind, &ruby_kind};

struct interpreters *interpreters_create(const struct interpreters_options *options)
{
    struct interpreters *interpreters = mem_new(struct interpreters, 1);
    interpreters->options = *options;
    code_budget_init(&interpreters->code_budget,
                     options->max_code_bytes ? options->max_code_bytes : CODE_MAX_BYTES);
    return interpreters;
}

void interpreters_destroy(struct interpreters *interpreters)
{
    if (!interpreters)
        return;
    code_budget_fini(&interpreters->code_budget);
    mem_free(interpreters->files);
    mem_free(interpreters);
}

/* ---- files ---- */

static void detect_kind(const struct binary *binary, int fd, struct interpreter_file *ret_file)
{
    struct elf_exports symbols;
    *ret_file = (struct interpreter_file){0};
    if (!elf_exports_init(&symbols, fd, &binary->file))
        return;
    for (uint32_t i = 0; i < INTERPRETER_KINDS; i++) {
        if (kinds[i]->detect(&symbols, binary->path, ret_file)) {
            ret_file->kind = kinds[i];
            return;
        }
    }
}

/* Finds the result of examining the file of a mapping. is_due: a file that failed to open before is
 * tried again. *ret_is_unopened is set if this attempt fails. */
static const struct interpreter_file *find_file(struct interpreters *interpreters,
                                                const struct process *process,
                                                const struct process_mapping *mapping, bool is_due,
                                                bool *ret_is_unopened)
{
    const uint32_t number = mapping->binary;
    const struct binary *binary = binaries_get(interpreters->options.binaries, number);
    vec_reserve_zeroed(interpreters->files, interpreters->file_count, (size_t)number + 1);
    struct known_file *known = &interpreters->files[number];
    if (known->serial == binary->serial && (known->is_read || !is_due))
        return &known->file;
    fd_auto fd = binaries_open(interpreters->options.binaries, number, process->shown_id,
                               mapping->start, mapping->limit);
    *known = (struct known_file){.serial = binary->serial, .is_read = fd >= 0};
    if (known->is_read)
        detect_kind(binary, fd, &known->file);
    else
        *ret_is_unopened = true;
    return &known->file;
}

/* ---- processes ---- */

static uint32_t kind_index(const struct interpreter *interpreter)
{
    uint32_t i = 0;
    while (kinds[i] != interpreter->file.kind)
        i++;
    return i;
}

static uint64_t *counter_of(struct interpreter *interpreter)
{
    return &interpreter->owner->counts.outcomes[kind_index(interpreter)][interpreter->outcome];
}

static void unlink_waiting(struct interpreter *interpreter)
{
    if (interpreter->outcome != INTERPRETER_NOT_YET)
        return;
    if (interpreter->previous)
        interpreter->previous->next = interpreter->next;
    else
        interpreter->owner->waiting = interpreter->next;
    if (interpreter->next)
        interpreter->next->previous = interpreter->previous;
}

static void set_outcome(struct interpreter *interpreter, enum interpreter_outcome outcome)
{
    unlink_waiting(interpreter);
    --*counter_of(interpreter);
    interpreter->outcome = outcome;
    ++*counter_of(interpreter);
}

static void try_attach(struct interpreter *interpreter, int64_t now_ns)
{
    const struct interpreter_target target = {
        .file = &interpreter->file,
        .bias = interpreter->bias,
        .process_id = interpreter->process->shown_id,
        .quota = {.budget = &interpreter->owner->code_budget,
                  .owner = process_owner(interpreter->process)}};
    enum interpreter_outcome outcome =
        interpreter->file.kind->attach(&target, &interpreter->settings, &interpreter->own);
    /* The process runs while its memory is read, so its data may be inconsistent for a moment. */
    const bool may_be_transient =
        outcome == INTERPRETER_REFUSED_LAYOUT || outcome == INTERPRETER_REFUSED_THREADS;
    if (may_be_transient && ++interpreter->tries < TRIES_MAX)
        outcome = INTERPRETER_NOT_YET;
    if (outcome != INTERPRETER_NOT_YET) {
        set_outcome(interpreter, outcome);
        return;
    }
    interpreter->next_try_ns = now_ns + interpreter->pause_ns;
    if (interpreter->pause_ns < LONGEST_PAUSE_NS)
        interpreter->pause_ns += interpreter->pause_ns / 2;
}

static void try_attach_if_due(struct interpreter *interpreter, int64_t now_ns)
{
    const struct interpreters_options *options = &interpreter->owner->options;
    if (now_ns < interpreter->next_try_ns)
        return;
    try_attach(interpreter, now_ns);
    if (interpreter->outcome == INTERPRETER_READY)
        options->on_ready(options->context, interpreter->process);
}

static void add_interpreter(struct interpreters *interpreters, struct process *process,
                            const struct interpreter_file *file, uint64_t bias)
{
    struct interpreter *interpreter = mem_new(struct interpreter, 1);
    *interpreter = (struct interpreter){.owner = interpreters,
                                        .process = process,
                                        .next = interpreters->waiting,
                                        .serial = ++interpreters->newest_serial,
                                        .file = *file,
                                        .bias = bias,
                                        .outcome = INTERPRETER_NOT_YET,
                                        .pause_ns = FIRST_PAUSE_NS};
    if (interpreter->next)
        interpreter->next->previous = interpreter;
    interpreters->waiting = interpreter;
    process->interpreter = interpreter;
    ++*counter_of(interpreter);
    try_attach(interpreter, clock_monotonic_ns());
}

/* Postpones the next attempt to open files of the process. Each publication of a process looks at
 * all its mappings, and some files can never be opened. The pause is that of the process rather
 * than of the file, because another process may show a file that an ended one cannot. */
static void pause_opening(struct process *process, int64_t now_ns)
{
    process->unopened_pause_ns =
        process->unopened_pause_ns ? 2 * process->unopened_pause_ns : FIRST_FILE_PAUSE_NS;
    if (process->unopened_pause_ns > LONGEST_FILE_PAUSE_NS)
        process->unopened_pause_ns = LONGEST_FILE_PAUSE_NS;
    process->unopened_ns = now_ns + process->unopened_pause_ns;
}

void interpreters_note(struct interpreters *interpreters, struct process *process)
{
    const int64_t now_ns = clock_monotonic_ns();
    const bool is_due = now_ns >= process->unopened_ns;
    bool is_unopened = false;
    for (uint32_t i = 0; !process->interpreter && i < process->mapping_count; i++) {
        const struct process_mapping *mapping = &process->mappings[i];
        if (mapping->binary == BINARY_NONE)
            continue;
        const struct interpreter_file *file =
            find_file(interpreters, process, mapping, is_due, &is_unopened);
        const struct binary *binary = binaries_get(interpreters->options.binaries, mapping->binary);
        if (file->kind)
            add_interpreter(interpreters, process, file,
                            mapping->start - binary_address(binary, mapping->file_offset));
    }
    if (is_unopened)
        pause_opening(process, now_ns);
}

void interpreters_poll(struct interpreters *interpreters, int64_t now_ns)
{
    struct interpreter *next;
    for (struct interpreter *each = interpreters->waiting; each; each = next) {
        next = each->next;
        try_attach_if_due(each, now_ns);
    }
}

int interpreters_timeout_ms(const struct interpreters *interpreters, int64_t now_ns, int timeout_ms)
{
    for (const struct interpreter *each = interpreters->waiting; each; each = each->next) {
        const int64_t left_ms = (each->next_try_ns - now_ns) / CLOCK_NS_PER_MS + 1;
        if (left_ms < timeout_ms)
            timeout_ms = left_ms > 0 ? (int)left_ms : 0;
    }
    return timeout_ms;
}

struct interpreter *interpreter_inherit(const struct interpreter *parent, struct process *child)
{
    if (!parent || parent->outcome != INTERPRETER_READY)
        return NULL;
    struct interpreter *interpreter = mem_new(struct interpreter, 1);
    *interpreter = *parent;
    interpreter->process = child;
    interpreter->own = parent->file.kind->ref(parent->own);
    ++*counter_of(interpreter);
    return interpreter;
}

void interpreter_destroy(struct interpreter *interpreter)
{
    if (!interpreter)
        return;
    unlink_waiting(interpreter);
    if (interpreter->outcome == INTERPRETER_READY || interpreter->outcome == INTERPRETER_NOT_YET)
        --*counter_of(interpreter);
    if (interpreter->own)
        interpreter->file.kind->destroy(interpreter->own);
    mem_free(interpreter);
}

/* ---- use ---- */

struct interpreter_process interpreter_get(const struct interpreter *interpreter)
{
    if (!interpreter || interpreter->outcome != INTERPRETER_READY)
        return (struct interpreter_process){0};
    return interpreter->settings;
}

uint64_t interpreter_serial(const struct interpreter *interpreter)
{
    return interpreter ? interpreter->serial : 0;
}

const char *interpreter_mapping(const struct interpreter *interpreter)
{
    return interpreter->file.kind->mapping;
}

bool interpreter_is_call(const struct interpreter *interpreter, uint64_t address)
{
    return interpreter && address - interpreter->bias - interpreter->file.call_start <
                              interpreter->file.call_bytes;
}

bool interpreter_is_ready(struct interpreter *interpreter)
{
    if (interpreter && interpreter->outcome == INTERPRETER_NOT_YET)
        try_attach_if_due(interpreter, clock_monotonic_ns());
    return interpreter && interpreter->outcome == INTERPRETER_READY;
}

bool interpreter_find_name(struct interpreter *interpreter, const struct interpreted_frame *frame,
                           struct interpreter_name *ret_name)
{
    return interpreter->file.kind->find_name(interpreter->own, interpreter->process->shown_id,
                                             frame, ret_name);
}

/* ---- counts ---- */

void interpreters_count(const struct interpreters *interpreters,
                        struct interpreter_counts *ret_counts)
{
    *ret_counts = interpreters->counts;
}

const char *interpreter_kind_name(uint32_t kind)
{
    return kinds[kind]->name;
}

const char *interpreter_outcome_name(enum interpreter_outcome outcome)
{
    static const char *const names[INTERPRETER_OUTCOME_COUNT] = {
        [INTERPRETER_READY] = "ready",
        [INTERPRETER_NOT_YET] = "starting",
        [INTERPRETER_REFUSED_VERSION] = "version",
        [INTERPRETER_REFUSED_BUILD] = "build",
        [INTERPRETER_REFUSED_LAYOUT] = "layout",
        [INTERPRETER_REFUSED_THREADS] = "threads",
    };
    return names[outcome];
}

void interpreter_counts_append(const struct interpreter_counts *counts, struct buf *text)
{
    const size_t before = text->size;
    for (uint32_t kind = 0; kind < INTERPRETER_KINDS; kind++) {
        for (uint32_t i = 0; i < INTERPRETER_OUTCOME_COUNT; i++) {
            if (counts->outcomes[kind][i])
                buf_printf(text, "%s%" PRIu64 " %s %s%s", text->size > before ? ", " : "",
                           counts->outcomes[kind][i], kinds[kind]->name,
                           i >= INTERPRETER_REFUSED_VERSION ? "refused: " : "",
                           interpreter_outcome_name((enum interpreter_outcome)i));
        }
    }
}
