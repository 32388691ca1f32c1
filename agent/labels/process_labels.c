#include "agent/labels/process_labels.h"

#include "agent/labels/container_metadata.h"
#include "agent/labels/label_set.h"
#include "agent/labels/label_source.h"
#include "agent/labels/pods.h"
#include "agent/labels/relabel.h"
#include "agent/process/binaries.h"
#include "agent/process/proc_text.h"
#include "agent/process/process.h"
#include "agent/process/process_file.h"
#include "agent/process/procfs_file.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PROC_MAX_BYTES = 256 << 10,
    KEY_MAX_BYTES = 256 << 10,
    TEXT_BYTES = 320,
    PATH_BYTES = 4096,
    EARLY_PAUSE_NS = 100 * 1000 * 1000,
};

struct process_labels {
    struct arena *arena;
    struct batch_text_label *labels;
    size_t count;
    struct buf key;
    uint64_t generation; /* pods_generation() at made_ns */
    uint32_t program;    /* the executed program at made_ns; BINARY_NONE: it was not mapped yet */
    int64_t made_ns;     /* when the labels were collected */
    int64_t pause_ns;    /* until empty files are read again; 0: none was empty */
    bool has_container;
    bool is_wanted;
};

/* ---- collecting ---- */

/* A process whose labels are being collected. */
struct search {
    struct label_source *source;
    const struct process *process;
    struct label_set *set;
    struct span cgroup; /* in the arena of set */
    bool has_container;
    bool is_early; /* no arguments or variables: the process may still be within execve */
};

static void put_label(struct search *search, const char *name, struct span value)
{
    if (value.size)
        label_set_put(search->set, span_text(name), value);
}

/* Adds a label that only rules see. */
static void put_meta(struct search *search, const char *name, struct span value)
{
    if (search->source->settings.rules)
        put_label(search, name, value);
}

static void put_both(struct search *search, const char *name, const char *meta, struct span value)
{
    put_label(search, name, value);
    put_meta(search, meta, value);
}

static bool read_proc(struct search *search, const char *name, struct buf *text)
{
    char path[64];
    struct err ignored;
    buf_clear(text);
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", search->process->shown_id, name);
    const enum err_code code = procfs_file_read(path, text, &ignored);
    search->is_early = search->is_early || (!code && text->size == 0);
    return !code || (code == ERR_TOO_LARGE && text->size);
}

/* Reads cmdline or environ, which the kernel reads from the memory of the process. False: the text
 * cannot be read. */
static bool read_own_text(struct search *search, const char *name, struct buf *text)
{
    buf_clear(text);
    const bool is_read = process_file_read_text(search->process->shown_id, name, text);
    search->is_early = search->is_early || (is_read && text->size == 0);
    return is_read;
}

static struct span last_part(struct span path)
{
    size_t start = path.size;
    while (start && path.data[start - 1] != '/')
        start--;
    return span_of(path.data + start, path.size - start);
}

/* ---- the program ---- */

/* The path of the program in /proc/PID/exe; empty: it is no file, or the process has ended. */
static struct span path_in_proc(const struct search *search)
{
    char link[64], path[PATH_BYTES];
    snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", search->process->shown_id);
    const ssize_t size = readlink(link, path, sizeof(path));
    if (process_has_ended(search->process) || size <= 0 || size == sizeof(path) || path[0] != '/')
        return (struct span){0};
    struct span found = span_of(path, (size_t)size);
    if (span_ends_with(found, " (deleted)"))
        found.size -= strlen(" (deleted)");
    return span_of(arena_strndup(search->set->arena, found.data, found.size), found.size);
}

/* Adds the labels from the program's file. The mapping of the program does not exist yet if the
 * sample was taken within execve. */
