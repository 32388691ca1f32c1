/*
 * Controls an object store by lines on the standard input, for tests/s3/test_s3_faults.py. The
 * environment variables PERFOLIO_TEST_S3_* select the store. The response to each line is one line,
 * "ok [NUMBER]" or "error CODE MESSAGE". Commands:
 *
 *   put KEY FILE      write KEY FILE (by an object_writer, in chunks)
 *   get KEY FILE      fd KEY FILE      range KEY OFFSET SIZE FILE
 *   count [PREFIX]    delete KEY...    sweep
 */
#include "lib/base/buf.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/base/os.h"
#include "lib/io/object_s3.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_WORDS = 64, MAX_BYTES = 256 << 20, PIECE_BYTES = 1000003 };

struct tool {
    struct object_store *store;
    char *words[MAX_WORDS];
    size_t word_count;
    uint64_t number;
    struct err err;
};

static void load(const char *path, struct buf *bytes)
{
    fd_auto fd = os_openat(AT_FDCWD, path, O_RDONLY, 0);
    ssize_t count;
    do {
        uint8_t *space = buf_reserve(bytes, PIECE_BYTES);
        count = space ? os_pread(fd, space, PIECE_BYTES, (off_t)bytes->size) : -1;
        if (count < 0)
            exit(3);
        buf_commit(bytes, (size_t)count);
    } while (count > 0);
}

static void save(const char *path, struct span bytes)
{
    fd_auto fd = os_openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || os_write_all(fd, bytes.data, bytes.size) != 0)
        exit(3);
}

static enum err_code run_put(struct tool *tool)
{
    buf_auto bytes;
    buf_init(&bytes, MAX_BYTES);
    load(tool->words[2], &bytes);
    return object_put(tool->store, tool->words[1], buf_span(&bytes), &tool->err);
}

static enum err_code run_write(struct tool *tool)
{
    buf_auto bytes;
    struct object_writer *writer;
    buf_init(&bytes, MAX_BYTES);
    load(tool->words[2], &bytes);
    enum err_code code = object_writer_open(tool->store, tool->words[1], &writer, &tool->err);
    for (size_t at = 0, size; !code && at < bytes.size; at += size) {
        size = bytes.size - at < PIECE_BYTES ? bytes.size - at : PIECE_BYTES;
        code = object_writer_append(writer, span_of(bytes.data + at, size), &tool->err);
        if (code)
            object_writer_abort(writer);
    }
    return code ? code : object_writer_commit(writer, &tool->err);
}

static enum err_code run_get(struct tool *tool)
{
    buf_auto bytes;
    buf_init(&bytes, MAX_BYTES);
    bool is_range = strcmp(tool->words[0], "range") == 0;
    enum err_code code =
        is_range
            ? object_read_range(tool->store, tool->words[1], strtoull(tool->words[2], NULL, 10),
                                strtoull(tool->words[3], NULL, 10), &bytes, &tool->err)
            : object_read(tool->store, tool->words[1], &bytes, &tool->err);
    if (!code || bytes.size)
        save(tool->words[is_range ? 4 : 2], buf_span(&bytes));
    return code;
}

static enum err_code run_fd(struct tool *tool)
{
    fd_auto fd = -1;
    buf_auto bytes;
    buf_init(&bytes, MAX_BYTES);
    enum err_code code = object_open(tool->store, tool->words[1], &fd, &tool->number, &tool->err);
    if (code)
        return code;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    load(path, &bytes);
    save(tool->words[2], buf_span(&bytes));
    return ERR_NONE;
}

static enum err_code count_object(void *context, const char *key, uint64_t size,
                                  int64_t modified_ns, struct err *err)
{
    (void)key, (void)size, (void)modified_ns, (void)err;
    ++*(uint64_t *)context;
    return ERR_NONE;
}

static enum err_code run(struct tool *tool)
{
    const char *verb = tool->words[0];
    tool->number = 0;
    if (strcmp(verb, "put") == 0 && tool->word_count == 3)
        return run_put(tool);
    if (strcmp(verb, "write") == 0 && tool->word_count == 3)
        return run_write(tool);
    if (strcmp(verb, "get") == 0 && tool->word_count == 3)
        return run_get(tool);
    if (strcmp(verb, "range") == 0 && tool->word_count == 5)
        return run_get(tool);
    if (strcmp(verb, "fd") == 0 && tool->word_count == 3)
        return run_fd(tool);
    if (strcmp(verb, "count") == 0 && tool->word_count <= 2)
        return object_list(tool->store, tool->word_count == 2 ? tool->words[1] : "", count_object,
                           &tool->number, &tool->err);
    if (strcmp(verb, "delete") == 0)
        return object_delete_many(tool->store, (const char *const *)tool->words + 1,
                                  tool->word_count - 1, &tool->err);
    if (strcmp(verb, "sweep") == 0)
        return object_sweep_temporary(tool->store, &tool->err);
    exit(2);
}

static void response(const struct tool *tool, enum err_code code)
{
    if (code)
        printf("error %s %s\n", err_code_name(code), tool->err.message);
    else
        printf("ok %llu\n", (unsigned long long)tool->number);
    fflush(stdout);
}

static int number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : 0;
}

int main(void)
{
    static char line[16384];
    struct tool tool = {0};
    const struct object_s3_options options = {
        .endpoint = getenv("PERFOLIO_TEST_S3_ENDPOINT"),
        .bucket = getenv("PERFOLIO_TEST_S3_BUCKET"),
        .prefix = getenv("PERFOLIO_TEST_S3_PREFIX"),
        .region = getenv("PERFOLIO_TEST_S3_REGION"),
        .access_key = getenv("PERFOLIO_TEST_S3_ACCESS_KEY"),
        .secret_key = getenv("PERFOLIO_TEST_S3_SECRET_KEY"),
        .ca_file = getenv("PERFOLIO_TEST_S3_CA_FILE"),
        .is_path_style = true,
        .connect_timeout_ms = 2000,
        .read_timeout_s = 1,
        .retry_s = number_of("PERFOLIO_TEST_S3_RETRY_S"),
        .upload_max_age_s = number_of("PERFOLIO_TEST_S3_UPLOAD_MAX_AGE_S"),
    };
    enum err_code code = object_s3_open(&options, &tool.store, &tool.err);
    response(&tool, code);
    while (!code && fgets(line, sizeof(line), stdin)) {
        tool.word_count = 0;
        char *rest = NULL, *word = strtok_r(line, " \n", &rest);
        for (; word && tool.word_count < MAX_WORDS; word = strtok_r(NULL, " \n", &rest))
            tool.words[tool.word_count++] = word;
        if (tool.word_count)
            response(&tool, run(&tool));
    }
    if (!code)
        object_store_close(tool.store);
    return code != ERR_NONE;
}
