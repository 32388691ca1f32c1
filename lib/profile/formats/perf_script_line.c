#include "lib/profile/formats/perf_script_line.h"

enum { TOKENS_MAX = 24, NS_DIGITS = 9 };

/* The first words of a line. comm may contain blanks, so words are interpreted from the right. */
struct tokens {
    struct span line;
    struct span words[TOKENS_MAX];
    size_t count;
};

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static void split_words(struct span line, struct tokens *ret_tokens)
{
    *ret_tokens = (struct tokens){.line = line};
    for (size_t at = 0; at < line.size && ret_tokens->count < TOKENS_MAX;) {
        while (at < line.size && is_blank(line.data[at]))
            at++;
        size_t start = at;
        while (at < line.size && !is_blank(line.data[at]))
            at++;
        if (at > start)
            ret_tokens->words[ret_tokens->count++] = span_of(line.data + start, at - start);
    }
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* "203265.377019:" as nanoseconds; perf prints six digits, or nine with --ns. */
static bool parse_time(struct span word, int64_t *ret_time_ns)
{
    struct span seconds, fraction;
    uint64_t whole, part = 0;
    if (!span_ends_with(word, ":") ||
        !span_split(span_of(word.data, word.size - 1), '.', &seconds, &fraction))
        return false;
    if (!span_parse_u64(seconds, &whole) || fraction.size == 0 || fraction.size > NS_DIGITS ||
        !span_parse_u64(fraction, &part))
        return false;
    for (size_t i = fraction.size; i < NS_DIGITS; i++)
        part *= 10;
    if (__builtin_mul_overflow(whole, UINT64_C(1000000000), &whole) ||
        __builtin_add_overflow(whole, part, &whole) || whole > INT64_MAX)
        return false;
    *ret_time_ns = (int64_t)whole;
    return true;
}

/* "123/124", or "124": by default perf prints only the thread's id. -1 means unknown. */
static bool parse_pid(struct span word, struct perf_script_event *event)
{
    struct span first, second;
    int64_t pid = -1, tid;
    bool has_both = span_split(word, '/', &first, &second);
    if (!span_parse_i64(has_both ? second : first, &tid) ||
        (has_both && !span_parse_i64(first, &pid)))
        return false;
    event->pid = pid;
    event->tid = tid;
    return true;
}

static bool is_cpu(struct span word)
{
    uint64_t number;
    return word.size > 2 && word.data[0] == '[' && word.data[word.size - 1] == ']' &&
           span_parse_u64(span_of(word.data + 1, word.size - 2), &number);
}

/* "12" or "12 [001]" before end: a thread without comm (-F tid,…). */
static bool parse_tid_alone(const struct tokens *tokens, size_t end,
                            struct perf_script_event *event)
{
    return (end == 1 || (end == 2 && is_cpu(tokens->words[1]))) &&
           parse_pid(tokens->words[0], event);
}

/* Reads comm and the ids of the thread from the words before end, and ignores the cpu and the flags
 * that -F +flags prints after it. Returns whether there is a thread id. comm may be set without
 * one. */
static bool parse_thread(const struct tokens *tokens, size_t end, struct perf_script_event *event)
{
    if (parse_tid_alone(tokens, end, event))
        return true;
    size_t at = end;
    while (at > 1) {
        at--;
        if (parse_pid(tokens->words[at], event)) {
            const uint8_t *start = tokens->words[0].data;
            event->comm = span_trim(span_of(start, (size_t)(tokens->words[at].data - start)));
            return true;
        }
        if (!is_cpu(tokens->words[at]) && end - at > 2)
            break;
    }
    while (end > 1 && is_cpu(tokens->words[end - 1]))
        end--;
    if (end == 0)
        return false;
    const uint8_t *start = tokens->words[0].data;
    const struct span last = tokens->words[end - 1];
    event->comm = span_of(start, (size_t)(last.data + last.size - start));
    return false;
}

static struct span text_after(const struct tokens *tokens, size_t index)
{
    const struct span word = tokens->words[index];
    const uint8_t *end = tokens->line.data + tokens->line.size;
    const uint8_t *start = word.data + word.size;
    return span_trim(span_of(start, (size_t)(end - start)));
}

static bool is_event_name(struct span word)
{
    return word.size > 1 && word.data[word.size - 1] == ':';
}

/* perf's periods are unsigned; larger ones than INT64_MAX become INT64_MAX. */
static bool parse_period(struct span word, int64_t *ret_period)
{
    uint64_t period;
    if (span_parse_i64(word, ret_period))
        return true;
    if (!span_parse_u64(word, &period))
        return false;
    *ret_period = INT64_MAX;
    return true;
}

/* The number of words of the event's name at index: one, or two as in "raw 0x1c2:"; 0: none. */
static size_t count_name_words(const struct tokens *tokens, size_t index)
{
    if (index < tokens->count && is_event_name(tokens->words[index]))
        return 1;
    const bool is_raw = index + 1 < tokens->count && span_equal_text(tokens->words[index], "raw") &&
                        is_event_name(tokens->words[index + 1]);
    return is_raw ? 2 : 0;
}

/* "1001001 cpu-clock:" or "cpu-clock:" at index. */
static void parse_period_and_name(const struct tokens *tokens, size_t index,
                                  struct perf_script_event *event)
{
    if (index < tokens->count && parse_period(tokens->words[index], &event->period) &&
        count_name_words(tokens, index + 1)) {
        event->has_period = true;
        index++;
    }
    const size_t words = count_name_words(tokens, index);
    if (words) {
        const struct span last = tokens->words[index + words - 1];
        const uint8_t *start = tokens->words[index].data;
        event->name = span_of(start, (size_t)(last.data + last.size - 1 - start));
        event->rest = text_after(tokens, index + words - 1);
    } else if (index > 0) {
        event->rest = text_after(tokens, index - 1);
    }
    if (!event->has_period)
        event->period = 1;
}

/* Whether the number after comm is a period and no thread: perf pads threads to 5 or 7 characters
 * and periods to 10. */
static bool is_period_column(const struct tokens *tokens, size_t index)
{
    enum { PERIOD_WIDTH = 10 };
    int64_t number;
    const struct span before = tokens->words[index - 1], word = tokens->words[index];
    const uint8_t *column = before.data + before.size + 1;
    return parse_period(word, &number) && word.data + word.size - column >= PERIOD_WIDTH;
}

/* Without a time, the event's name is the first word that ends in a colon. The words before it may
 * be a pid, a period, or both: "forks 9 1001001 cycles:", "forks 9 cycles:". */
static bool parse_without_time(const struct tokens *tokens, struct perf_script_event *event)
{
    for (size_t i = 1; i < tokens->count; i++) {
        int64_t number;
        if (!count_name_words(tokens, i))
            continue;
        if (i >= 2 && is_period_column(tokens, i - 1)) {
            parse_thread(tokens, i - 1, event);
            parse_period_and_name(tokens, i - 1, event);
            return true;
        }
        bool has_period = i >= 3 && parse_period(tokens->words[i - 1], &number) &&
                          (is_cpu(tokens->words[i - 2]) || parse_pid(tokens->words[i - 2], event));
        size_t start = has_period ? i - 1 : i;
        if (start < 2 || !parse_thread(tokens, start, event))
            return false;
        parse_period_and_name(tokens, start, event);
        return true;
    }
    return false;
}

/* Whether the line is only "comm 12" or "comm 12 [001]". */
static bool ends_with_thread(const struct tokens *tokens)
{
    struct perf_script_event event;
    size_t end = tokens->count;
    if (end > 2 && is_cpu(tokens->words[end - 1]))
        end--;
    return end > 1 && end < TOKENS_MAX && parse_pid(tokens->words[end - 1], &event);
}

bool perf_script_parse_event(struct span line, bool is_lenient, struct perf_script_event *ret_event)
{
    struct tokens tokens;
    split_words(line, &tokens);
    struct perf_script_event event = {.pid = -1, .tid = -1, .time_ns = -1, .period = 1};
    for (size_t i = 0; i < tokens.count; i++) {
        if (!parse_time(tokens.words[i], &event.time_ns))
            continue;
        parse_thread(&tokens, i, &event);
        parse_period_and_name(&tokens, i + 1, &event);
        *ret_event = event;
        return true;
    }
    /* Without a time the line may also belong to a stack; those lines begin with a blank. */
    if (line.size == 0 || is_blank(line.data[0]))
        return false;
    bool is_event = parse_without_time(&tokens, &event);
    if (!is_event && is_lenient)
        is_event = ends_with_thread(&tokens) && parse_thread(&tokens, tokens.count, &event);
    if (is_event)
        *ret_event = event;
    return is_event;
}

/* Finds the "(" that the ")" at the end of the line closes; false unless a blank precedes it. */
static bool find_last_group(struct span text, size_t *ret_open)
{
    size_t depth = 0;
    if (!span_ends_with(text, ")"))
        return false;
    for (size_t at = text.size; at > 0; at--) {
        uint8_t byte = text.data[at - 1];
        if (byte == ')') {
            depth++;
        } else if (byte == '(' && --depth == 0) {
            *ret_open = at - 1;
            return at == 1 || is_blank(text.data[at - 2]);
        }
    }
    return false;
}

bool perf_script_is_record(struct span line)
{
    static const char word[] = "PERF_RECORD_";
    struct tokens tokens;
    struct perf_script_event event;
    /* Every line is checked and hardly any is a record, so the cheap test comes first. */
    if (!memmem(line.data, line.size, word, strlen(word)))
        return false;
    split_words(line, &tokens);
    for (size_t i = 1; i < tokens.count; i++) {
        if (!span_starts_with(tokens.words[i], word))
            continue;
        /* "1234 PERF_RECORD_name (/bin/perf)" is a frame: an address, a symbol and a binary. */
        size_t open;
        if (i == 1 && find_last_group(span_trim(line), &open) &&
            !span_ends_with(span_trim(line), " (deleted)"))
            return false;
        return parse_time(tokens.words[i - 1], &event.time_ns) ||
               parse_pid(tokens.words[i - 1], &event) || is_cpu(tokens.words[i - 1]);
    }
    return false;
}

/* Removes the offset that perf appends to functions, and with -F +dsoff to binaries: "beta+0x12".
 */
static struct span cut_offset(struct span symbol)
{
    uint64_t offset;
    for (size_t at = symbol.size; at > 2; at--) {
        if (symbol.data[at - 1] != 'x')
            continue;
        bool is_offset = symbol.data[at - 2] == '0' && symbol.data[at - 3] == '+' &&
                         span_parse_hex(span_of(symbol.data + at, symbol.size - at), &offset);
        return is_offset ? span_of(symbol.data, at - 3) : symbol;
    }
    return symbol;
}

static void parse_binary(struct span *text, struct perf_script_frame *frame)
{
    size_t open;
    if (!find_last_group(*text, &open))
        return;
    struct span file = span_of(text->data + open + 1, text->size - open - 2);
    *text = span_trim(span_of(text->data, open));
    if (span_equal_text(file, "inlined"))
        frame->is_inlined = true;
    else if (!span_equal_text(file, "[unknown]"))
        frame->file = cut_offset(file);
}

bool perf_script_parse_frame(struct span line, struct perf_script_frame *ret_frame)
{
    struct perf_script_frame frame = {0};
    line = span_trim(line);
    size_t at = 0;
    while (at < line.size && !is_blank(line.data[at]))
        at++;
    struct span word = span_of(line.data, at);
    bool has_address = !span_starts_with(word, "0x") && span_parse_hex(word, &frame.address);
    struct span text = has_address ? span_trim(span_of(line.data + at, line.size - at)) : line;
    parse_binary(&text, &frame);
    /* Without an address, only a binary distinguishes a frame from any other text. */
    if (!has_address && !frame.file.size && !frame.is_inlined)
        return false;
    frame.symbol = cut_offset(text);
    if (span_equal_text(frame.symbol, "[unknown]"))
        frame.symbol = span_of(NULL, 0);
    *ret_frame = frame;
    return true;
}

bool perf_script_parse_source(struct span line, struct span *ret_file, int64_t *ret_line)
{
    line = span_trim(line);
    size_t at = line.size;
    while (at && is_digit(line.data[at - 1]))
        at--;
    if (at < 2 || at == line.size || line.data[at - 1] != ':')
        return false;
    struct span file = span_of(line.data, at - 1);
    if (memchr(file.data, ' ', file.size) ||
        !span_parse_i64(span_of(line.data + at, line.size - at), ret_line))
        return false;
    *ret_file = file;
    return true;
}
