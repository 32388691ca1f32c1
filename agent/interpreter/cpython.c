#include "agent/interpreter/cpython.h"

#include "agent/interpreter/cpython_code.h"
#include "agent/process/elf_exports.h"
#include "agent/process/process_memory.h"
#include "lib/base/mem.h"

enum {
    THREADS_MAX = 64,           /* threads that are tried */
    FRAMES_MAX = 64,            /* innermost frames in which a code object is searched */
    AROUND_THREAD_BYTES = 2048, /* about the size of the C library's struct of a thread */
    TYPE_OFFSET = 8,            /* PyObject.ob_type */
};

/* ---- files ---- */

/* For example "/usr/bin/python3.8" or "/usr/lib/libpython3.10.so.1.0"; 0: not in the path. */
static uint32_t find_version_in_path(const char *path)
{
    const char *found = NULL;
    for (const char *at = strstr(path, "python3."); at; at = strstr(at + 1, "python3."))
        found = at;
    uint32_t minor = 0;
    for (const char *at = found ? found + 8 : ""; *at >= '0' && *at <= '9' && minor < 100; at++)
        minor = minor * 10 + (uint32_t)(*at - '0');
    return minor && minor < 100 ? 3 << 8 | minor : 0;
}

/* From 3.11 on the file contains its version. */
static uint32_t find_version(const struct elf_exports *symbols, const char *path)
{
    struct elf_symbol symbol;
    uint64_t version;
    if (elf_exports_find(symbols, "Py_Version", &symbol) &&
        elf_exports_read(symbols, symbol.address, &version, sizeof(version)))
        return (uint32_t)(version >> 16 & 0xFFFF);
    return find_version_in_path(path);
}

/* Also detects versions before 3.7, which have no _PyRuntime, so that they are counted as refused.
 */
static bool detect_cpython(const struct elf_exports *symbols, const char *path,
                           struct interpreter_file *ret_file)
{
    struct elf_symbol runtime = {0}, code_type, call = {0};
    const bool has_runtime = elf_exports_find(symbols, "_PyRuntime", &runtime);
    if (!has_runtime && !elf_exports_find(symbols, "PyEval_EvalFrameEx", &call))
        return false;
    if (!elf_exports_find(symbols, "PyCode_Type", &code_type))
        return false;
    (void)elf_exports_find(symbols, "_PyEval_EvalFrameDefault", &call);
    *ret_file = (struct interpreter_file){.version = has_runtime ? find_version(symbols, path) : 0,
                                          .runtime = runtime.address,
                                          .code_type = code_type.address,
                                          .call_start = call.address,
                                          .call_bytes = call.bytes};
    return true;
}

/* ---- processes ---- */

struct python {
    const struct interpreter_target *target;
    struct cpython_layout layout;
    uint64_t interpreter; /* address of the first PyInterpreterState in the list */
};

static bool read_word(const struct python *python, uint64_t address, uint64_t *ret_word)
{
    return process_memory_word(python->target->process_id, address, ret_word);
}

static enum interpreter_outcome find_layout(struct python *python)
{
    const struct interpreter_file *file = python->target->file;
    const struct cpython_layout *known = cpython_layout_find(file->version);
    uint8_t offsets[CPYTHON_OFFSETS_BYTES];
    if (known) {
        python->layout = *known;
        return INTERPRETER_READY;
    }
    if (file->version < (3 << 8 | 13))
        return INTERPRETER_REFUSED_VERSION;
    if (!process_memory_read(python->target->process_id, python->target->bias + file->runtime,
                             offsets, sizeof(offsets)))
        return INTERPRETER_NOT_YET;
    return cpython_layout_read(span_of(offsets, sizeof(offsets)), &python->layout);
}

/*
 * Finds the distance from a thread's pointer to the word that contains the address of its state.
 *
 * CPython keeps the state in a thread-specific key (pthread_setspecific), whose value is in the C
 * library's struct of the thread, at the same offset for all threads. glibc's struct begins at the
 * thread pointer on x86-64 and ends there on arm64, so the memory above the pointer is searched
 * first, and then the memory below. The key is set whether or not the thread holds the GIL.
 */
static bool find_distance(const struct python *python, uint64_t state, uint64_t pointer,
                          int64_t *ret_distance)
{
    static const int64_t starts[] = {0, -AROUND_THREAD_BYTES};
    uint64_t words[AROUND_THREAD_BYTES / sizeof(uint64_t)];
    for (size_t part = 0; part < sizeof(starts) / sizeof(*starts); part++) {
        const size_t got = process_memory_read_some(
            python->target->process_id, pointer + (uint64_t)starts[part], words, sizeof(words));
        for (size_t i = 0; i < got / sizeof(*words); i++) {
            if (words[i] == state) {
                *ret_distance = starts[part] + (int64_t)(i * sizeof(*words));
                return true;
            }
        }
    }
    return false;
}

