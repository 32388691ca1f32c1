#include "cli/linked_object.h"

#include "cli/progress.h"
#include "lib/base/err.h"
#include "lib/base/os.h"
#include "lib/profile/formats/text_input.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum err_code linked_object_open(struct cli *cli, const char *text,
                                 struct linked_object *ret_target, struct err *err)
{
    struct linked_object target = {0};
    if (!link_parse(text, cli->arena, &target.link))
        return cli_usage(cli, err, "%.200s is neither a Perfolio link nor the id of a share", text);
    if (target.link.is_diff)
        return cli_usage(cli, err, "%.200s is a diff: give one of its two shares", text);
    enum err_code code = cli_connect(cli, target.link.base, &target.client, err);
    if (code)
        return code;
    *ret_target = target;
    return ERR_NONE;
}

void linked_object_close(struct linked_object *target)
{
    client_destroy(target->client);
    target->client = NULL;
}

void linked_object_add_password(const struct linked_object *target, struct client_request *request)
{
    if (target->password)
        client_request_add(request, "X-Perfolio-Password", target->password);
}

/* Whether the statistics of a query's response, "blocks=3, …, rows=0, …", contain rows=0. */
static bool has_no_rows(const struct http_client_response *response)
{
    const struct span fields = http_client_response_field(response, "Perfolio-Statistics");
    return memmem(fields.data, fields.size, " rows=0,", 8) != NULL;
}

static enum err_code download(const struct linked_object *target, const char *path,
                              const char *name, uint64_t max_bytes, int fd,
                              struct terminal *terminal, struct err *err)
{
    http_client_response_auto response;
    http_client_response_init(&response);
    struct progress progress = {.terminal = terminal, .name = name};
    struct client_request request;
    client_request_init(&request, "GET", path);
    linked_object_add_password(target, &request);
    request.http.response_fd = fd;
    request.http.max_response_bytes = max_bytes;
    progress_of_download(&progress, &request.http);
    enum err_code code = client_send(target->client, &request, &response, err);
    terminal_progress_end(terminal);
    if (target->ret_is_empty)
        *target->ret_is_empty = !code && has_no_rows(&response);
    return code ? cli_check_reader(fd, err) : ERR_NONE;
}

static enum err_code print_text(int from_fd, int terminal_fd, struct err *err)
{
    struct stat status;
    if (fstat(from_fd, &status) != 0)
        return err_set_errno(err, ERR_IO, "reading the download");
    const size_t size = (size_t)status.st_size;
    void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, from_fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        return err_set_errno(err, ERR_IO, "reading the download");
    FILE *file = fdopen(dup(terminal_fd), "w");
    enum err_code code = ERR_NONE;
    if (text_input_is_binary(span_of(bytes, size)))
        code = err_set(
            err, ERR_INVALID,
            "this format cannot be written to a terminal: give a file with -o, or redirect the "
            "output");
    else if (file)
        terminal_print_text(file, span_of(bytes, size));
    if (!file || fclose(file) != 0)
        code = code ? code : err_set_errno(err, ERR_IO, "writing to the terminal");
    if (size)
        munmap(bytes, size);
    return code;
}

enum err_code linked_object_download(const struct linked_object *target, const char *path,
                                     const char *name, uint64_t max_bytes, int fd,
                                     struct terminal *terminal, struct err *err)
{
    if (!isatty(fd))
        return download(target, path, name, max_bytes, fd, terminal, err);
    fd_auto memory_fd = memfd_create("download", MFD_CLOEXEC);
    if (memory_fd < 0)
        return err_set_errno(err, ERR_IO, "memory for the download");
    const enum err_code code = download(target, path, name, max_bytes, memory_fd, terminal, err);
    return code ? code : print_text(memory_fd, fd, err);
}
