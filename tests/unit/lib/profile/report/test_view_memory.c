/* The bound of view_memory, compared with the memory of a process that makes the reports. */
#include "tests/unit/lib/profile/reports.h"

#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/sanitizers.h"
#include "lib/profile/profile_builder.h"
#include "lib/profile/report/flame_binary.h"
#include "lib/profile/report/top.h"
#include "lib/profile/report/view_memory.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 120000 };

static uint32_t string_of(struct profile_builder *builder, struct arena *arena, const char *begin,
                          uint32_t i)
{
    return profile_builder_string(builder, span_text(arena_printf(arena, "%s%u", begin, i)));
}

/* COUNT locations, each with its own address and, if they are named, its own function and file. */
static const struct profile *make(struct arena *arena, bool are_named)
{
    struct profile_builder *builder = profile_builder_create(NULL);
    profile_builder_add_value_type(builder, SPAN_LITERAL("n"), SPAN_LITERAL("count"));
    const struct profile_mapping mapping = {
        .limit = UINT64_MAX,
        .filename = profile_builder_string(builder, SPAN_LITERAL("/usr/lib/libshop.so.1"))};
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct profile_location place = {
            .address = i + 1, .mapping = profile_builder_mapping(builder, &mapping)};
        struct profile_line line = {.line = i};
        if (are_named) {
            const struct profile_function function = {
                .name = string_of(builder, arena, "shop::function_", i),
                .filename = string_of(builder, arena, "/build/shop/src/file_", i)};
            line.function = profile_builder_function(builder, &function);
        }
        uint32_t stack = profile_builder_location(builder, &place, &line, are_named);
        const int64_t value = 1;
        const struct profile_label label = {.key =
                                                profile_builder_string(builder, SPAN_LITERAL("id")),
                                            .text = string_of(builder, arena, "", i)};
        profile_builder_add_sample(builder, &stack, 1, &value, &label, 1);
    }
    struct profile *profile;
    struct err err;
    assert_int_equal(profile_builder_take(builder, &profile, &err), ERR_NONE);
    profile_builder_destroy(builder);
    arena_on_destroy(arena, destroy_profile, profile);
    return profile;
}

static size_t resident_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss;
}

/* Makes a flame graph in binary form. It has at most 100 nodes, so they hardly count. */
static void make_reports(const struct profile *profile, struct span group_by)
{
    arena_auto arena = arena_create();
    buf_auto output;
    buf_init(&output, 64 << 20);
    const struct view_options options = {.group_by = group_by};
    const struct view *view = view_of(arena, profile, &options);
    const struct flame *flame;
    struct err err;
    assert_int_equal(flame_create(arena, view, 100, &flame, &err), ERR_NONE);
    assert_int_equal(flame_binary_write(flame, NULL, &output, &err), ERR_NONE);
}

static void make_top(const struct profile *profile, struct span group_by)
{
    arena_auto arena = arena_create();
    const struct view_options options = {.group_by = group_by};
    top_create(arena, view_of(arena, profile, &options));
}

/* The memory that a new process needs for the reports. Its pages count once it has touched them, so
 * it first gives back those that its parent had freed. */
static size_t measure(const struct profile *profile, struct span group_by,
                      void make_report(const struct profile *profile, struct span group_by))
{
    int ends[2];
    size_t bytes = 0;
    assert_int_equal(pipe(ends), 0);
    mem_trim();
    const pid_t child = fork();
    if (child == 0) {
        const size_t before = resident_kib();
        make_report(profile, group_by);
        bytes = (resident_kib() - before) << 10;
        _exit(write(ends[1], &bytes, sizeof(bytes)) != sizeof(bytes));
    }
    assert_int_equal(read(ends[0], &bytes, sizeof(bytes)), sizeof(bytes));
    waitpid(child, NULL, 0);
    close(ends[0]);
    close(ends[1]);
    return bytes;
}

static void bounds_the_memory_of_reports_within_a_factor(void **state)
{
    (void)state;
    enum { SLACK = 4 << 20, FACTOR = 6 };
    static const char *const groups[] = {"function", "file",   "line",
                                         "address",  "binary", "label:id"};
    if (IS_SANITIZED)
        skip();
    for (int named = 0; named < 2; named++) {
        arena_auto arena = arena_create();
        const struct profile *profile = make(arena, named);
        for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
            const struct span group_by = span_text(groups[i]);
            const size_t bound = (size_t)view_memory_bytes(profile, group_by);
            const size_t flame = measure(profile, group_by, make_reports);
            const size_t top = measure(profile, group_by, make_top);
            print_message("%s: bound %zu, flame %zu, top %zu KiB\n", groups[i], bound >> 10,
                          flame >> 10, top >> 10);
            assert_in_range(flame, 0, bound + SLACK);
            assert_in_range(top, 0, bound + SLACK);
            assert_in_range(bound, 0, FACTOR * (flame > top ? flame : top) + 6 * SLACK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_the_memory_of_reports_within_a_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
