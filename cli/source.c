#include "cli/source.h"

#include "cli/cli.h"
#include "cli/linked_object.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"

#include <unistd.h>

bool source_is_link(const char *text, struct cli *cli, struct link *ret_link)
{
    bool is_file = !link_is_url(text) && access(text, F_OK) == 0;
    return !is_file && link_parse(text, cli->arena, ret_link);
}

static enum err_code download(struct cli *cli, const char *text, const char *password,
                              struct input *input, struct err *err)
{
    linked_object_auto target = {0};
    enum err_code code = linked_object_open(cli, text, &target, err);
    if (code)
        return code;
    target.password = password;
    const char *path = arena_printf(cli->arena, "/api/v1/shares/%s/raw", target.link.a);
    return linked_object_download(&target, path, target.link.a, INPUT_MAX_BYTES, input->fd,
                                  &cli->terminal, err);
}

enum err_code source_open(struct cli *cli, const char *text, int seconds, const char *password,
                          struct input *ret_input, struct err *err)
{
    struct link link;
    if (!source_is_link(text, cli, &link))
        return input_open(text, seconds, &cli->terminal, cli->arena, ret_input, err);
    struct input input = INPUT_NONE;
    enum err_code code = input_temporary(text, link.a, cli->arena, &input, err);
    if (!code)
        code = download(cli, text, password, &input, err);
    if (!code)
        code = input_measure(&input, err);
    if (code) {
        input_close(&input);
        return err_add(err, "%s", text);
    }
    *ret_input = input;
    return ERR_NONE;
}
