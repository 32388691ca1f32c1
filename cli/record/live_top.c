#include "cli/record/live_top.h"

#include "agent/agent.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/record/local_names.h"
#include "cli/report.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/base/vec.h"
#include "lib/profile/report/view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
    PLAIN_ROWS = 20,
    HEAD_ROWS = 3, /* title, total, names of the columns */
    DEFAULT_ROWS = 24,
    STDOUT_BYTES = 64 << 10,
    KEY_MAX_BYTES = 4096,
};

struct slice {
    struct window_result window;
    struct slice *next;
};

struct live_top {
    struct cli cli; /* a copy for the internal thread, with its own arena */
    bool is_unnamed;
    pthread_t thread;
    int wake_fd;             /* readable if there are slices, or the thread has to end */
    int keyboard_fd;         /* -1: not on a terminal */
    struct termios terminal; /* its mode before take_screen */
    pthread_mutex_t lock;
    struct slice *slices; /* oldest first; protected by lock, like is_stopping */
    bool is_stopping;
    atomic_bool is_ended;

    /* Used by the internal thread only. */
    struct local_names *names;
    struct map_bytes rows_by_name; /* key: name, NUL, file */
    struct report_row *rows;
    size_t row_count;
    size_t row_capacity;
    struct report report; /* totals and type */
    uint64_t samples;
    int64_t started_ns;
};

/* ---- adding up ---- */

static struct report_row *find_row(struct live_top *live, const struct report_row *like)
{
    struct arena *arena = live->cli.arena;
    buf_auto key;
    buf_init(&key, SIZE_MAX / 2);
    buf_append_span(&key, like->name);
    buf_append_byte(&key, 0);
    buf_append_span(&key, like->file);
    const uint32_t known = map_bytes_find(&live->rows_by_name, buf_span(&key));
    if (known != MAP_ABSENT)
        return &live->rows[known];
    vec_reserve(live->rows, live->row_capacity, live->row_count + 1);
    const char *text = arena_strndup(arena, key.data, key.size);
    struct report_row *row = &live->rows[live->row_count];
    *row = (struct report_row){.name = span_of(text, like->name.size),
                               .file = span_of(text + like->name.size + 1, like->file.size)};
    map_bytes_add(&live->rows_by_name, span_of(text, key.size), (uint32_t)live->row_count++);
    return row;
}

static struct span keep(struct live_top *live, struct span text)
{
    return text.size ? span_of(arena_strndup(live->cli.arena, text.data, text.size), text.size)
                     : text;
}

static void add_report(struct live_top *live, const struct report *report)
{
    if (!live->report.sample_type.size) {
        live->report.sample_type = keep(live, report->sample_type);
        live->report.unit = keep(live, report->unit);
    }
    live->report.total += report->total;
    for (size_t i = 0; i < report->row_count; i++) {
        struct report_row *row = find_row(live, &report->rows[i]);
        row->flat += report->rows[i].flat;
        row->cum += report->rows[i].cum;
    }
}

static void add_slice(struct live_top *live, const struct window_result *window)
{
    arena_auto arena = arena_create();
    struct profile named = *window->profile;
    struct local_names_counts counts;
    const struct view_options options = {0};
    const struct view *view;
    struct report report;
    struct err ignored;
    live->samples += window->samples;
    /* Addresses without a name are shown as binary and address. */
    if (!live->is_unnamed &&
        local_names_symbolize(live->names, window->profile, arena, &named, &counts, &ignored))
        named = *window->profile;
    if (window->samples == 0 || view_create(arena, &named, &options, &view, &ignored))
        return;
    report_from_view(view, 0, arena, &report);
    add_report(live, &report);
}

/* ---- showing ---- */

static int by_cost(const void *a, const void *b)
{
    const struct report_row *const *left = a, *const *right = b;
    if ((*left)->flat != (*right)->flat)
        return (*left)->flat < (*right)->flat ? 1 : -1;
    if ((*left)->cum != (*right)->cum)
        return (*left)->cum < (*right)->cum ? 1 : -1;
    return 0;
}

