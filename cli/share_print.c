#include "cli/share_print.h"

#include "cli/cli.h"
#include "cli/client.h"
#include "cli/input.h"
#include "cli/markdown.h"
#include "cli/stored_share.h"
#include "cli/upload.h"
#include "cli/value.h"
#include "lib/base/clock.h"
#include "lib/base/err.h"
#include "lib/base/mem.h"
#include "lib/profile/profile.h"

enum { MAX_LINE_BYTES = 4096, MAX_LISTED_TYPES = 6 };

enum err_code share_print_result(struct cli *cli, struct client *client, enum share_output output,
                                 const json_t *share, const struct upload_settings *settings,
                                 struct err *err)
{
    switch (output) {
    case SHARE_OUTPUT_JSON:
        json_dumpf(share, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        break;
    case SHARE_OUTPUT_MARKDOWN:
        markdown_print_share(cli, client, share, settings->password);
        break;
    case SHARE_OUTPUT_URL:
        terminal_print_clean(stdout, span_text(client_text(share, "url", "")));
        putchar('\n');
        break;
    }
    return cli_flush(err);
}

static void append_types(struct buf *line, const struct profile *profile)
{
    uint32_t count = profile->value_type_count;
    for (uint32_t i = 0; i < count && i < MAX_LISTED_TYPES; i++) {
        buf_append_text(line, i ? ", " : "");
        profile_append_type_name(profile, i, line);
    }
    if (count > MAX_LISTED_TYPES)
        buf_append_text(line, ", …");
}

/* Adds the magnitudes of all values of a type to *magnitude; false if the sum reaches 2^63 - 1. */
static bool can_be_added(const struct profile *profile, uint32_t type, uint64_t *magnitude)
{
    for (size_t i = 0; i < profile->sample_count; i++)
        if (!profile_can_add(magnitude, profile->values[i * profile->value_type_count + type]))
            return false;
    return true;
}

/* The server accepts such a profile; it can be downloaded, but not shown. */
static void warn_of_totals(struct terminal *terminal, const struct input *input,
                           const struct profile *profile)
{
    uint32_t count = 0;
    buf_auto types;
    buf_init(&types, MAX_LINE_BYTES);
    for (uint32_t i = 0; i < profile->value_type_count; i++) {
        uint64_t magnitude = 0;
        if (can_be_added(profile, i, &magnitude) || count++ >= MAX_LISTED_TYPES)
            continue;
        buf_append_text(&types, count > 1 ? ", " : "");
        profile_append_type_name(profile, i, &types);
    }
    if (count)
        terminal_warn(terminal,
                      "%.200s: the link will show no total and no report of %.*s%s: the values are "
                      "too large to be added (2^63 - 1 or more)",
                      input->name, SPAN_PRINT(buf_span(&types)),
                      count > MAX_LISTED_TYPES ? ", …" : "");
}

void share_print_profile(struct cli *cli, const struct input *input, const char *format,
                         const struct profile *profile)
{
    char size[VALUE_TEXT_BYTES], count[VALUE_TEXT_BYTES];
    buf_auto line;
    buf_init(&line, MAX_LINE_BYTES);
    buf_printf(&line, "%.200s: %s, %s, %s samples (", input->name, format,
               value_bytes(input->bytes, size), value_count(profile->sample_count, count));
    append_types(&line, profile);
    buf_append_text(&line, ")");
    terminal_note(&cli->terminal, "%.*s", SPAN_PRINT(buf_span(&line)));
    warn_of_totals(&cli->terminal, input, profile);
}

void share_print_pair(struct cli *cli, const struct profile *const profiles[2],
                      const uint32_t types[2])
{
    uint64_t together = 0, alone = 0;
    /* The upload of a side that is too large by itself warns already. */
    if (!can_be_added(profiles[0], types[0], &together) ||
        can_be_added(profiles[1], types[1], &together) ||
        !can_be_added(profiles[1], types[1], &alone))
        return;
    buf_auto type;
    buf_init(&type, MAX_LINE_BYTES);
    profile_append_type_name(profiles[1], types[1], &type);
    terminal_warn(&cli->terminal,
                  "the link will show no report of %.*s: the values of both sides together are too "
                  "large to be added (2^63 - 1 or more)",
                  SPAN_PRINT(buf_span(&type)));
}

static const char *viewers_of(const struct upload_settings *settings)
{
    const char *visibility = settings->visibility;
    if (visibility && strcmp(visibility, "team") == 0)
        return "to your team (--visibility changes that)";
    if (visibility && strcmp(visibility, "public") == 0)
        return "to everyone, and listed by search engines";
    if (settings->password || (visibility && strcmp(visibility, "password") == 0))
        return "to those who have the link and the password";
    return "to everyone who has the link (--visibility changes that)";
}

void share_print_details(struct cli *cli, const json_t *share,
                         const struct upload_settings *settings)
{
    char time[VALUE_TEXT_BYTES], distance[VALUE_TEXT_BYTES];
    struct terminal *terminal = &cli->terminal;
    const char *url = client_text(share, "url", "");
    const char *expires = client_text(share, "expires_at", NULL);
    struct err err = {0};
    if (expires)
        terminal_note(terminal, "  expires  %s (%s)", value_time(expires, time),
                      value_distance(expires, clock_wall_ns() / CLOCK_NS_PER_S, distance));
    else
        terminal_note(terminal, "  expires  never");
    const char *name = settings->filename ? settings->filename : "";
    if (stored_share_add(share, name, settings->title, &err)) {
        terminal_warn(terminal,
                      "the delete token could not be stored (%s); delete the share here: %s",
                      err.message, client_text(share, "delete_url", ""));
        return;
    }
    terminal_note(terminal, "  visible  %s", viewers_of(settings));
    terminal_note(terminal, "  delete   perfolio delete %s", url);
}
