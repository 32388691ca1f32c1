"""What the store should answer, recomputed from all that was sent: slow, plain Python.

    oracle = Oracle()
    oracle.add(labels, type_name, time_ns, {("main", "work"): 5})
    oracle.merge(type_name, lambda labels: labels.get("pod") == "a", start_ns, end_ns)

Stacks are tuples of names, root first. Rules are those of store/rule.h.
"""

import collections
import fractions
import math


def rule_of(type_name):
    sample_type = type_name.split(":")[1]
    if sample_type.startswith(("inuse_", "live")) or sample_type in ("goroutine", "goroutines", "space",
                                                                     "objects"):
        return "mean"
    return "sum" if type_name.endswith(":delta") else "difference"


def rounded(number):
    """Halves away from zero."""
    return int(math.copysign(math.floor(abs(number) + fractions.Fraction(1, 2)), number))


class Oracle:
    def __init__(self):
        self.profiles = []  # (type, labels, time, stacks)

    def add(self, labels, type_name, time_ns, stacks):
        self.profiles.append((type_name, dict(labels), time_ns, dict(stacks)))

    def chosen(self, type_name, matches, start_ns, end_ns):
        """The profiles of each series, in order of time."""
        series = collections.defaultdict(list)
        for name, labels, time_ns, stacks in self.profiles:
            if name == type_name and matches(labels) and start_ns <= time_ns < end_ns:
                series[tuple(sorted(labels.items()))].append((time_ns, stacks))
        return [sorted(profiles, key=lambda one: one[0]) for profiles in series.values()]

    def series(self, matches, start_ns, end_ns):
        """(type, labels as sorted pairs) of all with a profile in the window; matches(type, labels)."""
        return {(name, tuple(sorted(labels.items()))) for name, labels, time_ns, _ in self.profiles
                if start_ns <= time_ns < end_ns and matches(name, labels)}

    def listed(self, matches, start_ns, end_ns):
        """(time, type, labels as sorted pairs): stacks; matches(type, labels)."""
        found = collections.defaultdict(collections.Counter)
        for name, labels, time_ns, stacks in self.profiles:
            if start_ns <= time_ns < end_ns and matches(name, labels):
                found[time_ns, name, tuple(sorted(labels.items()))].update(stacks)
        return found

    def over_time(self, type_name, matches, start_ns, end_ns, step_ns, group_by=(), keeps=None):
        """{values of group_by: {step: value}}; keeps(stack): a filter of stacks."""
        groups = collections.defaultdict(lambda: collections.defaultdict(fractions.Fraction))
        series = collections.defaultdict(list)
        for name, labels, time_ns, stacks in self.profiles:
            if name == type_name and matches(labels) and start_ns <= time_ns < end_ns:
                kept = sum(value for stack, value in stacks.items() if keeps is None or keeps(stack))
                series[tuple(sorted(labels.items()))].append((time_ns, sum(stacks.values()), kept))
        for labels, profiles in series.items():
            group = groups[tuple(dict(labels).get(label, "") for label in group_by)]
            steps = collections.defaultdict(list)
            if rule_of(type_name) == "difference":
                profiles = told_by_totals(sorted(profiles))
            for time_ns, _, value in profiles:
                steps[(time_ns - start_ns) // step_ns].append(value)
            for step, values in steps.items():
                of_one = len(values) if rule_of(type_name) == "mean" else 1
                group[step] += fractions.Fraction(sum(values), of_one)
        return {key: {step: rounded(value) for step, value in group.items()}
                for key, group in groups.items()}

    def merge(self, type_name, matches, start_ns, end_ns):
        total = collections.Counter()
        for profiles in self.chosen(type_name, matches, start_ns, end_ns):
            for stack, value in RULES[rule_of(type_name)]([stacks for _, stacks in profiles]).items():
                total[stack] += value
        return {stack: rounded(value) for stack, value in total.items() if rounded(value)}


def add_up(profiles):
    total = collections.Counter()
    for stacks in profiles:
        for stack, value in stacks.items():
            total[stack] += value
    return total


def mean(profiles):
    return {stack: fractions.Fraction(value, len(profiles))
            for stack, value in add_up(profiles).items()}


def differences(profiles):
    gained = collections.Counter()
    for before, after in zip(profiles, profiles[1:]):
        began = any(after.get(stack, 0) < value for stack, value in before.items())
        for stack, value in after.items():
            gained[stack] += value - (0 if began else before.get(stack, 0))
    return gained


def told_by_totals(snapshots):
    """Differences of (time, total, value); less in total than before: the process began anew."""
    return [(after[0], None, after[2] - (before[2] if after[1] >= before[1] else 0))
            for before, after in zip(snapshots, snapshots[1:])]


RULES = {"sum": add_up, "mean": mean, "difference": differences}
