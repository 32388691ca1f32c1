#include "agent/process/proc_text.h"

enum {
    CONTAINER_ID_DIGITS = 64,
    STAT_FLAGS_FIELD = 9,
    STAT_THREADS_FIELD = 20,
    STAT_START_FIELD = 22
};
#define KERNEL_THREAD_FLAG UINT64_C(0x00200000) /* PF_KTHREAD of the kernel */

/* Takes the next word; words are separated by one or more blanks. */
static bool take_word(struct span *rest, struct span *ret_word)
{
    *rest = span_trim(*rest);
    struct span after;
    if (rest->size == 0)
        return false;
    if (!span_split(*rest, ' ', ret_word, &after))
        *ret_word = *rest;
    *rest = after;
    return true;
}

static struct span without_end(struct span text, const char *end)
{
    const size_t size = strlen(end);
    return span_ends_with(text, end) ? span_of(text.data, text.size - size) : text;
}

bool proc_text_mapping(struct span line, struct proc_mapping *ret_mapping)
{
    struct proc_mapping mapping = {0};
    struct span rest = line, range, rights, offset, device, inode, first, second;
    uint64_t device_major, device_minor;
    if (!take_word(&rest, &range) || !take_word(&rest, &rights) || !take_word(&rest, &offset) ||
        !take_word(&rest, &device) || !take_word(&rest, &inode) || rights.size < 4)
        return false;
    if (!span_split(range, '-', &first, &second) || !span_parse_hex(first, &mapping.start) ||
        !span_parse_hex(second, &mapping.limit) || mapping.start >= mapping.limit ||
        !span_parse_hex(offset, &mapping.file_offset) || !span_parse_u64(inode, &mapping.inode))
        return false;
    if (!span_split(device, ':', &first, &second) || !span_parse_hex(first, &device_major) ||
        !span_parse_hex(second, &device_minor))
        return false;
    mapping.device_major = (uint32_t)device_major;
    mapping.device_minor = (uint32_t)device_minor;
    mapping.is_executable = rights.data[2] == 'x';
    rest = span_trim(rest);
    mapping.path = without_end(rest, " (deleted)");
    mapping.is_deleted = mapping.path.size < rest.size;
    *ret_mapping = mapping;
    return true;
}

bool proc_text_stat(struct span text, struct proc_status *ret_status)
{
    size_t end = text.size;
    while (end && text.data[end - 1] != ')')
        end--;
    if (end == 0)
        return false;
    struct span rest = span_of(text.data + end, text.size - end), word;
    uint64_t parent = 0, flags = 0, threads = 0, start = 0;
    /* The name is the second field. */
    for (int field = 3; field <= STAT_START_FIELD; field++) {
        if (!take_word(&rest, &word))
            return false;
        bool is_number = true;
        if (field == 4)
            is_number = span_parse_u64(word, &parent);
        else if (field == STAT_FLAGS_FIELD)
            is_number = span_parse_u64(word, &flags);
        else if (field == STAT_THREADS_FIELD)
            is_number = span_parse_u64(word, &threads);
        else if (field == STAT_START_FIELD)
            is_number = span_parse_u64(word, &start);
        if (!is_number)
            return false;
    }
    ret_status->parent_id = (uint32_t)parent;
    ret_status->is_kernel_thread = flags & KERNEL_THREAD_FLAG;
    ret_status->thread_count = (uint32_t)threads;
    ret_status->start_ticks = start;
    return true;
}

/* Takes the number before the next tab of *rest. */
static bool take_user(struct span *rest, uint32_t *ret_user)
{
    struct span text;
    uint64_t number;
    span_split(*rest, '\t', &text, rest);
    *ret_user = 0;
    if (!span_parse_u64(text, &number) || number > UINT32_MAX)
        return false;
    *ret_user = (uint32_t)number;
    return true;
}

bool proc_text_users(struct span text, uint32_t *ret_real, uint32_t *ret_effective)
{
    struct span line, name, numbers;
    while (span_take_line(&text, &line)) {
        if (span_split(line, '\t', &name, &numbers) && span_equal_text(name, "Uid:"))
            return take_user(&numbers, ret_real) && take_user(&numbers, ret_effective);
    }
    return false;
}

bool proc_text_own_number(struct span text, uint64_t *ret_number)
{
    struct span line, name, numbers;
    while (span_take_line(&text, &line)) {
        if (!span_split(line, '\t', &name, &numbers) || !span_equal_text(name, "NSpid:"))
            continue;
        size_t start = numbers.size;
        while (start && numbers.data[start - 1] != '\t')
            start--;
        return span_parse_u64(span_of(numbers.data + start, numbers.size - start), ret_number);
    }
    return false;
}

/* If both hierarchies exist, the unified one may be unused: all processes are at its root then. */
struct span proc_text_cgroup(struct span text)
{
    struct span rest = text, line, number, name, path, found = {0}, unified = {0};
    while (span_take_line(&rest, &line)) {
        if (!span_split(line, ':', &number, &path) || !span_split(path, ':', &name, &path))
            continue;
        if (span_equal_text(number, "0") && name.size == 0)
            unified = path;
        if (span_equal_text(name, "name=systemd"))
            found = path;
    }
    return unified.size > 1 || found.size == 0 ? unified : found;
}

static bool is_hexadecimal(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t c = text.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

/* "docker-<id>.scope", "cri-containerd-<id>.scope", "crio-<id>.scope", "libpod-<id>.scope", "<id>".
 */
static struct span container_of(struct span part)
{
    part = without_end(part, ".scope");
    if (part.size < CONTAINER_ID_DIGITS)
        return (struct span){0};
    const struct span id =
        span_of(part.data + part.size - CONTAINER_ID_DIGITS, CONTAINER_ID_DIGITS);
    const bool is_alone = part.size == CONTAINER_ID_DIGITS || id.data[-1] == '-';
    return is_alone && is_hexadecimal(id) ? id : (struct span){0};
}

struct span proc_text_container(struct span cgroup)
{
    struct span rest = cgroup, part, found = {0};
    while (rest.size) {
        span_split(rest, '/', &part, &rest);
        const struct span id = container_of(part);
        if (id.size)
            found = id;
    }
    return found;
}

struct span proc_text_unit(struct span cgroup)
{
    struct span rest = cgroup, part, found = {0};
    while (rest.size) {
        span_split(rest, '/', &part, &rest);
        if (span_ends_with(part, ".service") ||
            (span_ends_with(part, ".scope") && container_of(part).size == 0))
            found = part;
    }
    return found;
}

struct span proc_text_slice(struct span cgroup)
{
    struct span rest = cgroup, part, found = {0};
    while (rest.size) {
        span_split(rest, '/', &part, &rest);
        if (span_ends_with(part, ".slice"))
            found = part;
    }
    return found;
}