static void find_mapped_program(struct search *search, const struct binary *binary)
{
    const struct program_info *facts = label_source_program(search->source, search->process);
    const struct span build_id = span_text(binary->build_id);
    put_both(search, "process_executable_build_id_gnu", "__meta_process_executable_build_id",
             build_id);
    put_meta(search, "__meta_process_executable_file_id", build_id);
    put_both(search, "process_executable_compiler", "__meta_process_executable_compiler",
             span_text(facts->compiler));
    put_meta(search, "__meta_process_executable_static",
             span_text(facts->is_static ? "true" : "false"));
    put_meta(search, "__meta_process_executable_stripped",
             span_text(facts->is_stripped ? "true" : "false"));
}

static void find_program(struct search *search)
{
    const struct process *process = search->process;
    const struct binary *binary = process->program == BINARY_NONE
                                      ? NULL
                                      : binaries_get(search->source->binaries, process->program);
    struct span path = path_in_proc(search);
    /* The path of the binary is the second choice: files with one build id, such as copies or
     * links, are one binary, which has the path of the first of them. */
    if (!path.size && binary)
        path = span_text(binary->path);
    const char *name = process->name[0] ? process->name : "unknown";
    put_label(search, "process_command", span_text(process->name));
    put_both(search, "process_executable_name", "__meta_process_executable_name",
             path.size ? last_part(path) : span_text(name));
    put_label(search, "process_executable_path", path);
    if (binary)
        find_mapped_program(search, binary);
}

/* The command line as one text, with blanks in place of the NULs after each word. */
static void find_command_line(struct search *search)
{
    char number[24];
    buf_auto text;
    buf_init(&text, PROC_MAX_BYTES);
    snprintf(number, sizeof(number), "%" PRIu32, search->process->process_id);
    put_meta(search, "__meta_process_pid", span_text(number));
    snprintf(number, sizeof(number), "%" PRIu32, search->process->parent_id);
    put_meta(search, "__meta_process_ppid", span_text(number));
    if (!search->source->settings.rules || !read_own_text(search, "cmdline", &text))
        return;
    while (text.size && text.data[text.size - 1] == 0)
        text.size--;
    for (size_t i = 0; i < text.size; i++)
        text.data[i] = text.data[i] ? text.data[i] : ' ';
    put_meta(search, "__meta_process_cmdline", buf_span(&text));
}

static void put_variable(struct search *search, struct span name, struct span value)
{
    char label[TEXT_BYTES];
    snprintf(label, sizeof(label), "process_environment_variable_%.*s", SPAN_PRINT(name));
    put_label(search, label, value);
    snprintf(label, sizeof(label), "__meta_env_var_%.*s", SPAN_PRINT(name));
    put_meta(search, label, value);
}

static void find_environment(struct search *search)
{
    const struct label_settings *settings = &search->source->settings;
    struct span rest, variable, name, value;
    buf_auto text;
    buf_init(&text, PROC_MAX_BYTES);
    if (settings->environment_count == 0 || !read_own_text(search, "environ", &text))
        return;
    rest = buf_span(&text);
    while (rest.size) {
        span_split(rest, 0, &variable, &rest);
        if (!span_split(variable, '=', &name, &value))
            continue;
        for (size_t i = 0; i < settings->environment_count; i++) {
            if (span_equal(settings->environment[i], name))
                put_variable(search, name, value);
        }
    }
}

/* ---- where it runs ---- */

static void find_container(struct search *search, struct span id)
{
    const struct label_settings *settings = &search->source->settings;
    const struct span runtime = container_metadata_runtime(search->cgroup);
    put_label(search, "container_id", id);
    put_label(search, "container_runtime", runtime);
    if (span_equal_text(runtime, "containerd"))
        put_meta(search, "__meta_containerd_container_id", id);
    if (span_equal_text(runtime, "docker"))
        put_meta(search, "__meta_docker_container_id", id);
    (void)container_metadata_find(settings->host_root, id, search->set);
    if (settings->pods)
        (void)pods_find(settings->pods, id, search->set);
    search->has_container = true;
}

