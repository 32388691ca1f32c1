"""Builds OTLP export requests from one description: in the layouts of 1.9 and 1.10 and in JSON.

    profile = Profile(("samples", "count"), time_ns, {("main", "work"): 3}, period=10,
                      period_type=("cpu", "nanoseconds"))
    request = Request([({"service.name": "shop"}, [profile])])
    request.protobuf("1.9"), request.protobuf("1.10"), request.json()

Stacks are tuples of names, root first. Field numbers are from the .proto files.
"""

import json
import struct

from pprof_maker import block, number, varint

SAMPLE_FIELDS = {"1.9": {"values": 2}, "1.10": {"values": 4}}


class Profile:
    """timestamps: {stack: [ns]} of samples that state when they were taken; only in protobuf."""

    def __init__(
        self,
        sample_type,
        time_ns,
        stacks,
        period=0,
        period_type=("", ""),
        duration=0,
        timestamps=(),
    ):
        self.timestamps = dict(timestamps)
        self.sample_type, self.time_ns, self.stacks = sample_type, time_ns, stacks
        self.period, self.period_type, self.duration = period, period_type, duration


class Request:
    def __init__(self, resources, is_packed=True):
        self.resources, self.is_packed = resources, is_packed
        self.strings, self.stacks, self.functions = {"": 0}, {(): 0}, {"": 0}
        for _, profiles in resources:
            for profile in profiles:
                for text in (*profile.sample_type, *profile.period_type):
                    self.string(text)
                for stack in profile.stacks:
                    self.stacks.setdefault(stack, len(self.stacks))
                    for name in stack:
                        self.string(name)
                        self.functions.setdefault(name, len(self.functions))

    def numbers(self, field, numbers):
        if self.is_packed:
            return block(field, b"".join(map(varint, numbers)))
        return b"".join(number(field, one) for one in numbers)

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    # ---- protobuf ----

    def value_type(self, pair):
        return number(1, self.string(pair[0])) + number(2, self.string(pair[1]))

    def profile(self, profile, layout):
        values = SAMPLE_FIELDS[layout]["values"]
        samples = b"".join(
            block(
                2,
                number(1, self.stacks[stack])
                + self.numbers(values, [value])
                + (
                    block(
                        5,
                        struct.pack(
                            f"<{len(profile.timestamps[stack])}Q", *profile.timestamps[stack]
                        ),
                    )
                    if stack in profile.timestamps
                    else b""
                ),
            )
            for stack, value in profile.stacks.items()
        )
        return (
            block(1, self.value_type(profile.sample_type))
            + samples
            + varint(3 << 3 | 1)
            + struct.pack("<Q", profile.time_ns)
            + number(4, profile.duration)
            + block(5, self.value_type(profile.period_type))
            + number(6, profile.period)
        )

    def dictionary(self):
        def indexes(stack):
            return self.numbers(1, [self.functions[name] for name in reversed(stack)])

        # One location per function, under the same index.
        return (
            block(1, b"")
            + b"".join(
                block(2, block(3, number(1, index)) if index else b"")
                for index in self.functions.values()
            )
            + b"".join(block(3, number(1, self.strings[name])) for name in self.functions)
            + block(4, b"")
            + b"".join(block(5, text.encode()) for text in self.strings)
            + block(6, b"")
            + b"".join(block(7, indexes(stack) if stack else b"") for stack in self.stacks)
        )

    def protobuf(self, layout="1.10"):
        out = b""
        for attributes, profiles in self.resources:
            resource = b"".join(
                block(1, block(1, key.encode()) + block(2, block(1, value.encode())))
                for key, value in attributes.items()
            )
            scope = b"".join(block(2, self.profile(profile, layout)) for profile in profiles)
            out += block(1, block(1, resource) + block(2, scope))
        return out + block(2, self.dictionary())

    # ---- JSON ----

    def json_type(self, pair):
        return {"typeStrindex": self.string(pair[0]), "unitStrindex": self.string(pair[1])}

    def json_profile(self, profile):
        return {
            "sampleType": self.json_type(profile.sample_type),
            "samples": [
                {"stackIndex": self.stacks[stack], "values": [str(value)]}
                for stack, value in profile.stacks.items()
            ],
            "timeUnixNano": str(profile.time_ns),
            "durationNano": str(profile.duration),
            "periodType": self.json_type(profile.period_type),
            "period": str(profile.period),
        }

    def json(self):
        resources = [
            {
                "resource": {
                    "attributes": [
                        {"key": key, "value": {"stringValue": value}}
                        for key, value in attributes.items()
                    ]
                },
                "scopeProfiles": [
                    {"profiles": [self.json_profile(profile) for profile in profiles]}
                ],
            }
            for attributes, profiles in self.resources
        ]
        dictionary = {
            "stringTable": list(self.strings),
            "mappingTable": [{}],
            "linkTable": [{}],
            "attributeTable": [{}],
            "functionTable": [{"nameStrindex": self.strings[name]} for name in self.functions],
            "locationTable": [
                {"lines": [{"functionIndex": index}]} if index else {}
                for index in self.functions.values()
            ],
            "stackTable": [
                {"locationIndices": [self.functions[name] for name in reversed(stack)]}
                for stack in self.stacks
            ],
        }
        return json.dumps({"resourceProfiles": resources, "dictionary": dictionary}).encode()
