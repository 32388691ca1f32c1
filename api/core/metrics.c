#include "api/core/metrics.h"

#include "lib/base/mem.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BUCKET_COUNT = 12, REQUEST_SLOT_COUNT = 2048, MAX_METRICS = 512 };

/* Upper bounds in milliseconds; the last bucket, +Inf, counts all. */
static const int bucket_ms[BUCKET_COUNT] = {1, 2, 5, 10, 25, 50, 100, 250, 1000, 2500, 5000, 30000};

struct metric {
    const char *name;
    const char *labels;
    const char *help;
    double (*read)(void *context); /* NULL for counters */
    void *context;
    _Atomic int64_t value;
};

/* A route by its texts, which are compared as pointers. */
struct route_name {
    const char *method;
    const char *pattern;
};

/* By route and status; found by hashing, never removed. */
struct request_slot {
    struct route_name route;
    int status; /* 0: free */
    uint64_t count;
};

struct route_durations {
    struct route_name route;
    bool is_used;
    uint64_t buckets[BUCKET_COUNT];
    uint64_t count;
    int64_t sum_ns;
};

struct metrics {
    pthread_mutex_t lock;
    struct metric *metrics[MAX_METRICS];
    size_t metric_count;
    struct request_slot requests[REQUEST_SLOT_COUNT];
    size_t request_slot_count;
    struct route_durations durations[REQUEST_SLOT_COUNT / 8];
};

struct metrics *metrics_create(void)
{
    struct metrics *metrics = mem_new(struct metrics, 1);
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

void metrics_destroy(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (size_t i = 0; i < metrics->metric_count; i++) {
        struct metric *metric = metrics->metrics[i];
        mem_free((void *)(uintptr_t)metric->name);
        mem_free((void *)(uintptr_t)metric->labels);
        mem_free(metric);
    }
    pthread_mutex_destroy(&metrics->lock);
    mem_free(metrics);
}

static bool is_same_text(const char *a, const char *b)
{
    return span_equal(span_text(a), span_text(b));
}

static struct metric *find_or_add(struct metrics *metrics, const char *name, const char *labels,
                                  const char *help)
{
    for (size_t i = 0; i < metrics->metric_count; i++) {
        struct metric *metric = metrics->metrics[i];
        if (is_same_text(metric->name, name) && is_same_text(metric->labels, labels))
            return metric;
    }
    struct metric *metric = mem_new(struct metric, 1);
    metric->name = mem_strdup(name);
    metric->labels = mem_strdup(labels);
    metric->help = help;
    /* Beyond the maximum the metric works, but is not shown. */
    if (metrics->metric_count < MAX_METRICS)
        metrics->metrics[metrics->metric_count++] = metric;
    return metric;
}

struct metric *metrics_counter(struct metrics *metrics, const char *name, const char *labels,
                               const char *help)
{
    pthread_mutex_lock(&metrics->lock);
    struct metric *metric = find_or_add(metrics, name, labels, help);
    pthread_mutex_unlock(&metrics->lock);
    return metric;
}

void metric_add(struct metric *metric, int64_t amount)
{
    atomic_fetch_add_explicit(&metric->value, amount, memory_order_relaxed);
}

int64_t metric_get(const struct metric *metric)
{
    return atomic_load_explicit(&metric->value, memory_order_relaxed);
}

void metrics_gauge(struct metrics *metrics, const char *name, const char *labels, const char *help,
                   double (*read)(void *context), void *context)
{
    pthread_mutex_lock(&metrics->lock);
    struct metric *metric = find_or_add(metrics, name, labels, help);
    metric->read = read;
    metric->context = context;
    pthread_mutex_unlock(&metrics->lock);
}

static size_t hash_pointer(const void *pointer, int salt, size_t slot_count)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)pointer ^ (uint64_t)salt) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) % slot_count;
}

static bool is_same_route(struct route_name a, struct route_name b)
{
    return a.pattern == b.pattern && a.method == b.method;
}

static void count_request(struct metrics *metrics, struct route_name route, int status)
{
    size_t at = hash_pointer(route.pattern, status, REQUEST_SLOT_COUNT);
    for (size_t tries = 0; tries < REQUEST_SLOT_COUNT; tries++) {
        struct request_slot *slot = &metrics->requests[(at + tries) % REQUEST_SLOT_COUNT];
        if (slot->status == 0)
            *slot = (struct request_slot){.route = route, .status = status};
        if (is_same_route(slot->route, route) && slot->status == status) {
            slot->count++;
            return;
        }
    }
}

static void count_duration(struct metrics *metrics, struct route_name route, int64_t duration_ns)
{
    enum { SLOTS = sizeof(metrics->durations) / sizeof(*metrics->durations) };
    size_t at = hash_pointer(route.pattern, 0, SLOTS);
    for (size_t tries = 0; tries < SLOTS; tries++) {
        struct route_durations *slot = &metrics->durations[(at + tries) % SLOTS];
        if (!slot->is_used)
            *slot = (struct route_durations){.route = route, .is_used = true};
        if (!is_same_route(slot->route, route))
            continue;
        slot->count++;
        slot->sum_ns += duration_ns;
        for (int i = 0; i < BUCKET_COUNT; i++)
            slot->buckets[i] += duration_ns <= bucket_ms[i] * INT64_C(1000000);
        return;
    }
}