/* Returns the number of rows that fit into the window now. */
static size_t measure(struct live_top *live)
{
    struct winsize size;
    if (live->keyboard_fd < 0)
        return PLAIN_ROWS;
    if (ioctl(live->keyboard_fd, TIOCGWINSZ, &size) || !size.ws_row || !size.ws_col)
        return DEFAULT_ROWS - HEAD_ROWS - 1;
    live->cli.terminal.columns = size.ws_col;
    return size.ws_row > HEAD_ROWS + 1 ? size.ws_row - HEAD_ROWS - 1 : 1;
}

static void print_table(struct live_top *live, size_t space, const char *advice)
{
    arena_auto arena = arena_create();
    const double seconds =
        (double)(clock_monotonic_ns() - live->started_ns) / (double)CLOCK_NS_PER_S;
    struct report report = live->report;
    const struct report_row **order =
        arena_new(arena, const struct report_row *, live->row_count + 1);
    for (size_t i = 0; i < live->row_count; i++)
        order[i] = &live->rows[i];
    qsort(order, live->row_count, sizeof(*order), by_cost);
    report.row_count = live->row_count < space ? live->row_count : space;
    report.function_count = report.row_count; /* prevents the hint at --limit */
    report.rows = arena_new(arena, struct report_row, report.row_count + 1);
    for (size_t i = 0; i < report.row_count; i++)
        report.rows[i] = *order[i];
    printf("%.0f s, %llu samples, %zu functions%s\n", seconds, (unsigned long long)live->samples,
           live->row_count, advice);
    if (live->samples)
        report_print_table(&live->cli, &report);
}

/* Holds the lock while printing, so that nothing is printed after live_top_stop has restored the
 * screen. */
static void print_screen(struct live_top *live)
{
    const bool has_screen = live->keyboard_fd >= 0;
    pthread_mutex_lock(&live->lock);
    if (!live->is_stopping) {
        fputs(has_screen ? "\033[H\033[2J" : "", stdout);
        print_table(live, measure(live), has_screen ? "; q ends" : "");
        fputs(has_screen ? "" : "\n", stdout);
        fflush(stdout);
    }
    pthread_mutex_unlock(&live->lock);
}

/* ---- the thread ---- */

static struct slice *take_slices(struct live_top *live, bool *ret_is_stopping)
{
    pthread_mutex_lock(&live->lock);
    struct slice *slices = live->slices;
    live->slices = NULL;
    *ret_is_stopping = live->is_stopping;
    pthread_mutex_unlock(&live->lock);
    return slices;
}

static void read_keys(struct live_top *live, struct pollfd *keyboard)
{
    char keys[KEY_MAX_BYTES];
    if (!keyboard->revents)
        return;
    const ssize_t got = read(live->keyboard_fd, keys, sizeof(keys));
    if (got <= 0)
        keyboard->fd = -1; /* the terminal is gone */
    for (ssize_t i = 0; i < got; i++) {
        if (keys[i] == 'q' || keys[i] == 'Q')
            atomic_store(&live->is_ended, true);
    }
}