static void find_cgroup(struct search *search)
{
    buf_auto text;
    buf_init(&text, PROC_MAX_BYTES);
    if (!read_proc(search, "cgroup", &text))
        return;
    const struct span cgroup = proc_text_cgroup(buf_span(&text));
    search->cgroup =
        span_of(arena_strndup(search->set->arena, cgroup.data, cgroup.size), cgroup.size);
    put_meta(search, "__meta_process_cgroup", cgroup);
    if (!span_equal_text(cgroup, "/"))
        put_label(search, "cgroup", cgroup);
    put_label(search, "systemd_unit", proc_text_unit(cgroup));
    put_label(search, "systemd_slice", proc_text_slice(cgroup));
    const struct span id = proc_text_container(cgroup);
    if (id.size)
        find_container(search, id);
}

static void find_service(struct search *search)
{
    static const char *const best_first[] = {"k8s_pod_label_app_kubernetes_io_name",
                                             "k8s_container_name"};
    const struct span unit = label_set_get(search->set, SPAN_LITERAL("systemd_unit"));
    struct span service = {0};
    for (size_t i = 0; i < 2 && service.size == 0; i++)
        service = label_set_get(search->set, span_text(best_first[i]));
    if (service.size == 0 && span_ends_with(unit, ".service"))
        service = span_of(unit.data, unit.size - strlen(".service"));
    if (service.size == 0)
        service = label_set_get(search->set, SPAN_LITERAL("process_executable_name"));
    put_label(search, "service_name", service);
}

static void find_host(struct search *search)
{
    const struct label_source *source = search->source;
    put_label(search, "host_name", span_text(source->host.nodename));
    put_label(search, "host_cpu_model_name", source->cpu_model);
    put_both(search, "os_kernel_release", "__meta_system_kernel_release",
             span_text(source->host.release));
    put_meta(search, "__meta_system_kernel_machine", span_text(source->host.machine));
}

/* ---- labels in the form in which they are sent ---- */

/* The name under which a label is sent: OpenTelemetry's, with '.' where the rules see '_'. */
static struct span sent_name(struct arena *arena, struct span name)
{
    static const char *const known[] = {"service.name",
                                        "process.executable.name",
                                        "process.executable.path",
                                        "process.command",
                                        "process.executable.build_id.gnu",
                                        "process.executable.compiler",
                                        "container.id",
                                        "container.name",
                                        "container.runtime",
                                        "container.image.name",
                                        "k8s.pod.name",
                                        "k8s.pod.uid",
                                        "k8s.namespace.name",
                                        "k8s.container.name",
                                        "k8s.node.name",
                                        "systemd.unit",
                                        "systemd.slice",
                                        "host.name",
                                        "host.cpu.model.name",
                                        "os.kernel.release"};
    static const char *const prefixes[] = {"k8s.pod.label.", "process.environment_variable."};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (batch_labels_becomes(span_text(known[i]), name))
            return span_text(known[i]);
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        const size_t size = strlen(prefixes[i]);
        if (name.size > size &&
            batch_labels_becomes(span_text(prefixes[i]), span_of(name.data, size)))
            return span_text(arena_printf(arena, "%s%.*s", prefixes[i], (int)(name.size - size),
                                          (const char *)name.data + size));
    }
    return name;
}

static struct span cut_value(struct span value)
{
    size_t size = value.size < PROCESS_LABEL_MAX_BYTES ? value.size : PROCESS_LABEL_MAX_BYTES;
    while (size < value.size && size && (value.data[size] & 0xc0) == 0x80)
        size--;
    return span_of(value.data, size);
}

static int compare_labels(const void *a, const void *b)
{
    const struct batch_text_label *x = a, *y = b;
    return span_compare(x->name, y->name);
}

static void append_sized(struct buf *key, struct span bytes)
{
    buf_append_u32(key, (uint32_t)bytes.size);
    buf_append_span(key, bytes);
}

