#include "agent/interpreter/ruby.h"

#include "agent/interpreter/ruby_code.h"
#include "agent/process/elf_exports.h"
#include "agent/process/process_memory.h"

enum {
    AROUND_THREAD_BYTES = 8192, /* on each side of the thread pointer */
    PIECE_BYTES = 512,
    FRAMES_MAX = 64,
};

/* ---- files ---- */

/* Major and minor from the array ruby_api_version; 0: it cannot be read. */
static uint32_t read_version(const struct elf_exports *symbols, const struct elf_symbol *symbol)
{
    int32_t numbers[2];
    if (!elf_exports_read(symbols, symbol->address, numbers, sizeof(numbers)) || numbers[0] < 1 ||
        numbers[0] > 255 || numbers[1] < 0 || numbers[1] > 255)
        return 0;
    return (uint32_t)(numbers[0] << 8 | numbers[1]);
}

/* Also detects versions before 2.5, which lack ruby_current_vm_ptr, so that they are counted as
 * refused. */
static bool detect_ruby(const struct elf_exports *symbols, const char *path,
                        struct interpreter_file *ret_file)
{
    struct elf_symbol version, machine = {0}, state = {0}, call = {0};
    (void)path;
    if (!elf_exports_find(symbols, "ruby_api_version", &version))
        return false;
    const bool is_known = elf_exports_find(symbols, "ruby_current_vm_ptr", &machine);
    (void)elf_exports_find(symbols, "ruby_current_execution_context_ptr", &state);
    (void)elf_exports_find(symbols, "rb_vm_exec", &call);
    *ret_file = (struct interpreter_file){.version = is_known ? read_version(symbols, &version) : 0,
                                          .runtime = machine.address,
                                          .shared_state = state.address,
                                          .call_start = call.address,
                                          .call_bytes = call.bytes};
    return true;
}

/* ---- processes ---- */

struct ruby {
    const struct interpreter_target *target;
    const struct ruby_layout *layout;
    uint64_t state; /* execution context of the main thread; before 3.0, of the running thread */
    uint64_t thread_pointer; /* of the thread to which state belongs */
};

static bool read_word(const struct ruby *ruby, uint64_t address, uint64_t *ret_word)
{
    return process_memory_word(ruby->target->process_id, address, ret_word);
}

/* Before 3.0: one variable of the process contains the state of the thread that runs. */
static bool find_shared_state(struct ruby *ruby, uint64_t *ret_thread)
{
    return read_word(ruby, ruby->target->bias + ruby->target->file->shared_state, &ruby->state) &&
           ruby->state && read_word(ruby, ruby->state + ruby->layout->state_thread, ret_thread) &&
           *ret_thread;
}

/* From 3.0 on: the virtual machine refers to the main thread, which refers to its state. */
static bool find_main_state(struct ruby *ruby, uint64_t *ret_thread)
{
    uint64_t machine;
    return read_word(ruby, ruby->target->bias + ruby->target->file->runtime, &machine) && machine &&
           read_word(ruby, machine + ruby->layout->vm_main_thread, ret_thread) && *ret_thread &&
           read_word(ruby, *ret_thread + ruby->layout->thread_state, &ruby->state) && ruby->state;
}

/* Finds a thread, its state and its thread pointer. REFUSED_LAYOUT unless state and thread refer to
 * each other. */
static enum interpreter_outcome find_thread(struct ruby *ruby)
{
    const struct ruby_layout *layout = ruby->layout;
    uint64_t thread, native, state, back;
    if (!(layout->frames.is_state_shared ? find_shared_state(ruby, &thread)
                                         : find_main_state(ruby, &thread)))
        return INTERPRETER_NOT_YET;
    if (!read_word(ruby, ruby->state + layout->state_thread, &back) || back != thread ||
        !read_word(ruby, thread + layout->thread_state, &state) || state != ruby->state)
        return INTERPRETER_REFUSED_LAYOUT;
    native = thread;
    if ((layout->thread_native && !read_word(ruby, thread + layout->thread_native, &native)) ||
        !read_word(ruby, native + layout->thread_pointer, &ruby->thread_pointer))
        return INTERPRETER_REFUSED_LAYOUT;
    return ruby->thread_pointer ? INTERPRETER_READY : INTERPRETER_NOT_YET;
}

/* REFUSED_LAYOUT: the frames are not in the thread's own stack. NOT_YET: none of them belongs to a
 * script. */
