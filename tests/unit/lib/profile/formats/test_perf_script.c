#include "lib/base/buf.h"
#include "tests/unit/lib/profile/stacks.h"

#include "lib/profile/formats/perf_script.h"
#include "lib/profile/formats/perf_script_line.h"

static void assert_event(const char *line, const char *comm, int64_t pid, int64_t tid,
                         const char *name, int64_t period)
{
    struct perf_script_event event;
    assert_true(perf_script_parse_event(span_text(line), true, &event));
    assert_true(span_equal_text(event.comm, comm));
    assert_int_equal(event.pid, pid);
    assert_int_equal(event.tid, tid);
    assert_true(span_equal_text(event.name, name));
    assert_int_equal(event.period, period);
}

static void events_are_read_with_whatever_fields_they_have(void **state)
{
    (void)state;
    assert_event("forks     9 [002] 203265.377019:    1001001 cpu-clock: ", "forks", -1, 9,
                 "cpu-clock", 1001001);
    assert_event("a   9/10     198791.127353: cpu-clock: ", "a", 9, 10, "cpu-clock", 1);
    assert_event("Web Content 12/13 [000] 1.5: 7 cycles:ppp: ", "Web Content", 12, 13, "cycles:ppp",
                 7);
    assert_event("kworker/0:1  77 [000] d..2. 12.25: sched:sched_switch: prev_comm=a",
                 "kworker/0:1", -1, 77, "sched:sched_switch", 1);
    assert_event("comm 12 33 cycles: ", "comm", -1, 12, "cycles", 33);
    assert_event("comm 12 cycles: ", "comm", -1, 12, "cycles", 1);
    assert_event("comm 12 [003] 33 cycles:u: ", "comm", -1, 12, "cycles:u", 33);
    assert_event("comm 12", "comm", -1, 12, "", 1);
    assert_event("comm 1.5: ", "comm", -1, -1, "", 1);
    assert_event("swapper -1/-1 [000] 1.5: 1 cycles: ", "swapper", -1, -1, "cycles", 1);
    assert_event("203265.377019:    1001001 cpu-clock: ", "", -1, -1, "cpu-clock", 1001001);
    assert_event("     77 1.5: cycles: ", "", -1, 77, "cycles", 1);
    assert_event("  77/78 [001] 1.5: cycles: ", "", 77, 78, "cycles", 1);
    assert_event("a 9 1.5: 18446744073709551615 cycles: ", "a", -1, 9, "cycles", INT64_MAX);
    /* Without threads, and raw events. */
    assert_event("node          1 page-faults: ", "node", -1, -1, "page-faults", 1);
    assert_event("node    5025125 cpu-clock: ", "node", -1, -1, "cpu-clock", 5025125);
    assert_event("node    1234 cpu-clock: ", "node", -1, 1234, "cpu-clock", 1);
    assert_event("a b 9/10         250000 raw 0x1c2: ", "a b", 9, 10, "raw 0x1c2", 250000);
    assert_event("a 9 1.5:     250000 raw 0x1c2: ", "a", -1, 9, "raw 0x1c2", 250000);
    struct perf_script_event event;
    assert_false(perf_script_parse_event(SPAN_LITERAL("12 cycles: "), true, &event));
    assert_false(perf_script_parse_event(SPAN_LITERAL("\t 6f1 beta (/apps/a)"), true, &event));
    assert_false(perf_script_parse_event(SPAN_LITERAL("comm 12"), false, &event));
    assert_false(perf_script_parse_event(SPAN_LITERAL(""), true, &event));
}

static void assert_frame(const char *line, uint64_t address, const char *symbol, const char *file)
{
    struct perf_script_frame frame;
    assert_true(perf_script_parse_frame(span_text(line), &frame));
    assert_int_equal(frame.address, address);
    assert_true(span_equal_text(frame.symbol, symbol));
    assert_true(span_equal_text(frame.file, file));
}

static void frames_are_read_with_whatever_fields_they_have(void **state)
{
    (void)state;
    assert_frame("\t   6f1 beta+0x12 (/apps/a b)", 0x6f1, "beta", "/apps/a b");
    assert_frame(" 10 std::map<int, (x)>::at(int) const+0xf (/lib/x.so (deleted))", 0x10,
                 "std::map<int, (x)>::at(int) const", "/lib/x.so (deleted)");
    assert_frame(" ffffffffad14d115 [unknown] ([kernel.kallsyms])", 0xffffffffad14d115u, "",
                 "[kernel.kallsyms]");
    assert_frame(" 6ce258d4c544155 [unknown] ([unknown])", 0x6ce258d4c544155, "", "");
    assert_frame(" 6f1 beta+0x12 (/apps/a b+0x6f1)", 0x6f1, "beta", "/apps/a b");
    assert_frame(" abc operator()", 0xabc, "operator()", "");
    assert_frame(" 7f00", 0x7f00, "", "");
    assert_frame("\tbeta (/apps/a)", 0, "beta", "/apps/a");
    struct perf_script_frame frame;
    assert_false(perf_script_parse_frame(SPAN_LITERAL("  main.c:12"), &frame));
    assert_true(perf_script_parse_frame(SPAN_LITERAL(" 10 f (inlined)"), &frame));
    assert_true(frame.is_inlined);
}