/* Copies the labels that are sent; the arena of the set, with those for rules only, is freed. */
static void keep_labels(struct process_labels *labels, const struct label_set *set)
{
    labels->labels = arena_new(labels->arena, struct batch_text_label, set->count);
    for (uint32_t i = 0; i < set->count && labels->count < PROCESS_LABELS_MAX; i++) {
        const struct span name = set->labels[i].name, value = cut_value(set->labels[i].value);
        if (span_starts_with(name, "__"))
            continue;
        const struct span sent = sent_name(labels->arena, name);
        labels->labels[labels->count++] = (struct batch_text_label){
            .name = span_of(arena_strndup(labels->arena, sent.data, sent.size), sent.size),
            .value = span_of(arena_strndup(labels->arena, value.data, value.size), value.size)};
    }
    qsort(labels->labels, labels->count, sizeof(*labels->labels), compare_labels);
    for (size_t i = 0; i < labels->count; i++) {
        append_sized(&labels->key, labels->labels[i].name);
        append_sized(&labels->key, labels->labels[i].value);
    }
}

static struct process_labels *create_labels(struct label_source *source,
                                            const struct process *process)
{
    const struct label_settings *settings = &source->settings;
    arena_auto arena = arena_create();
    struct label_set set;
    struct search search = {.source = source, .process = process, .set = &set};
    struct process_labels *labels = mem_new(struct process_labels, 1);
    *labels = (struct process_labels){
        .arena = arena_create(), .program = process->program, .made_ns = clock_monotonic_ns()};
    buf_init(&labels->key, KEY_MAX_BYTES);
    label_set_init(&set, arena);
    if (settings->pods)
        labels->generation = pods_generation(settings->pods);
    find_program(&search);
    find_command_line(&search);
    find_environment(&search);
    labels->pause_ns = search.is_early ? EARLY_PAUSE_NS : 0;
    find_cgroup(&search);
    find_host(&search);
    find_service(&search);
    for (size_t i = 0; i < settings->external_count; i++)
        label_set_put(&set, settings->external[i].name, settings->external[i].value);
    labels->is_wanted = relabel_apply(settings->rules, &set);
    labels->has_container = search.has_container;
    keep_labels(labels, &set);
    return labels;
}

/* Whether something that the labels were made from has changed since. */
static bool are_outdated(const struct process_labels *labels, const struct label_source *source,
                         const struct process *process)
{
    return labels->program != process->program ||
           (labels->pause_ns && clock_monotonic_ns() - labels->made_ns >= labels->pause_ns) ||
           (labels->has_container && source->settings.pods &&
            labels->generation != pods_generation(source->settings.pods));
}

/* Whether /proc still shows the process; otherwise the old labels stay. */
static bool is_in_proc(const struct process *process)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%" PRIu32, process->shown_id);
    return !process_has_ended(process) && access(path, F_OK) == 0;
}

void process_labels_renew(struct process_labels **labels, struct label_source *source,
                          const struct process *process)
{
    struct process_labels *old = *labels;
    if (old && (!are_outdated(old, source, process) || !is_in_proc(process)))
        return;
    *labels = create_labels(source, process);
    /* Some processes never get arguments or variables, so the pauses between attempts grow. */
    if (old && (*labels)->pause_ns)
        (*labels)->pause_ns = old->pause_ns ? 2 * old->pause_ns : EARLY_PAUSE_NS;
    process_labels_destroy(old);
}

void process_labels_destroy(struct process_labels *labels)
{
    if (!labels)
        return;
    buf_fini(&labels->key);
    arena_destroy(labels->arena);
    mem_free(labels);
}

bool process_labels_are_wanted(const struct process_labels *labels)
{
    return labels->is_wanted;
}

const struct batch_text_label *process_labels_get(const struct process_labels *labels,
                                                  size_t *ret_count)
{
    *ret_count = labels->count;
    return labels->labels;
}

struct span process_labels_key(const struct process_labels *labels)
{
    return buf_span(&labels->key);
}
