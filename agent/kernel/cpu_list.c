#include "agent/kernel/cpu_list.h"

#include "agent/process/procfs_file.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

enum { CPUS_MAX = 16384, TEXT_MAX_BYTES = 64 << 10 };

static bool parse_range(struct span range, uint64_t *ret_first, uint64_t *ret_last)
{
    struct span first, last;
    if (!span_split(range, '-', &first, &last))
        last = first;
    return span_parse_u64(first, ret_first) && span_parse_u64(last, ret_last) &&
           *ret_first <= *ret_last && *ret_last < CPUS_MAX;
}

enum err_code cpu_list_parse(struct span text, struct arena *arena, uint32_t **ret_cpus,
                             uint32_t *ret_count, struct err *err)
{
    struct span rest = span_trim(text), range;
    uint32_t *cpus = arena_new(arena, uint32_t, CPUS_MAX);
    uint32_t count = 0;
    while (rest.size) {
        uint64_t first, last;
        span_split(rest, ',', &range, &rest);
        if (!parse_range(range, &first, &last) || (count && first <= cpus[count - 1]))
            return err_set(err, ERR_INVALID, "%.*s is not a list of CPUs",
                           text.size > 100 ? 100 : (int)text.size, (const char *)text.data);
        for (; first <= last; first++)
            cpus[count++] = (uint32_t)first;
    }
    if (count == 0)
        return err_set(err, ERR_INVALID, "the list of CPUs is empty");
    *ret_cpus = cpus;
    *ret_count = count;
    return ERR_NONE;
}

enum err_code cpu_list_online(struct arena *arena, uint32_t **ret_cpus, uint32_t *ret_count,
                              struct err *err)
{
    buf_auto text;
    buf_init(&text, TEXT_MAX_BYTES);
    enum err_code code = procfs_file_read("/sys/devices/system/cpu/online", &text, err);
    return code ? code : cpu_list_parse(buf_span(&text), arena, ret_cpus, ret_count, err);
}

/* Returns the CPUs of `list` that are (is_in) or are not in `other`. */
static struct cpu_list filter(struct cpu_list list, struct cpu_list other, bool is_in,
                              struct arena *arena)
{
    uint32_t *kept = arena_new(arena, uint32_t, list.count + 1);
    uint32_t count = 0, at = 0;
    for (uint32_t i = 0; i < list.count; i++) {
        while (at < other.count && other.cpus[at] < list.cpus[i])
            at++;
        if ((at < other.count && other.cpus[at] == list.cpus[i]) == is_in)
            kept[count++] = list.cpus[i];
    }
    return (struct cpu_list){kept, count};
}

struct cpu_list cpu_list_common(struct cpu_list one, struct cpu_list other, struct arena *arena)
{
    return filter(one, other, true, arena);
}

struct cpu_list cpu_list_difference(struct cpu_list from, struct cpu_list without,
                                    struct arena *arena)
{
    return filter(from, without, false, arena);
}