void metrics_observe_request(struct metrics *metrics, const char *method, const char *pattern,
                             int status, int64_t duration_ns)
{
    const struct route_name route = {.method = method, .pattern = pattern};
    pthread_mutex_lock(&metrics->lock);
    count_request(metrics, route, status);
    count_duration(metrics, route, duration_ns);
    pthread_mutex_unlock(&metrics->lock);
}

static void write_head(struct buf *buf, const char *name, const char *type, const char *help)
{
    buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_route_labels(struct buf *buf, struct route_name route)
{
    buf_printf(buf, "{method=\"%s\",route=\"%s\"", route.method, route.pattern);
}

static void write_requests(const struct metrics *metrics, struct buf *buf)
{
    write_head(buf, "perfolio_http_requests_total", "counter", "Completed requests.");
    for (size_t i = 0; i < REQUEST_SLOT_COUNT; i++) {
        const struct request_slot *slot = &metrics->requests[i];
        if (slot->status == 0)
            continue;
        buf_append_text(buf, "perfolio_http_requests_total");
        write_route_labels(buf, slot->route);
        buf_printf(buf, ",status=\"%d\"} %llu\n", slot->status, (unsigned long long)slot->count);
    }
}

static void write_duration(const struct route_durations *slot, struct buf *buf)
{
    static const char name[] = "perfolio_http_request_duration_seconds";
    for (int i = 0; i < BUCKET_COUNT; i++) {
        buf_printf(buf, "%s_bucket", name);
        write_route_labels(buf, slot->route);
        buf_printf(buf, ",le=\"%g\"} %llu\n", bucket_ms[i] / 1e3,
                   (unsigned long long)slot->buckets[i]);
    }
    buf_printf(buf, "%s_bucket", name);
    write_route_labels(buf, slot->route);
    buf_printf(buf, ",le=\"+Inf\"} %llu\n", (unsigned long long)slot->count);
    buf_printf(buf, "%s_sum", name);
    write_route_labels(buf, slot->route);
    buf_printf(buf, "} %.6f\n", (double)slot->sum_ns / 1e9);
    buf_printf(buf, "%s_count", name);
    write_route_labels(buf, slot->route);
    buf_printf(buf, "} %llu\n", (unsigned long long)slot->count);
}

static void write_durations(const struct metrics *metrics, struct buf *buf)
{
    write_head(buf, "perfolio_http_request_duration_seconds", "histogram",
               "From the arrival of the whole request to the end of its response.");
    for (size_t i = 0; i < sizeof(metrics->durations) / sizeof(*metrics->durations); i++) {
        if (metrics->durations[i].is_used)
            write_duration(&metrics->durations[i], buf);
    }
}

static void write_value(const struct metric *metric, struct buf *buf)
{
    buf_append_text(buf, metric->name);
    if (metric->labels[0])
        buf_printf(buf, "{%s}", metric->labels);
    if (metric->read)
        buf_printf(buf, " %.17g\n", metric->read(metric->context));
    else
        buf_printf(buf, " %lld\n", (long long)metric_get(metric));
}

/* The format requires all metrics of one name to be consecutive. */
static void write_registered(const struct metrics *metrics, struct buf *buf)
{
    for (size_t i = 0; i < metrics->metric_count; i++) {
        const struct metric *metric = metrics->metrics[i];
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !is_same_text(metrics->metrics[k]->name, metric->name);
        if (!is_first)
            continue;
        write_head(buf, metric->name, metric->read ? "gauge" : "counter", metric->help);
        for (size_t k = i; k < metrics->metric_count; k++) {
            if (is_same_text(metrics->metrics[k]->name, metric->name))
                write_value(metrics->metrics[k], buf);
        }
    }
}

static long resident_pages(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long total = 0, resident = 0;
    if (file) {
        if (fscanf(file, "%ld %ld", &total, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident;
}

static int open_file_count(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", ".." and the folder itself */
}

static void write_process(struct buf *buf)
{
    write_head(buf, "process_resident_memory_bytes", "gauge", "Resident memory.");
    buf_printf(buf, "process_resident_memory_bytes %lld\n",
               (long long)resident_pages() * sysconf(_SC_PAGESIZE));
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    double seconds = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    write_head(buf, "process_cpu_seconds_total", "counter", "User and system CPU time.");
    buf_printf(buf, "process_cpu_seconds_total %.3f\n", seconds);
    write_head(buf, "process_open_fds", "gauge", "Open file descriptors.");
    buf_printf(buf, "process_open_fds %d\n", open_file_count());
}

void metrics_write(struct metrics *metrics, struct buf *buf)
{
    pthread_mutex_lock(&metrics->lock);
    write_requests(metrics, buf);
    write_durations(metrics, buf);
    write_registered(metrics, buf);
    pthread_mutex_unlock(&metrics->lock);
    write_process(buf);
}
