#include "cli/input.h"

#include "cli/client.h"
#include "cli/link.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/io/http_client.h"
#include "lib/profile/formats/format.h"
#include "lib/profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_REDIRECTS = 5,
    COPY_BYTES = 256 << 10,
    DEFAULT_PROFILE_SECONDS = 30, /* default of net/http/pprof's CPU profile */
    SPARE_SECONDS = 60,           /* a URL may send nothing for the measured time and this time */
    MAX_MEASURED_SECONDS = 24 * 3600,
    MAX_FILENAME_BYTES = 255,
    REASON_BYTES = 200, /* of a response other than 2xx, for the message */
};

static enum err_code open_temporary(struct arena *arena, int *ret_fd, struct err *err)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || folder[0] != '/')
        folder = "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) { /* the file system does not support O_TMPFILE */
        char *path = arena_printf(arena, "%s/perfolio-XXXXXX", folder);
        fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            unlink(path);
    }
    if (fd < 0)
        return err_set_errno(err, ERR_IO, "creating a temporary file in %s", folder);
    *ret_fd = fd;
    return ERR_NONE;
}

static bool write_all(int fd, const uint8_t *data, size_t size)
{
    while (size) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            data += written;
            size -= (size_t)written;
        }
    }
    return true;
}

/* Copies everything from one descriptor to another, up to INPUT_MAX_BYTES. */
static enum err_code copy_stream(int from, int to, const char *name, struct err *err)
{
    arena_auto arena = arena_create();
    uint8_t *piece = arena_alloc_raw(arena, COPY_BYTES, 1);
    uint64_t total = 0;
    for (;;) {
        ssize_t taken = read(from, piece, COPY_BYTES);
        if (taken == 0)
            return ERR_NONE;
        if (taken < 0 && errno == EINTR)
            continue;
        if (taken < 0)
            return err_set_errno(err, ERR_IO, "reading %s", name);
        total += (uint64_t)taken;
        if (total > INPUT_MAX_BYTES)
            return err_set(err, ERR_TOO_LARGE, "%s is larger than 4 GiB", name);
        if (!write_all(to, piece, (size_t)taken))
            return err_set_errno(err, ERR_IO, "writing a temporary file");
    }
}

/* The last part of a path in plain characters; the server refuses names with others. */
static const char *make_filename(const char *path, size_t length, struct arena *arena)
{
    buf_auto name;
    buf_init(&name, 4 * MAX_FILENAME_BYTES);
    while (length && path[length - 1] == '/')
        length--;
    size_t start = length;
    while (start && path[start - 1] != '/')
        start--;
    if (length - start > MAX_FILENAME_BYTES)
        length = start + MAX_FILENAME_BYTES;
    terminal_append_clean(&name, span_of(path + start, length - start));
    return arena_strndup(arena, name.data, name.size);
}

enum err_code input_measure(struct input *input, struct err *err)
{
    struct stat status;
    if (fstat(input->fd, &status))
        return err_set_errno(err, ERR_IO, "reading %s", input->name);
    if (status.st_size <= 0)
        return err_set(err, ERR_INVALID, "%s is empty", input->name);
    if ((uint64_t)status.st_size > INPUT_MAX_BYTES)
        return err_set(err, ERR_TOO_LARGE, "%s is larger than 4 GiB", input->name);
    input->bytes = (uint64_t)status.st_size;
    return ERR_NONE;
}

/* Copies a pipe, terminal or device to a temporary file; takes ownership of stream. */
static enum err_code open_stream(int stream, struct arena *arena, struct input *input,
                                 struct err *err)
{
    enum err_code code = open_temporary(arena, &input->fd, err);
    if (!code)
        code = copy_stream(stream, input->fd, input->name, err);
    close(stream);
    return code ? code : input_measure(input, err);
}

/* The length of the scheme of a URL ("ftp" in "ftp://host"); 0 for other texts. */
static size_t scheme_length(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
    size_t length = strspn(text, letters);
    return strncmp(text + length, "://", 3) == 0 ? length : 0;
}