/* The innermost frame of a thread; 0: it runs no Python function. */
static bool find_frame(const struct python *python, uint64_t state, uint64_t *ret_frame)
{
    const struct interpreter_layout *frames = &python->layout.frames;
    uint64_t record = 0;
    if (!frames->is_frame_in_record)
        return read_word(python, state + frames->thread_frame, ret_frame);
    return read_word(python, state + frames->thread_record, &record) &&
           read_word(python, record + frames->record_frame, ret_frame);
}

/* Whether one of the innermost frames has a code object. */
static bool has_code(const struct python *python, uint64_t frame)
{
    const struct interpreter_layout *frames = &python->layout.frames;
    const uint64_t wanted = python->target->bias + python->target->file->code_type;
    for (uint32_t i = 0; frame && i < FRAMES_MAX; i++) {
        uint64_t code, type;
        if (!read_word(python, frame + frames->frame_code, &code))
            return false;
        /* From 3.14 on the low bits of the reference (_PyStackRef) are tags. */
        if (read_word(python, (code & ~UINT64_C(7)) + TYPE_OFFSET, &type) && type == wanted)
            return true;
        if (!read_word(python, frame + frames->frame_previous, &frame))
            return false;
    }
    return false;
}

/* Verifies the layout with one thread, and finds the distance that holds for all threads. */
static enum interpreter_outcome try_thread(const struct python *python, uint64_t state,
                                           int64_t *ret_distance)
{
    uint64_t interpreter, pointer, frame;
    if (!read_word(python, state + python->layout.thread_interpreter, &interpreter) ||
        interpreter != python->interpreter ||
        !read_word(python, state + python->layout.frames.thread_self, &pointer))
        return INTERPRETER_REFUSED_LAYOUT;
    if (!find_frame(python, state, &frame))
        return INTERPRETER_REFUSED_LAYOUT;
    if (!frame)
        return INTERPRETER_NOT_YET;
    if (!has_code(python, frame))
        return INTERPRETER_REFUSED_LAYOUT;
    return find_distance(python, state, pointer, ret_distance) ? INTERPRETER_READY
                                                               : INTERPRETER_REFUSED_THREADS;
}

/* Tries threads until one is READY. Otherwise returns the outcome of the thread for which the most
 * steps of try_thread succeeded, which is the highest value of the enum. */
static enum interpreter_outcome try_threads(struct python *python, int64_t *ret_distance)
{
    const uint64_t runtime = python->target->bias + python->target->file->runtime;
    enum interpreter_outcome outcome_so_far = INTERPRETER_NOT_YET;
    uint64_t state = 0;
    if (!read_word(python, runtime + python->layout.interpreters_head, &python->interpreter) ||
        !python->interpreter ||
        !read_word(python, python->interpreter + python->layout.threads_head, &state))
        return INTERPRETER_NOT_YET;
    for (uint32_t i = 0; state && i < THREADS_MAX; i++) {
        const enum interpreter_outcome outcome = try_thread(python, state, ret_distance);
        if (outcome == INTERPRETER_READY)
            return outcome;
        outcome_so_far = outcome > outcome_so_far ? outcome : outcome_so_far;
        if (!read_word(python, state + python->layout.thread_next, &state))
            break;
    }
    return outcome_so_far;
}

static enum interpreter_outcome attach_cpython(const struct interpreter_target *target,
                                               struct interpreter_process *ret_process,
                                               void **ret_own)
{
    struct python python = {.target = target};
    int64_t distance;
    enum interpreter_outcome outcome = find_layout(&python);
    if (outcome == INTERPRETER_READY)
        outcome = try_threads(&python, &distance);
    if (outcome != INTERPRETER_READY)
        return outcome;
    *ret_process =
        (struct interpreter_process){.thread_offset = distance, .layout = python.layout.frames};
    *ret_own = cpython_codes_create(&python.layout, target->process_id,
                                    target->bias + target->file->code_type, &target->quota);
    return INTERPRETER_READY;
}

static void *ref_codes(void *own)
{
    return cpython_codes_ref(own);
}

static bool find_function(void *own, uint32_t process_id, const struct interpreted_frame *frame,
                          struct interpreter_name *ret_name)
{
    return cpython_codes_find(own, process_id, frame, ret_name);
}

static void unref_codes(void *own)
{
    cpython_codes_unref(own);
}

const struct interpreter_kind cpython_kind = {.name = "cpython",
                                              .mapping = "[cpython]",
                                              .detect = detect_cpython,
                                              .attach = attach_cpython,
                                              .ref = ref_codes,
                                              .find_name = find_function,
                                              .destroy = unref_codes};
