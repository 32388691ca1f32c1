#include "cli/admin/admin.h"
#include "cli/admin/admin_table.h"

#include <ctype.h>

enum { MAX_OPTIONS = 16 };

static void print_usage(const char *noun, const char *verb, const char *arguments,
                        const char *summary)
{
    printf("Usage: perfolio admin %s%s%s%s%s\n", noun, verb ? " " : "", verb ? verb : "",
           arguments ? " " : "", arguments ? arguments : "");
    printf("%c%s.\n\n", toupper((unsigned char)summary[0]), summary + 1);
}

static void print_program(const struct admin_program *program)
{
    print_usage(program->noun, NULL, program->arguments, program->summary);
    puts(program->text);
}

/* Prints only the options that this call uses. */
static void print_call(const struct admin_call *call)
{
    struct option_row rows[MAX_OPTIONS + 2] = {0};
    size_t count = 0;
    for (const struct option_row *row = admin_options; row->name; row++) {
        unsigned uses = admin_option_uses(row->name);
        if (count < MAX_OPTIONS && (!uses || (call->uses & uses)))
            rows[count++] = *row;
    }
    rows[count] = (struct option_row){
        .name = "help", .letter = '?', .help = "Give this help list", .group = -1};
    print_usage(call->noun, call->verb, call->arguments, call->summary);
    options_print_list(&(struct option_table){.rows = rows});
}

/* Prints all calls of a noun; if it is NULL, all calls and programs. Returns false if the noun has
 * no calls. */
static bool print_calls(const struct cli *cli, const char *noun)
{
    const char *bold = terminal_style(&cli->terminal, stdout, STYLE_BOLD);
    const char *reset = terminal_style(&cli->terminal, stdout, STYLE_RESET);
    bool is_known = false;
    for (size_t i = 0; i < admin_call_count; i++) {
        const struct admin_call *call = &admin_calls[i];
        if (noun && strcmp(call->noun, noun) != 0)
            continue;
        is_known = true;
        printf("  %s%s%s%s%s%s%s\n      %s\n", bold, call->noun, call->verb ? " " : "",
               call->verb ? call->verb : "", reset, call->arguments ? " " : "",
               call->arguments ? call->arguments : "", call->summary);
    }
    for (const struct admin_program *program = admin_programs; !noun && program->noun; program++)
        printf("  %s%s%s %s\n      %s\n", bold, program->noun, reset, program->arguments,
               program->summary);
    return is_known;
}

/* Converts "help token create" to "token create --help"; true for "help" alone. */
static bool shift_help(struct admin *admin)
{
    if (strcmp(admin->noun, "help") != 0)
        return false;
    if (admin->arguments.count == 0)
        return true;
    admin->noun = *admin->arguments.texts++;
    admin->arguments.count--;
    return false;
}

enum err_code admin_help(struct admin *admin, struct err *err)
{
    if (shift_help(admin)) {
        print_calls(admin->cli, NULL);
        return cli_flush(err);
    }
    for (const struct admin_program *program = admin_programs; program->noun; program++) {
        if (strcmp(program->noun, admin->noun) == 0) {
            print_program(program);
            return cli_flush(err);
        }
    }
    const struct admin_call *call = admin_find_call(admin);
    if (call)
        print_call(call);
    else if (admin->arguments.count || !print_calls(admin->cli, admin->noun))
        return admin_refuse(admin, err);
    return cli_flush(err);
}