static const char plain[] = "# ========\n"
                            "# hostname : box\n"
                            "# total memory : 1 kB\n"
                            "# cmdline : perf record -g ./app\n"
                            "#\n"
                            "app 1/2 [003] 12.000001:  1000 cpu-clock: \n"
                            "\t  10 leaf+0x1 (/bin/app)\n"
                            "\t  20 main (/bin/app)\n"
                            "\n"
                            "app 1/2 [001] 12.500001:  1500 cpu-clock: \n"
                            "\t  10 leaf+0x1 (/bin/app)\n"
                            "\t  20 main (/bin/app)\n"
                            "\n"
                            "other 3 [001] 13.000001:  7 cycles:u: \n"
                            "\t  ff [unknown] (/lib/libc.so.6)\n";

static void each_event_is_a_sample_type(void **state)
{
    (void)state;
    struct profile *profile = decode_text(perf_script_decode, span_text(plain));
    assert_int_equal(profile->value_type_count, 2);
    assert_type(profile, 0, "cpu-clock", "nanoseconds");
    assert_type(profile, 1, "cycles:u", "count");
    assert_int_equal(profile->sample_count, 2);
    assert_int_equal(profile->duration_ns, 1000000000);
    assert_stacks(profile, "", "main;leaf 2500\n");
    assert_stacks(profile, "cycles:u", "libc.so.6+0xff 7\n");
    assert_stacks_by(profile, "", "comm", "app;main;leaf 2500\n");
    assert_stacks_by(profile, "", "pid", "1;main;leaf 2500\n");
    assert_stacks_by(profile, "1", "tid", "3;libc.so.6+0xff 7\n");
    assert_int_equal(profile->comment_count, 2);
    profile_destroy(profile);
}

static void without_periods_events_are_counted(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(perf_script_decode, SPAN_LITERAL("a 1 1.0: cpu-clock: \n\t1 f (a)\n\n"
                                                     "a 1 1.1: cpu-clock: \n\t1 f (a)\n"));
    assert_type(profile, 0, "cpu-clock", "count");
    assert_stacks(profile, "", "f 2\n");
    profile_destroy(profile);
}

static void inlined_frames_join_the_frame_below(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(perf_script_decode, SPAN_LITERAL("a 1 1.0: 1 cycles: \n"
                                                     "\t10 in1 (inlined)\n\t10 in2 (inlined)\n"
                                                     "\t10 out+0x4 (/bin/a)\n  src/out.c:12\n"
                                                     "\t20 main (/bin/a)\n"));
    assert_stacks(profile, "", "main;out;in2;in1 1\n");
    assert_int_equal(profile->location_count, 2);
    assert_int_equal(profile->locations[0].line_count, 3);
    assert_int_equal(profile->lines[profile->locations[0].first_line + 2].line, 12);
    profile_destroy(profile);
}

static void a_sample_may_be_one_line(void **state)
{
    (void)state;
    static const char text[] = "            perf  1234 [000]   1.456789:     250000 cycles:  "
                               "ffffffff81063956 write_msr+0x6 ([kernel.kallsyms])\n"
                               "            perf  1234 [000]   1.456790:          1 cycles:  "
                               "ffffffff81063956 write_msr+0x6 ([kernel.kallsyms])\n";
    assert_true(perf_script_detect(span_text(text)));
    struct profile *profile = decode_text(perf_script_decode, span_text(text));
    assert_stacks(profile, "", "write_msr 250001\n");
    profile_destroy(profile);
}

static void an_address_before_a_stack_is_no_frame(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(perf_script_decode, SPAN_LITERAL("a 1 1.5: 3 cpu/mem-loads/:  7ffd10 |OP LOAD\n"
                                                     "\t6f1 beta+0x12 (/a)\n\t789 main (/a)\n\n"));
    assert_stacks(profile, "", "main;beta 3\n");
    profile_destroy(profile);
}

static void both_passes_see_the_same_events(void **state)
{
    (void)state;
    /* A record ends the stack, so "tail 12" begins a sample, whose event must be registered. */
    const struct span text = SPAN_LITERAL("a 9 1.5: 3 cycles: \n\t6f1 beta (/a)\n"
                                          "a 9 [000] 2.5: PERF_RECORD_COMM exec: a:9/9\n"
                                          "tail 12\n\t6f1 gamma (/a)\n");
    struct profile *profile = decode_text(perf_script_decode, text);
    assert_int_equal(profile->value_type_count, 2);
    assert_stacks(profile, "cycles", "beta 3\n");
    assert_stacks(profile, "samples", "gamma 1\n");
    profile_destroy(profile);
}

