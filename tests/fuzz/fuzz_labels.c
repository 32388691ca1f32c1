/* Sources of labels: rules, lists of pods, state files of container runtimes. The first byte
 * selects one. */
#include "tests/fuzz/fuzz.h"

#include "agent/labels/label_set.h"
#include "agent/labels/pods.h"
#include "agent/labels/program_info.h"
#include "agent/labels/relabel.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/base/span_utf8.h"

#include <sys/mman.h>

static void check_set(const struct label_set *set)
{
    fuzz_check(set->count <= LABEL_SET_MAX);
    for (uint32_t i = 0; i < set->count; i++) {
        fuzz_check(label_set_is_name(set->labels[i].name) && set->labels[i].value.size);
        fuzz_check(span_is_utf8(set->labels[i].value));
    }
}

static void read_rules(struct span text)
{
    arena_auto arena = arena_create();
    struct relabel_rules *rules;
    struct label_set set;
    struct err err;
    const enum err_code code = relabel_read(text, arena, &rules, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return;
    }
    label_set_init(&set, arena);
    label_set_put(&set, SPAN_LITERAL("a"), SPAN_LITERAL("foo"));
    label_set_put(&set, SPAN_LITERAL("__meta_b"), SPAN_LITERAL("B\xc3\xa4r\n"));
    (void)relabel_apply(rules, &set);
    check_set(&set);
}

static void read_pods(struct span json)
{
    arena_auto arena = arena_create();
    struct pod_list *list;
    struct label_set set;
    struct err err;
    const enum err_code code = pod_list_read(json, arena, &list, &err);
    if (code) {
        fuzz_check(fuzz_is_refusal(code, &err));
        return;
    }
    label_set_init(&set, arena);
    (void)pod_list_find(list, SPAN_LITERAL("a"), &set);
    check_set(&set);
}

static void read_program(struct span bytes)
{
    struct program_info facts;
    fd_auto fd = memfd_create("elf", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && os_write_all(fd, bytes.data, bytes.size) == 0);
    program_info_read(fd, &facts);
    fuzz_check(memchr(facts.compiler, 0, sizeof(facts.compiler)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct span) = {read_rules, read_pods, read_program};
    if (size == 0)
        return 0;
    readers[data[0] % (sizeof(readers) / sizeof(*readers))](span_of(data + 1, size - 1));
    return 0;
}