static enum err_code open_file(const char *path, struct arena *arena, struct input *input,
                               struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t scheme = scheme_length(path);
    if (fd < 0 && errno == ENOENT && scheme)
        return err_set(err, ERR_UNSUPPORTED,
                       "%.200s: the scheme %.*s is not supported, http and https only; give a file "
                       "by its path",
                       path, scheme > 40 ? 40 : (int)scheme, path);
    if (fd < 0)
        return err_set_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "opening %s", path);
    input->name = path;
    input->filename = make_filename(path, strlen(path), arena);
    if (fstat(fd, &status)) {
        err_set_errno(err, ERR_IO, "reading %s", path);
        close(fd);
        return err->code;
    }
    if (S_ISDIR(status.st_mode)) {
        close(fd);
        return err_set(err, ERR_INVALID, "%s is a directory: give the files in it", path);
    }
    if (!S_ISREG(status.st_mode))
        return open_stream(fd, arena, input, err);
    input->fd = fd;
    return input_measure(input, err);
}

static bool has_type(const struct http_client_response *response, const char *type)
{
    struct span value = http_client_response_field(response, "content-type"), name, parameters;
    span_split(value, ';', &name, &parameters);
    name = span_trim(name);
    return name.size == strlen(type) && strncasecmp((const char *)name.data, type, name.size) == 0;
}

/* The error text of a response: the detail of a problem document, or the line that net/http/pprof
 * writes. HTML pages are ignored. */
static const char *reason_of(const struct http_client_response *response, struct arena *arena)
{
    struct span line = {0}, rest = span_trim(buf_span(&response->body));
    if (has_type(response, "application/problem+json")) {
        json_auto_t *problem = json_loadb((const char *)rest.data, rest.size, 0, NULL);
        const char *title = client_text(problem, "title", "");
        line = span_text(arena_strdup(arena, client_text(problem, "detail", title)));
    } else if (has_type(response, "text/plain")) {
        span_take_line(&rest, &line);
        line = span_trim(line);
    }
    if (line.size == 0)
        return "it has no profile at this path";
    return arena_printf(arena, "%.*s", line.size > REASON_BYTES ? REASON_BYTES : (int)line.size,
                        (const char *)line.data);
}

static enum err_code describe_refusal(const struct http_client_response *response, const char *url,
                                      struct arena *arena, struct err *err)
{
    enum err_code code = response->status == 404                              ? ERR_NOT_FOUND
                         : response->status == 401 || response->status == 403 ? ERR_FORBIDDEN
                                                                              : ERR_NETWORK;
    return err_set(err, code, "%s returned status %d: %s", url, response->status,
                   reason_of(response, arena));
}

static enum err_code fetch_url(const char *url, int stall_timeout_s, struct terminal *terminal,
                               struct arena *arena, struct input *input, struct err *err)
{
    struct http_client_settings settings = {
        .user_agent = CLI_USER_AGENT,
        .ca_file = getenv("PERFOLIO_CA_FILE"),
        .keeps_system_cas = true,
        .max_redirects = MAX_REDIRECTS,
        .stall_timeout_s = stall_timeout_s,
    };
    http_client_auto client = NULL;
    enum err_code code = http_client_create(&settings, &client, err);
    if (code)
        return code;
    struct progress progress = {.terminal = terminal, .name = input->filename};
    struct http_client_request request;
    http_client_request_init(&request, "GET", url);
    request.response_fd = input->fd;
    request.max_response_bytes = INPUT_MAX_BYTES;
    progress_of_download(&progress, &request);
    http_client_response_auto response;
    http_client_response_init(&response);
    code = http_client_send(client, &request, &response, err);
    terminal_progress_end(terminal);
    if (code)
        return code;
    if (response.status < 200 || response.status > 299)
        return describe_refusal(&response, input->name, arena, err);
    return ERR_NONE;
}

/* The URL without user name and password, to be shown and stored. */
static const char *without_user(const char *url, struct arena *arena)
{
    const char *host = strstr(url, "://") + 3;
    const char *end = host + strcspn(host, "/?#");
    const char *at = memrchr(host, '@', (size_t)(end - host));
    return at ? arena_printf(arena, "%.*s%s", (int)(host - url), url, at + 1) : url;
}

/* The start of the value of the first parameter "seconds", the one that net/http/pprof uses. */
static const char *find_seconds(const char *url)
{
    static const char name[] = "seconds=";
    for (const char *at = strchr(url, '?'); at; at = strchr(at + 1, '&')) {
        if (strncmp(at + 1, name, strlen(name)) == 0)
            return at + 1 + strlen(name);
    }
    return NULL;
}

