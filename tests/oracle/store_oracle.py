"""The expected results of the store, computed from all data that was sent: slow, plain Python.

    oracle = Oracle()
    oracle.add(labels, type_name, time_ns, {("main", "work"): 5})
    oracle.merge(type_name, lambda labels: labels.get("pod") == "a", start_ns, end_ns)

Stacks are tuples of names, root first; {(stack, (("thread", "main"),)): 5} if samples have labels
of their own. The rules are those of store/block/aggregation.h. All data of a series with the same
time is one profile.
"""

import collections
import fractions
import math
import re

HOUR = 3600 * 10**9


COUNTER_DELTA = "difference"  # its name in the API
KINDS = {"delta": "sum", "gauge": "mean", "cumulative": COUNTER_DELTA}


def rule_of(type_name):
    kind = type_name.rpartition(":")[2]
    if type_name.count(":") == 5:
        return KINDS[kind]
    name, sample_type = type_name.replace("-", "_").split(":")[:2]
    if (
        sample_type.startswith(("inuse_", "live", "goroutine"))
        or sample_type in ("space", "objects", "thread", "threads")
        or name in ("goroutine", "goroutines")
    ):
        return "mean"
    return COUNTER_DELTA


def is_type(type_name, value):
    """Whether "=" matches the type: value is the whole name, with or without the kind, or some
    successive parts of it, of which the first is the name's first or second part."""
    parts, wanted = type_name.split(":")[:5], value.split(":")
    if len(wanted) > 5:
        return type_name == value
    return wanted in (parts[: len(wanted)], parts[1:][: len(wanted)])


def matches_type(type_name, comparison, value):
    """Matches __profile_type__; regular expressions match the whole name."""
    if comparison in ("=", "!="):
        return is_type(type_name, value) == (comparison == "=")
    return bool(re.fullmatch(value, type_name)) == (comparison == "=~")


def rounded(number):
    """Rounds halves away from zero."""
    return int(math.copysign(math.floor(abs(number) + fractions.Fraction(1, 2)), number))


def rows_of(stacks):
    """[(stack, own labels, value)] from keys that are stacks or pairs of a stack and labels."""
    return [
        (*(key if key and isinstance(key[0], tuple) else (key, ())), value)
        for key, value in stacks.items()
    ]


def value_of(labels, own, name):
    """The label of the series, or else of the row (several values joined by commas), or empty."""
    return labels.get(name) or ",".join(value for key, value in own if key == name)


UNIT = 1 << 20  # sums of steps are in 1 / UNIT of the values, as in store/values/spread.h


def truncated(numerator, denominator):
    return numerator // denominator if numerator >= 0 else -(-numerator // denominator)


# Snapshots beside a window that count, and their largest distance (store/query/neighbours.h); the
# time for which a snapshot without any other is valid (store/values/spread.h).
NEIGHBOURS, REACH, LONE = 3, 24 * HOUR, 60 * 10**9