static enum interpreter_outcome check_frames(const struct ruby *ruby)
{
    const struct interpreter_layout *frames = &ruby->layout->frames;
    uint64_t start, words, frame, code;
    if (!read_word(ruby, ruby->state + frames->thread_stack, &start) ||
        !read_word(ruby, ruby->state + frames->thread_stack + 8, &words) ||
        !read_word(ruby, ruby->state + frames->thread_frame, &frame))
        return INTERPRETER_REFUSED_LAYOUT;
    const uint64_t limit = start + 8 * words;
    const uint64_t frame_bytes = frames->frame_previous; /* frames follow each other */
    if (frame < start || frame >= limit || (limit - frame) % frame_bytes != 0)
        return INTERPRETER_REFUSED_LAYOUT;
    for (uint32_t i = 0; i < FRAMES_MAX && frame < limit; i++, frame += frame_bytes) {
        if (!read_word(ruby, frame + frames->frame_code, &code))
            return INTERPRETER_REFUSED_LAYOUT;
        if (code)
            return INTERPRETER_READY;
    }
    return INTERPRETER_NOT_YET;
}

/* Searches PIECE_BYTES of memory, which begin `distance` bytes after the thread pointer, for a word
 * that contains the address of the state. */
static bool search_piece(const struct ruby *ruby, int64_t distance, int64_t *ret_distance)
{
    uint64_t words[PIECE_BYTES / sizeof(uint64_t)];
    const size_t got = process_memory_read_some(
        ruby->target->process_id, ruby->thread_pointer + (uint64_t)distance, words, sizeof(words));
    for (size_t i = 0; i < got / sizeof(*words); i++) {
        if (words[i] == ruby->state) {
            *ret_distance = distance + (int64_t)(i * sizeof(*words));
            return true;
        }
    }
    return false;
}

/* Finds the distance from the thread pointer to the thread-local variable ruby_current_ec. Such
 * variables lie below the pointer on x86-64 and above it on arm64. The search goes outwards on both
 * sides, because memory further away may not be mapped. */
static bool find_distance(const struct ruby *ruby, int64_t *ret_distance)
{
    for (int64_t distance = 0; distance < AROUND_THREAD_BYTES; distance += PIECE_BYTES) {
        if (search_piece(ruby, -distance - PIECE_BYTES, ret_distance) ||
            search_piece(ruby, distance, ret_distance))
            return true;
    }
    return false;
}

static enum interpreter_outcome attach_ruby(const struct interpreter_target *target,
                                            struct interpreter_process *ret_process, void **ret_own)
{
    struct ruby ruby = {.target = target, .layout = ruby_layout_find(target->file->version)};
    if (!ruby.layout)
        return INTERPRETER_REFUSED_VERSION;
    const bool is_shared = ruby.layout->frames.is_state_shared;
    if (!target->file->call_bytes || (is_shared && !target->file->shared_state))
        return INTERPRETER_REFUSED_BUILD;
    /* Before 3.0 the address of the shared variable, else a distance from the thread pointer. */
    int64_t offset = is_shared ? (int64_t)(target->bias + target->file->shared_state) : 0;
    enum interpreter_outcome outcome = find_thread(&ruby);
    if (outcome == INTERPRETER_READY)
        outcome = check_frames(&ruby);
    if (outcome == INTERPRETER_READY && !is_shared && !find_distance(&ruby, &offset))
        outcome = INTERPRETER_REFUSED_THREADS;
    if (outcome != INTERPRETER_READY)
        return outcome;
    *ret_process =
        (struct interpreter_process){.thread_offset = offset, .layout = ruby.layout->frames};
    *ret_own = ruby_codes_create(ruby.layout, target->process_id, &target->quota);
    return INTERPRETER_READY;
}

static void *ref_codes(void *own)
{
    return ruby_codes_ref(own);
}

static bool find_function(void *own, uint32_t process_id, const struct interpreted_frame *frame,
                          struct interpreter_name *ret_name)
{
    ruby_codes_find(own, process_id, frame, ret_name);
    return true;
}

static void unref_codes(void *own)
{
    ruby_codes_unref(own);
}

const struct interpreter_kind ruby_kind = {.name = "ruby",
                                           .mapping = "[ruby]",
                                           .detect = detect_ruby,
                                           .attach = attach_ruby,
                                           .ref = ref_codes,
                                           .find_name = find_function,
                                           .destroy = unref_codes};