static int seconds_of(const char *url)
{
    const char *value = find_seconds(url);
    uint64_t seconds;
    if (!value || !span_parse_u64(span_of(value, strcspn(value, "&")), &seconds))
        return DEFAULT_PROFILE_SECONDS;
    return seconds > MAX_MEASURED_SECONDS ? MAX_MEASURED_SECONDS : (int)seconds;
}

static const char *with_seconds(const char *url, int seconds, struct arena *arena)
{
    const char *value = find_seconds(url);
    if (value)
        return arena_printf(arena, "%.*s%d%s", (int)(value - url), url, seconds,
                            value + strcspn(value, "&"));
    return arena_printf(arena, "%s%cseconds=%d", url, strchr(url, '?') ? '&' : '?', seconds);
}

static enum err_code open_url(const char *url, int seconds, struct terminal *terminal,
                              struct arena *arena, struct input *input, struct err *err)
{
    url = arena_strndup(arena, url, strcspn(url, "#"));
    if (seconds)
        url = with_seconds(url, seconds, arena);
    input->name = without_user(url, arena);
    const char *host = strstr(input->name, "://") + 3;
    input->filename = make_filename(host, strcspn(host, "?"), arena);
    enum err_code code = open_temporary(arena, &input->fd, err);
    if (code)
        return code;
    if (seconds)
        terminal_note(terminal, "measuring for %d s: %s", seconds, input->name);
    code = fetch_url(url, seconds_of(url) + SPARE_SECONDS, terminal, arena, input, err);
    return code ? code : input_measure(input, err);
}

enum err_code input_open(const char *argument, int seconds, struct terminal *terminal,
                         struct arena *arena, struct input *ret_input, struct err *err)
{
    struct input input = INPUT_NONE;
    enum err_code code;
    if (strcmp(argument, "-") == 0) {
        input.name = "standard input";
        input.filename = "stdin";
        int copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        code = copy < 0 ? err_set_errno(err, ERR_IO, "reading standard input")
                        : open_stream(copy, arena, &input, err);
    } else if (link_is_url(argument)) {
        code = open_url(argument, seconds, terminal, arena, &input, err);
    } else {
        code = open_file(argument, arena, &input, err);
    }
    if (code)
        input_close(&input);
    else
        *ret_input = input;
    return code;
}

enum err_code input_temporary(const char *name, const char *filename, struct arena *arena,
                              struct input *ret_input, struct err *err)
{
    struct input input = {.fd = -1, .name = name, .filename = filename};
    enum err_code code = open_temporary(arena, &input.fd, err);
    if (code)
        return code;
    *ret_input = input;
    return ERR_NONE;
}

enum err_code input_from_bytes(struct span bytes, const char *filename, struct arena *arena,
                               struct input *ret_input, struct err *err)
{
    struct input input = INPUT_NONE;
    enum err_code code = input_temporary(filename, filename, arena, &input, err);
    if (!code && !write_all(input.fd, bytes.data, bytes.size))
        code = err_set_errno(err, ERR_IO, "writing a temporary file");
    if (!code)
        code = input_measure(&input, err);
    if (code)
        input_close(&input);
    else
        *ret_input = input;
    return code;
}

void input_close(struct input *input)
{
    if (input->map)
        munmap(input->map, input->bytes);
    if (input->fd >= 0)
        close(input->fd);
    *input = INPUT_NONE;
}

enum err_code input_map(struct input *input, struct span *ret_bytes, struct err *err)
{
    if (!input->map) {
        void *map = mmap(NULL, input->bytes, PROT_READ, MAP_PRIVATE, input->fd, 0);
        if (map == MAP_FAILED)
            return err_set_errno(err, ERR_IO, "reading %s", input->name);
        input->map = map;
    }
    *ret_bytes = span_of(input->map, input->bytes);
    return ERR_NONE;
}

enum err_code input_decode(struct input *input, const char **ret_format,
                           struct profile **ret_profile, struct err *err)
{
    struct span bytes;
    enum format format;
    enum err_code code = input_map(input, &bytes, err);
    if (!code)
        code = format_decode(bytes, NULL, &format, ret_profile, err);
    if (code)
        return err_add(err, "%s", input->name);
    if (ret_format)
        *ret_format = format_name(format);
    return ERR_NONE;
}

void input_warn(const struct input *input, const struct profile *profile, struct terminal *terminal)
{
    if (profile->warning)
        terminal_warn(terminal, "%s: %.*s", input->name,
                      SPAN_PRINT(profile_string(profile, profile->warning)));
}