static void records_of_other_kinds_are_no_samples(void **state)
{
    (void)state;
    const struct span text = SPAN_LITERAL("perf 8/8 [000] 0.000000: PERF_RECORD_MMAP -1/0: "
                                          "[0xff(0x1) @ 0]: x [kernel.kallsyms]_text\n"
                                          "a 9 1.5: PERF_RECORD_COMM exec: a:9/9\n"
                                          "a 9 1.5: 3 cycles: \n\t6f1 beta (/a)\n\n"
                                          "a 9 9.5: PERF_RECORD_EXIT(9:9):(1:1)\n");
    assert_true(perf_script_detect(text));
    struct profile *profile = decode_text(perf_script_decode, text);
    assert_int_equal(profile->value_type_count, 1);
    assert_type(profile, 0, "cycles", "count");
    assert_stacks(profile, "", "beta 3\n");
    assert_int_equal(profile->warning, 0);
    assert_int_equal(profile->duration_ns, 0);
    profile_destroy(profile);
}

static void frame_may_be_named_as_a_record(void **state)
{
    (void)state;
    struct profile *profile =
        decode_text(perf_script_decode,
                    SPAN_LITERAL("a 9 1.5: 3 cycles: \n\t1234 PERF_RECORD_x (/a)\n"
                                 "\t789 main (/a)\n\n"
                                 "9 PERF_RECORD_MMAP2 9/9: [0x1(0x2)]: r-xp /a (deleted)\n"));
    assert_stacks(profile, "", "main;PERF_RECORD_x 3\n");
    assert_int_equal(profile->warning, 0);
    profile_destroy(profile);
}

static void unknown_lines_are_counted(void **state)
{
    (void)state;
    struct profile *profile = decode_text(
        perf_script_decode, SPAN_LITERAL("lost 5 chunks!\na 1 1.0: 1 cycles: \n\t1 f (a)\n"
                                         "\tno frame at all\n\n"));
    assert_stacks(profile, "", "f 1\n");
    assert_int_equal(profile->comment_count, 1);
    assert_non_null(
        strstr((const char *)profile_string(profile, profile->comments[0]).data, "2 lines"));
    profile_destroy(profile);
}

static void text_of_other_kinds_is_not_taken_for_perf_output(void **state)
{
    (void)state;
    assert_false(perf_script_detect(SPAN_LITERAL("a;b;c 1\na;b 2\n")));
    assert_false(perf_script_detect(SPAN_LITERAL("main 12\nrun 13\n")));
    assert_false(perf_script_detect(SPAN_LITERAL("java 12 foo: bar 12\n")));
    assert_true(perf_script_detect(SPAN_LITERAL("# c\n\ncomm 12\n\tabc f (d)\n")));
    assert_true(perf_script_detect(span_text(plain)));
    assert_refused(perf_script_decode, "nothing here\n", NULL, ERR_INVALID, "no line is an event");
}

static void limits_are_kept(void **state)
{
    (void)state;
    buf_auto text;
    buf_init(&text, 1 << 16);
    for (int i = 0; i <= PERF_SCRIPT_EVENTS_MAX; i++)
        buf_printf(&text, "a 1 1.0: 1 event%d: \n\t1 f (a)\n\n", i);
    buf_append_byte(&text, '\0');
    assert_refused(perf_script_decode, (const char *)text.data, NULL, ERR_TOO_LARGE, "32 events");
    const struct profile_limits limits = {.stack_depth = 2};
    assert_refused(perf_script_decode, "a 1 1.0: c: \n\t1 f (a)\n\t2 g (a)\n\t3 h (a)\n", &limits,
                   ERR_TOO_LARGE, "stack");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_read_with_whatever_fields_they_have),
        cmocka_unit_test(frames_are_read_with_whatever_fields_they_have),
        cmocka_unit_test(each_event_is_a_sample_type),
        cmocka_unit_test(without_periods_events_are_counted),
        cmocka_unit_test(inlined_frames_join_the_frame_below),
        cmocka_unit_test(a_sample_may_be_one_line),
        cmocka_unit_test(an_address_before_a_stack_is_no_frame),
        cmocka_unit_test(both_passes_see_the_same_events),
        cmocka_unit_test(records_of_other_kinds_are_no_samples),
        cmocka_unit_test(frame_may_be_named_as_a_record),
        cmocka_unit_test(unknown_lines_are_counted),
        cmocka_unit_test(text_of_other_kinds_is_not_taken_for_perf_output),
        cmocka_unit_test(limits_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