/* Returns true if the thread has to end. */
static bool read_slices(struct live_top *live)
{
    uint64_t ignored;
    bool is_stopping;
    if (read(live->wake_fd, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
        return true;
    struct slice *slices = take_slices(live, &is_stopping);
    const bool has_some = slices;
    for (struct slice *next; slices; slices = next) {
        next = slices->next;
        add_slice(live, &slices->window);
        window_result_fini(&slices->window);
        mem_free(slices);
    }
    if (has_some)
        print_screen(live);
    if (ferror(stdout)) /* the reader closed it */
        atomic_store(&live->is_ended, true);
    return is_stopping;
}

static void *update_table(void *context)
{
    struct live_top *live = context;
    struct pollfd polled[] = {{.fd = live->wake_fd, .events = POLLIN},
                              {.fd = live->keyboard_fd, .events = POLLIN}};
    if (live->keyboard_fd >= 0)
        print_screen(live);
    for (;;) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            return NULL;
        read_keys(live, &polled[1]);
        if (read_slices(live))
            return NULL;
    }
}

/* ---- life ---- */

/* Reads keys without echo and line buffering. Ctrl-Z is disabled, because a resumed process would
 * not have its screen any more. */
static void take_screen(struct live_top *live)
{
    struct termios silent;
    live->keyboard_fd = -1;
    if (!live->cli.terminal.is_output_terminal)
        return;
    live->keyboard_fd = os_openat(AT_FDCWD, "/dev/tty", O_RDWR, 0);
    if (live->keyboard_fd < 0 || tcgetattr(live->keyboard_fd, &live->terminal)) {
        os_close(live->keyboard_fd);
        live->keyboard_fd = -1;
        return;
    }
    silent = live->terminal;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ICANON);
    silent.c_cc[VSUSP] = _POSIX_VDISABLE;
    interrupt_set_screen(live->keyboard_fd, &live->terminal);
    tcsetattr(live->keyboard_fd, TCSAFLUSH, &silent);
    setvbuf(stdout, NULL, _IOFBF, STDOUT_BYTES);
    fputs("\033[?1049h\033[?25l", stdout);
    fflush(stdout);
}

enum err_code live_top_start(const struct cli *cli, struct mapped_files *files,
                             struct live_top **ret_live, struct err *err)
{
    struct live_top *live = mem_new(struct live_top, 1);
    live->cli = *cli;
    live->cli.arena = arena_create();
    live->cli.terminal.is_silent =
        true; /* problems with files are reported at the end of the recording */
    live->is_unnamed = files == NULL;
    live->started_ns = clock_monotonic_ns();
    live->names = local_names_create(&live->cli, files, LOCAL_NAMES_LIVE);
    live->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&live->lock, NULL);
    take_screen(live);
    if (live->wake_fd < 0 || pthread_create(&live->thread, NULL, update_table, live)) {
        err_set_errno(err, ERR_IO, "a thread that shows the recording");
        live->is_stopping = true;
        live_top_stop(live);
        return ERR_IO;
    }
    *ret_live = live;
    return ERR_NONE;
}

static void wake(const struct live_top *live)
{
    const uint64_t one = 1;
    if (write(live->wake_fd, &one, sizeof(one)) < 0)
        return; /* the counter is full, so the thread is awake */
}

void live_top_stop(struct live_top *live)
{
    if (!live)
        return;
    if (!live->is_stopping) {
        pthread_mutex_lock(&live->lock);
        live->is_stopping = true;
        interrupt_give_screen_back();
        pthread_mutex_unlock(&live->lock);
        wake(live);
        pthread_join(live->thread, NULL);
        print_table(live, PLAIN_ROWS, "");
        fflush(stdout);
    }
    interrupt_give_screen_back();
    os_close(live->keyboard_fd);
    os_close(live->wake_fd);
    local_names_destroy(live->names);
    map_bytes_fini(&live->rows_by_name);
    mem_free(live->rows);
    pthread_mutex_destroy(&live->lock);
    arena_destroy(live->cli.arena);
    mem_free(live);
}

void live_top_add(struct live_top *live, const struct window_result *slice)
{
    struct slice *given = mem_new(struct slice, 1);
    struct slice **end = &live->slices;
    given->window = *slice;
    pthread_mutex_lock(&live->lock);
    while (*end)
        end = &(*end)->next;
    *end = given;
    pthread_mutex_unlock(&live->lock);
    wake(live);
}

bool live_top_is_ended(const struct live_top *live)
{
    return live && atomic_load(&live->is_ended);
}