def interval_at(times, i):
    """The interval around times[i]: the median of five distances, the one after times[i] in their
    middle, or 0 if there is none (store/values/cadence.h)."""
    found = sorted(
        b - a for a, b in zip(times[max(0, i - 2) : i + 4], times[max(0, i - 2) + 1 : i + 4])
    )
    return found[2 if len(found) == 4 else (len(found) - 1) // 2] if found else 0


def longest_at(interval):
    return interval + interval // 2


def held_until(times, i):
    """The time until which a snapshot is valid: that of the next snapshot, or, if there is a gap
    before it, one interval after its own."""
    interval = interval_at(times, i)
    if i + 1 < len(times) and times[i + 1] - times[i] <= longest_at(interval):
        return times[i + 1]
    return times[i] + (interval or LONE)


class Steps:
    """Sums of groups per step of a window, and the time for which they have data. Sums are in 1 /
    UNIT of the values for deltas and counters; those of gauges are values times nanoseconds."""

    def __init__(self, start_ns, end_ns, step_ns):
        self.start_ns, self.end_ns, self.step_ns = start_ns, end_ns, step_ns
        self.sums = collections.defaultdict(collections.Counter)
        self.covered = collections.defaultdict(list)

    def of(self, time_ns):
        """The number of the step that contains the time."""
        return (time_ns - self.start_ns) // self.step_ns

    def add(self, group, step, value):
        """value: in the unit of the sums."""
        self.sums[group][step] += value

    def spread_parts(self, begin_ns, duration_ns, values):
        """Spreads values, {group: value}. Each group gets the difference of two cumulative sums, so
        that the groups add up in each step to what spread() gives for the sum of all."""
        before = 0
        for group, value in sorted(values.items()):
            self.spread(group, begin_ns, duration_ns, before + value)
            self.spread(group, begin_ns, duration_ns, -before)
            before += value

    def spread(self, group, begin_ns, duration_ns, value):
        """Distributes a value evenly over the time from begin_ns."""
        at, end = max(begin_ns, self.start_ns), min(begin_ns + duration_ns, self.end_ns)
        while at < end:
            to = min(end, self.start_ns + (self.of(at) + 1) * self.step_ns)
            before, after = (
                truncated(value * UNIT * (end_ns - begin_ns), duration_ns) for end_ns in (at, to)
            )
            self.add(group, self.of(at), after - before)
            at = to

    def hold(self, group, begin_ns, end_ns, value):
        """Adds the integral of a gauge that has this value from begin_ns to end_ns."""
        at, end = max(begin_ns, self.start_ns), min(end_ns, self.end_ns)
        while at < end:
            to = min(end, self.start_ns + (self.of(at) + 1) * self.step_ns)
            self.add(group, self.of(at), value * (to - at))
            at = to

    def cover(self, group, begin_ns, end_ns):
        self.covered[group].append((begin_ns, end_ns))

    def covered_ns(self, group, from_ns, to_ns):
        """Length of the union of the group's covered intervals between two times."""
        done, total = from_ns, 0
        for begin_ns, end_ns in sorted(self.covered[group]):
            begin_ns, end_ns = max(begin_ns, done), min(end_ns, to_ns)
            if begin_ns < end_ns:
                total, done = total + end_ns - begin_ns, end_ns
        return total

    def averages(self):
        """{group: {step: value}} of gauges: the mean over the covered time of each step."""
        found = {}
        for group, sums in self.sums.items():
            found[group] = {}
            for step in range(self.of(self.end_ns - 1) + 1):
                begin_ns = self.start_ns + step * self.step_ns
                covered_ns = self.covered_ns(
                    group, begin_ns, min(begin_ns + self.step_ns, self.end_ns)
                )
                if covered_ns:
                    found[group][step] = float(fractions.Fraction(sums[step], covered_ns))
        return found

    def points(self):
        """{group: {step: value}} of the steps with data; integers that add up to the total
        (store/values/apportion.h)."""
        found = {}
        for group, sums in self.sums.items():
            steps = set(sums)
            for begin_ns, end_ns in self.covered[group]:
                begin_ns, end_ns = max(begin_ns, self.start_ns), min(end_ns, self.end_ns)
                steps |= (
                    set(range(self.of(begin_ns), self.of(end_ns - 1) + 1))
                    if begin_ns < end_ns
                    else set()
                )
            found[group] = dict.fromkeys(sorted(steps), 0)
        running, given = dict.fromkeys(found, 0), dict.fromkeys(found, 0)
        for step in sorted(set().union(*found.values())):
            values = {}
            for group in sorted(found):
                part = self.sums[group].get(step, 0)
                running[group] += part
                value = ((running[group] + UNIT // 2) >> 20) - given[group]
                values[group] = value if part * value > 0 else 0
            rest = (
                ((sum(running.values()) + UNIT // 2) >> 20)
                - sum(given.values())
                - sum(values.values())
            )
            before = None
            while rest and rest != before:
                before, by = rest, 1 if rest > 0 else -1
                able = [
                    group
                    for group in values
                    if self.sums[group].get(step, 0) * by > 0
                    or (self.sums[group].get(step, 0) and values[group] * by < 0)
                ]
                able.sort(
                    key=lambda group: -by * (running[group] - (given[group] + values[group]) * UNIT)
                )
                for group in able[: abs(rest)]:
                    values[group] += by
                    rest -= by
            for group, value in values.items():
                given[group] += value
                if step in found[group]:
                    found[group][step] = value
        return found


class Oracle:
    def __init__(self):
        self.profiles = []  # (type, labels, time, rows, duration)
        # totals_until(type, labels): hours of such a series that end by this time have only totals.
        # A test with rules for totals replaces it.
        self.totals_until = lambda type_name, labels: 0

    def are_totals(self, name, labels, time_ns):
        """Whether the hour of that time has only totals."""
        return (time_ns // HOUR + 1) * HOUR <= self.totals_until(name, labels)

    def are_sums(self, name, labels, time_ns):
        """Whether only the sum of its hour is kept. Gauges and counters keep their snapshots."""
        return rule_of(name) == "sum" and self.are_totals(name, labels, time_ns)

    def is_cut(self, name, labels, time_ns, start_ns, end_ns):
        """Whether only the sum of its hour is kept and the window contains a part of that hour."""
        hour = time_ns // HOUR * HOUR
        return self.are_sums(name, labels, time_ns) and not (
            start_ns <= hour and hour + HOUR <= end_ns
        )

    def add(self, labels, type_name, time_ns, stacks, duration_ns=10**10):
        """duration: of deltas; gauges and counters have none."""
        self.profiles.append((type_name, dict(labels), time_ns, rows_of(stacks), duration_ns))

    def delete(self, matches, start_ns, end_ns):
        """Deletes the profiles added so far in the window for which matches(type, labels)."""
        self.profiles = [
            one
            for one in self.profiles
            if not (start_ns <= one[2] < end_ns and matches(one[0], one[1]))
        ]

    def chosen(self, type_name, matches, start_ns, end_ns):
        """[(labels, [(time, rows)])] of each series with profiles in the window, in order of time;
        profiles with equal times are one. Hours with totals only are included as a whole or not at
        all."""
        series = collections.defaultdict(lambda: collections.defaultdict(list))
        for name, labels, time_ns, rows, _ in self.profiles:
            if name == type_name and matches(labels) and start_ns <= time_ns < end_ns:
                if not self.is_cut(name, labels, time_ns, start_ns, end_ns):
                    series[tuple(sorted(labels.items()))][time_ns].extend(rows)
        return [(dict(labels), sorted(profiles.items())) for labels, profiles in series.items()]

    def series(self, matches, start_ns, end_ns):
        """(type, sorted label pairs) of every series with a profile in the window; matches(type,
        labels)."""
        return {
            (name, tuple(sorted(labels.items())))
            for name, labels, time_ns, _, _ in self.profiles
            if start_ns <= time_ns < end_ns and matches(name, labels)
        }

    def lacks(self, type_name, start_ns, end_ns):
        """The types with profiles in the window if type_name is none of them; else an empty set."""
        types = {name for name, _, time_ns, _, _ in self.profiles if start_ns <= time_ns < end_ns}
        return types if type_name not in types else set()

    def listed(self, matches, start_ns, end_ns):
        """{(time, type, sorted label pairs): stacks} of the profiles that the server lists: those
        of hours that have not only totals; matches(type, labels)."""
        found = collections.defaultdict(collections.Counter)
        for name, labels, time_ns, rows, _ in self.profiles:
            if self.are_totals(name, labels, time_ns):
                continue
            if start_ns <= time_ns < end_ns and matches(name, labels):
                profile = found[time_ns, name, tuple(sorted(labels.items()))]
                for stack, _, value in rows:
                    profile[stack] += value
        return found

    def reaching(self, type_name, matches, start_ns, end_ns):
        """[(labels, [(time, duration, rows)])] of each series of a delta: the profiles whose
        duration overlaps the window."""
        series = collections.defaultdict(list)
        for name, labels, time_ns, rows, duration_ns in self.profiles:
            if self.are_sums(name, labels, time_ns):  # the whole sum is in its hour
                duration_ns = min(duration_ns, (time_ns // HOUR + 1) * HOUR - time_ns)
            if (
                name != type_name
                or not matches(labels)
                or not time_ns < end_ns
                or time_ns + duration_ns <= start_ns
                or self.is_cut(name, labels, time_ns, start_ns, end_ns)
            ):
                continue
            series[tuple(sorted(labels.items()))].append((time_ns, duration_ns, rows))
        return [
            (dict(labels), sorted(profiles, key=lambda one: one[0]))
            for labels, profiles in series.items()
        ]

    def snapshots(self, type_name, matches, start_ns, end_ns):
        """The profiles of chosen(), and of each series up to NEIGHBOURS more on each side of the
        window, at most REACH away."""
        series = collections.defaultdict(lambda: collections.defaultdict(list))
        for name, labels, time_ns, rows, _ in self.profiles:
            if (
                name == type_name
                and matches(labels)
                and not self.is_cut(name, labels, time_ns, start_ns, end_ns)
            ):
                series[tuple(sorted(labels.items()))][time_ns].extend(rows)
        found = []
        for labels, profiles in series.items():
            times = sorted(profiles)
            before = [time for time in times if start_ns - REACH <= time < start_ns]
            after = [time for time in times if end_ns <= time < end_ns + REACH]
            within = [time for time in times if start_ns <= time < end_ns]
            near = before[-NEIGHBOURS:] + within + after[:NEIGHBOURS]
            if near:
                found.append((dict(labels), [(time, profiles[time]) for time in near]))
        return found

    def over_time(
        self,
        type_name,
        matches,
        start_ns,
        end_ns,
        step_ns,
        group_by=(),
        keeps=None,
        keeps_labels=None,
    ):
        """{values of group_by: {step: value}}. keeps(stack): a filter of stacks;
        keeps_labels(labels of the series, own labels): a filter of rows."""
        rule = rule_of(type_name)
        steps = Steps(start_ns, end_ns, step_ns)

        def key_of(labels, stack, own):
            if keeps_labels is None or keeps_labels(labels, own):
                return (
                    tuple(value_of(labels, own, name) for name in group_by),
                    keeps is None or keeps(stack),
                )
            return None

        if rule == "mean":
            return self.means_over_time(type_name, matches, steps, key_of)
        if rule == "sum":
            for labels, profiles in self.reaching(type_name, matches, start_ns, end_ns):
                self.add_deltas(type_name, labels, profiles, steps, key_of)
        else:
            for labels, profiles in self.snapshots(type_name, matches, start_ns, end_ns):
                self.add_increases(type_name, labels, profiles, steps, key_of)
        return steps.points()

    def cut_hours(self, type_name, labels, times_ns, steps):
        """The hours of deltas with totals only that do not fit into one step; their sums cannot be
        divided among steps, so they are left out."""
        hours = {
            time_ns // HOUR for time_ns in times_ns if self.are_sums(type_name, labels, time_ns)
        }
        return {hour for hour in hours if steps.of(hour * HOUR) != steps.of(hour * HOUR + HOUR - 1)}

    def add_deltas(self, type_name, labels, profiles, steps, key_of):
        cut = self.cut_hours(type_name, labels, (time_ns for time_ns, _, _ in profiles), steps)
        profiles = [
            one
            for one in profiles
            if one[0] // HOUR not in cut or not self.are_sums(type_name, labels, one[0])
        ]
        groups, hours = set(), collections.defaultdict(list)
        for time_ns, duration_ns, rows in profiles:
            values = collections.Counter()
            for stack, own, value in rows:
                if key := key_of(labels, stack, own):
                    values[key[0]] += value if key[1] else 0
            groups |= values.keys()
            if self.are_sums(type_name, labels, time_ns):
                hours[time_ns // HOUR].append((time_ns, duration_ns, values))
                continue
            steps.spread_parts(time_ns, duration_ns, values)
        is_idle = not any(rows for _, _, rows in profiles)
        if profiles and is_idle and (key := key_of(labels, (), ())):  # only its labels are known
            groups.add(key[0])
            steps.add(key[0], steps.of(max(profiles[0][0], steps.start_ns)), 0)
        for hour in hours.values():  # only the sum is known: divided by durations
            all_ns = sum(duration_ns for _, duration_ns, _ in hour)
            for group, value in sum(
                (values for _, _, values in hour), collections.Counter()
            ).items():
                done_ns = 0
                for time_ns, duration_ns, _ in hour:
                    share = value * (done_ns + duration_ns) // all_ns - value * done_ns // all_ns
                    steps.spread(group, time_ns, duration_ns, share)
                    done_ns += duration_ns
        times_ns = {time_ns for time_ns, _, _ in profiles}
        overhangs = list(self.overhangs(type_name, labels, times_ns))
        for group in groups:
            for time_ns, duration_ns, _ in profiles:
                steps.cover(group, time_ns, time_ns + duration_ns)
            for begin_ns, end_ns in overhangs:
                steps.cover(group, begin_ns, end_ns)

    def overhangs(self, type_name, labels, times_ns):
        """Yields (begin, end) of further covered time: where deltas with totals only extend beyond
        their hour by some time, that much time at the beginning of the hour is covered."""
        for name, own, time_ns, _, duration_ns in self.profiles:
            if name == type_name and own == labels and time_ns in times_ns:
                hour = time_ns // HOUR * HOUR
                over_ns = time_ns + duration_ns - hour - HOUR
                if over_ns > 0 and self.are_sums(name, own, time_ns):
                    yield hour, hour + min(over_ns, HOUR)

    def add_increases(self, type_name, labels, profiles, steps, key_of):
        increases = collections.defaultdict(collections.Counter)
        since = since_of(profiles)
        for time_ns, (group, is_kept), value in row_values(
            COUNTER_DELTA, profiles, lambda stack, own: key_of(labels, stack, own)
        ):
            increases[time_ns][group] += value if is_kept else 0
        for time_ns, values in increases.items():
            steps.spread_parts(since[time_ns], time_ns - since[time_ns], values)
        groups = {group for values in increases.values() for group in values}
        for group in groups:
            for time_ns, since_ns in since.items():
                steps.cover(group, since_ns, time_ns)

    def means_over_time(self, type_name, matches, steps, key_of):
        for labels, profiles in self.snapshots(type_name, matches, steps.start_ns, steps.end_ns):
            times = [time_ns for time_ns, _ in profiles]
            until = {time_ns: held_until(times, i) for i, time_ns in enumerate(times)}
            groups = set()
            for time_ns, (group, is_kept), value in row_values(
                "mean", profiles, lambda stack, own: key_of(labels, stack, own)
            ):
                value = value if is_kept else 0
                if time_ns < steps.end_ns and until[time_ns] > steps.start_ns:
                    groups.add(group)
                    steps.hold(group, time_ns, until[time_ns], value)
            for group in groups:
                for time_ns in times:
                    steps.cover(group, time_ns, until[time_ns])
        return steps.averages()

    def by_timestamps(self, type_name, matches, start_ns, end_ns, step_ns, timestamps):
        """{step: value} of a delta by the timestamps of its samples: timestamps[time of the
        profile][stack]."""
        steps = Steps(start_ns, end_ns, step_ns)
        for _, profiles in self.reaching(type_name, matches, start_ns, end_ns):
            for time_ns, duration_ns, rows in profiles:
                steps.cover((), time_ns, time_ns + duration_ns)
                rest = 0
                for stack, _, value in rows:
                    times = sorted(timestamps[time_ns].get(stack, []))
                    rest += 0 if times else value
                    shares = [
                        value * (i + 1) // len(times) - value * i // len(times)
                        for i in range(len(times))
                    ]
                    for timestamp, share in zip(times, shares):
                        if start_ns <= timestamp < end_ns:
                            steps.add((), steps.of(timestamp), share * UNIT)
                if any(not timestamps[time_ns].get(stack) for stack, _, _ in rows):
                    steps.spread((), time_ns, duration_ns, rest)
        return steps.points().get((), {})

    def merge(self, type_name, matches, start_ns, end_ns, group_by=None, keeps_labels=None):
        """{stack: value}; the first frame is the value of the label group_by, or "(no …)"."""
        total, starts = collections.Counter(), collections.Counter()
        rule = rule_of(type_name)

        def key_of_series(labels):
            def key_of(stack, own):
                if keeps_labels is not None and not keeps_labels(labels, own):
                    return None
                first = (value_of(labels, own, group_by) or f"(no {group_by})",) if group_by else ()
                return first + stack

            return key_of

        if rule == "mean":
            return self.merged_means(
                self.snapshots(type_name, matches, start_ns, end_ns),
                type_name,
                start_ns,
                end_ns,
                key_of_series,
            )
        choose = self.chosen if rule == "sum" else self.snapshots
        for labels, profiles in choose(type_name, matches, start_ns, end_ns):
            since = since_of(profiles)
            for time_ns, key, value in row_values(rule, profiles, key_of_series(labels)):
                if rule == COUNTER_DELTA:
                    since_ns = since[time_ns]
                    from_ns, to_ns = max(since_ns, start_ns), min(time_ns, end_ns)
                    if from_ns < to_ns:
                        duration_ns = time_ns - since_ns
                        total[key] += fractions.Fraction(value * (to_ns - since_ns), duration_ns)
                        starts[key] += fractions.Fraction(value * (from_ns - since_ns), duration_ns)
                else:
                    total[key] += value
        total, starts = rounded_in_tree(total), rounded_in_tree(starts)
        return {
            stack: value - starts.get(stack, 0)
            for stack, value in total.items()
            if value - starts.get(stack, 0)
        }

    def merged_means(self, series, type_name, start_ns, end_ns, key_of_series):
        """Weights snapshots by the time for which they are valid in the window."""
        total, covered = collections.Counter(), Steps(start_ns, end_ns, end_ns - start_ns)
        for labels, profiles in series:
            times = [time_ns for time_ns, _ in profiles]
            holds = {}
            for i, time_ns in enumerate(times):
                until = held_until(times, i)
                covered.cover((), time_ns, until)
                holds[time_ns] = max(0, min(until, end_ns) - max(time_ns, start_ns))
            for time_ns, key, value in row_values("mean", profiles, key_of_series(labels)):
                total[key] += value * holds[time_ns]
        covered_ns = covered.covered_ns((), start_ns, end_ns)
        if not covered_ns:
            return {}
        means = {stack: fractions.Fraction(value) / covered_ns for stack, value in total.items()}
        return {stack: value for stack, value in rounded_in_tree(means).items() if value}


def are_equal(found, expected):
    """Whether {group: {step: value}} are the same; averages of gauges to 12 digits."""
    return found.keys() == expected.keys() and all(
        found[group].keys() == steps.keys()
        and all(math.isclose(found[group][step], steps[step], rel_tol=1e-12) for step in steps)
        for group, steps in expected.items()
    )


def rounded_in_tree(values):
    """{stack: whole number}: of the stacks in order, each gets the difference of the rounded sums
    up to it and before it, so that the sums of subtrees are right."""
    found, total, before = {}, fractions.Fraction(0), 0
    for stack in sorted(values):
        total += values[stack]
        found[stack] = rounded(total) - before
        before = rounded(total)
    return found


def chains_of(times, snapshots):
    """For one series, snapshots as {stack: value} at ascending times: the index of the snapshot
    that each one continues (None: it begins a chain), and the set of those that restarted. See
    store/values/snapshot_chains.h."""
    reach = 3
    totals = [sum(stacks.values()) for stacks in snapshots]

    def at_least(later, earlier):
        return all(
            snapshots[later].get(stack, 0) >= value for stack, value in snapshots[earlier].items()
        )

    def grows(first, then):
        least, most = totals[first], totals[first] + totals[first] // 4
        return least > 0 and least < totals[then] <= most and at_least(then, first)

    def are_close(first, then, interval):
        return then - first > (times[then] - times[first]) / interval + 0.5

    def are_different(first, then):
        distances = [times[one + 1] - times[one] for one in range(first, then)]
        return max(distances) > 1.25 * min(distances)

    def is_chain(first, then):
        if not grows(first, then):
            return False
        own = before[first]
        if own is not None and grows(own, first):
            if are_close(first, then, times[first] - times[own]):
                return True
        in_turn = then >= 2 and before[then - 1] is not None and before[then - 1] != then - 2
        return any(
            grows(then, one)
            and are_close(first, then, times[one] - times[then])
            and (in_turn or are_different(first, one))
            for one in range(then + 1, min(len(snapshots), then + 1 + reach))
        )

    before, after, restarted = [None] * len(snapshots), {}, set()
    for i in range(1, len(snapshots)):
        decreases = not at_least(i, i - 1)
        found = [] if decreases else [i - 1]
        for last in range(max(0, i - reach), i):
            if last in after:
                continue
            possible = [last] if last != i - 1 else []
            if decreases and before[last] is not None and before[last] >= i - reach:
                possible.append(before[last])
            found += [one for one in possible if is_chain(one, i)]
        if not found:
            restarted.add(i)
            continue
        best = max(found, key=lambda one: totals[one])
        if best in after:
            before[after[best]] = None
        before[i], after[best] = best, i
        restarted -= set(range(best + 1, i))
    return before, restarted


def since_of(profiles):
    """For one series: {time of each snapshot with an increase: start of its interval}."""
    times = [time_ns for time_ns, _ in profiles]
    snapshots = []
    for _, rows in profiles:
        stacks = collections.Counter()
        for stack, _, value in rows:
            stacks[stack] += value
        snapshots.append(stacks)
    before, restarted = chains_of(times, snapshots)
    since = {}
    for i in range(1, len(times)):
        if i in restarted:
            since[times[i]] = max(times[i - 1], times[i] - interval_at(times, i - 1))
        elif before[i] is not None:
            since[times[i]] = times[before[i]]
    return since


def row_values(rule, profiles, key_of):
    """[(time, key, value)] of one series: its rows, or their increases between snapshots."""
    keyed = []
    for time_ns, rows in profiles:
        by_key, by_stack = collections.Counter(), collections.Counter()
        for stack, own, value in rows:
            by_stack[stack] += value
            if key_of(stack, own) is not None:
                by_key[key_of(stack, own)] += value
        keyed.append((time_ns, by_key, by_stack))
    if rule != COUNTER_DELTA:
        return [
            (time_ns, key, value) for time_ns, by_key, _ in keyed for key, value in by_key.items()
        ]
    before, restarted = chains_of(
        [time_ns for time_ns, _, _ in keyed], [stacks for _, _, stacks in keyed]
    )
    increases = []
    for i, (time_ns, after, _) in enumerate(keyed):
        if i not in restarted and before[i] is None:
            continue
        earlier = {} if i in restarted else keyed[before[i]][1]
        for key in after.keys() | earlier.keys():
            increases.append((time_ns, key, after[key] - earlier.get(key, 0)))
    return increases
