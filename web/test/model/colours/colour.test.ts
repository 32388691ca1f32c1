import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  contrast,
  diffFillOf,
  diffFills,
  diffStep,
  diffSteps,
  heatFillOf,
  heatFills,
  heatShares,
  luminance,
  makePalette,
  oklch,
} from "../../../src/model/colours/colour.ts";
import { FrameFlag } from "../../../src/model/tree/flame.ts";
import { colourModes, FrameColours, packageOf } from "../../../src/model/colours/frame_colours.ts";
import { strongPalette } from "../../../src/model/colours/strong_palette.ts";
import { RuntimeNames } from "../../../src/model/colours/runtime.ts";
import { heaviestParts } from "../../../src/views/foot/legend.tsx";
import { cpuMs } from "../../relative_cost.ts";
import { bigTree, decode } from "../../trees.ts";

test("every colour is a hexadecimal colour, and the ends of a diff's scale differ strongly", () => {
  assert.equal(oklch(1, 0, 0), "#ffffff");
  assert.equal(oklch(0, 0, 0), "#000000");
  for (const isDark of [false, true]) {
    const palette = makePalette(isDark);
    for (const colour of [
      ...palette.fills,
      ...palette.inks,
      ...palette.faded,
      ...palette.fadedInks,
    ])
      assert.match(colour, /^#[0-9a-f]{6}$/);
    assert.equal(diffFills(palette).length, 2 * diffSteps + 1);
    assert.equal(heatFills(palette).length, heatShares.length);
  }
  assert.equal(diffStep(0, 10), 2 * diffSteps);
  assert.equal(diffStep(10, 0), 0);
  assert.equal(diffStep(10, 10), diffSteps);
  assert.equal(diffStep(0, 0), diffSteps);
  // If the sign changes, the change exceeds the larger side, but no colour is stronger than the
  // last.
  for (const [before, after, step] of [
    [3, -7, 0],
    [-7, 3, 2 * diffSteps],
    [-5, 5, 2 * diffSteps],
  ])
    for (const isDark of [false, true]) {
      assert.equal(diffStep(before, after), step);
      assert.ok(
        diffFills(makePalette(isDark)).includes(
          makePalette(isDark).fills[diffFillOf(before, after)],
        ),
      );
    }
  assert.ok(diffStep(100, 102) > diffSteps);
  assert.ok(diffStep(10, 11) > diffSteps && diffStep(10, 9) < diffSteps);
});

test("text is readable on every fill, light and dark, plain and faded", () => {
  assert.ok(Math.abs(contrast("#000000", "#ffffff") - 21) < 1e-9);
  assert.ok(Math.abs(contrast("#777777", "#ffffff") - 4.48) < 0.01);
  for (const isDark of [false, true]) {
    const palette = makePalette(isDark);
    for (const [fills, inks] of [
      [palette.fills, palette.inks],
      [palette.faded, palette.fadedInks],
    ])
      for (const [i, fill] of fills.entries())
        assert.ok(
          contrast(fill, inks[i]) >= 4.5,
          `${isDark ? "dark" : "light"} fill ${i}: ${inks[i]} on ${fill} has ` +
            contrast(fill, inks[i]),
        );
  }
});

test("high contrast: text has 7 to 1 on every fill, narrow boxes 3 to 1 on the page", () => {
  const grounds: [boolean, string, string, string, number][] = [
    [false, "#ffffff", "#000000", "#0000c0", 7],
    [true, "#000000", "#ffffff", "#ffd400", 7],
    // Contrast themes of Windows: Aquatic, Desert, Dusk.
    [true, "#202020", "#ffffff", "#8ee3f0", 7],
    [false, "#fffaef", "#3d3d3d", "#903909", 7],
    [true, "#2d3236", "#ffffff", "#abcfff", 7],
    // A palette without enough contrast: only its own contrast can be reached.
    [false, "#808080", "#202020", "#0000ff", contrast("#808080", "#202020")],
  ];
  for (const [isDark, background, text, highlight, wanted] of grounds) {
    const palette = strongPalette(makePalette(isDark), { background, text, highlight });
    const about = `${text} on ${background}`;
    for (const [fills, inks] of [
      [palette.fills, palette.inks],
      [palette.faded, palette.fadedInks],
    ])
      for (const [i, fill] of fills.entries())
        assert.ok(
          contrast(fill, inks[i]) >= wanted - 1e-9,
          `${about}, fill ${i}: ${inks[i]} on ${fill} has ${contrast(fill, inks[i])}`,
        );
    for (const [i, fill] of palette.overview.entries())
      assert.ok(
        contrast(fill, background) >= 3,
        `${about}, narrow box ${i}: ${fill} has ${contrast(fill, background)}`,
      );
    if (wanted < 7) continue;
    // Steps stay distinguishable.
    for (const steps of [heatFills(palette), diffFills(palette).slice(diffSteps)]) {
      const light = steps.map(luminance);
      for (let i = 1; i < light.length; i++)
        assert.ok(isDark ? light[i] > light[i - 1] : light[i] < light[i - 1], `${about}: ${steps}`);
    }
  }
});

test("the steps of values differ in lightness, so they do not depend on colour vision", () => {
  for (const isDark of [false, true]) {
    const light = heatFills(makePalette(isDark)).map(luminance);
    for (let i = 1; i < light.length; i++) {
      const ratio =
        (Math.max(light[i], light[i - 1]) + 0.05) / (Math.min(light[i], light[i - 1]) + 0.05);
      assert.ok(isDark ? light[i] > light[i - 1] : light[i] < light[i - 1]);
      assert.ok(i === 1 || ratio > 1.14, `step ${i}: ${ratio}`);
    }
    assert.ok(
      contrast(
        heatFills(makePalette(isDark))[0],
        heatFills(makePalette(isDark))[heatShares.length - 1],
      ) > 5,
    );
  }
  const step = (share: number) => heatFillOf(share) - heatFillOf(0);
  assert.deepEqual(
    [0, 1e-9, 0.00099, 0.001, 0.0099, 0.01, 0.0299, 0.03, 0.0999, 0.1, 1].map(step),
    [0, 1, 1, 2, 3, 4, 4, 5, 5, 6, 6],
  );
});

test("the runtime is detected by flag, file, name and binary", () => {
  const known: [string, string, string, string, number?][] = [
    ["kernel", "do_syscall_64", "", "[kernel.kallsyms]", FrameFlag.Kernel],
    ["kernel", "tcp_sendmsg_[k]", "", ""],
    ["no symbols", "0x7f00aa", "", "/opt/app", FrameFlag.NotSymbolised],
    ["native", "memcpy", "", "/lib/libc.so.6"],
    ["native", "main", "src/main.c", "/opt/app"],
    ["Go", "runtime.mallocgc", "", ""],
    ["Go", "0x46e53a runtime.mcall", "", ""],
    ["Go", "main.(*server).run", "", ""],
    ["Go", "net/http.(*conn).serve", "", ""],
    ["Go", "github.com/acme/store.decodeRow", "", ""],
    ["Go", "anything", "/src/x.go", ""],
    ["Rust", "<alloc::vec::Vec<T> as core::ops::Drop>::drop", "", ""],
    ["Rust", "app::run::h0123456789abcdef", "", ""],
    ["Rust", "app::main::{{closure}}", "", ""],
    ["Rust", "std::rt::lang_start", "", ""],
    ["C++", "std::vector<int>::push_back(int&&)", "", ""],
    ["C++", "_ZN3foo3barEv", "", ""],
    ["C++", "Foo::bar() const", "", ""],
    ["C++", "Foo::bar(int)", "", ""],
    ["C++", "anything", "lib/x.cpp", ""],
    ["Python", "render", "app/page.py", ""],
    ["Python", "py::render:/app/page.py", "", ""],
    ["Python", "Foo::bar", "<string>", "[cpython]"],
    ["Ruby", "main.run", "", "[ruby]"],
    ["Python", "_PyEval_EvalFrameDefault", "", "/usr/bin/python3.11"],
    ["JavaScript", "LazyCompile:*fib /usr/src/app/main.js:1", "", ""],
    ["JavaScript", "Function:^processTimers node:internal/timers:497", "", ""],
    ["JavaScript", "render", "file:///app/page.mjs", ""],
    ["JavaScript", "uv_run", "", "/usr/bin/node"],
    ["Java", "java.util.concurrent.FutureTask.run", "", ""],
    ["Java", "io.netty.channel.AbstractChannel.read", "", ""],
    ["Java", "Ljava/util/concurrent/FutureTask;::run", "", ""],
    ["Java", "org/mozilla/javascript/NativeCall.call", "", ""],
    ["Java", "com.acme.Store.<init>", "", ""],
    ["Java", "Monitor_wait", "", "/usr/lib/jvm/lib/server/libjvm.so"],
    ["Ruby", "block in Object#render", "", ""],
    ["Ruby", "Array#each", "", ""],
    ["Ruby", "rb_ary_each", "", "/usr/lib/libruby-3.1.so.3.1"],
    ["PHP", "render", "/var/www/page.php", ""],
    [".NET", "System.Threading.Thread.StartCallback", "", ""],
    ["Erlang", "gen_server:loop/7", "", ""],
  ];
  const flame = decode({
    name: "root",
    children: known.map(([, name, file, mapping, flags]) => ({
      name,
      file,
      mapping,
      flags,
      self: 1,
    })),
  });
  const runtimes = new RuntimeNames(flame.frames, []);
  for (const [expected, name, file, mapping] of known) {
    const frame = [...flame.frame].find(
      (one) =>
        flame.frames.name(one) === name &&
        flame.frames.file(one) === file &&
        flame.frames.mapping(one) === mapping,
    )!;
    assert.equal(runtimes.of(frame), expected, name);
  }
});

test("a name that C++ and Rust share counts as the language of the rest of its binary", () => {
  const tree = {
    name: "root",
    children: [
      { name: "app::run", mapping: "/bin/rusty", self: 1 },
      { name: "core::iter::next", mapping: "/bin/rusty", self: 1 },
      { name: "app::run", mapping: "/bin/cpp", self: 1 },
      { name: "std::vector<int>::size", mapping: "/bin/cpp", self: 1 },
    ],
  };
  const flame = decode(tree);
  const colours = new FrameColours(flame, "runtime");
  const parts = Array.from(
    flame.frame,
    (frame) => `${flame.frames.mapping(frame)} ${flame.frames.name(frame)} ${colours.part(frame)}`,
  );
  assert.ok(
    parts.includes("/bin/rusty app::run Rust") && parts.includes("/bin/cpp app::run C++"),
    parts.join("\n"),
  );
});

test("every colour mode gives every frame a fill of the palette", () => {
  const flame = decode(bigTree(2000, 30));
  const palette = makePalette(false);
  for (const mode of colourModes) {
    const colours = new FrameColours(flame, mode);
    for (let frame = 0; frame < flame.frames.count; frame++)
      assert.ok(palette.fills[colours.fill(frame)], `${mode} ${frame}`);
  }
});

test('the mode "value" colours a function by its self value, the same in all its places', () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "a", self: 40, children: [{ name: "hot", self: 300 }] },
      {
        name: "b",
        self: 5,
        children: [
          { name: "hot", self: 300, file: "x.c" },
          { name: "cold", self: 0, children: [{ name: "c", self: 355 }] },
        ],
      },
    ],
  });
  const colours = new FrameColours(flame, "value");
  const steps = new Map(
    Array.from(flame.frame, (frame) => [
      flame.frames.name(frame),
      colours.fill(frame) - heatFillOf(0),
    ]),
  );
  assert.deepEqual(
    [steps.get("hot"), steps.get("a"), steps.get("b"), steps.get("cold"), steps.get("c")],
    [6, 5, 3, 0, 6],
  );
});

test("the legend lists parts with their values, sorted by their share of the picture", () => {
  const flame = decode({
    name: "root",
    children: [
      {
        name: "x",
        mapping: "/bin/app",
        self: 10,
        children: [{ name: "y", mapping: "/lib/libz.so", self: 30 }],
      },
      { name: "sys", mapping: "[kernel]", flags: FrameFlag.Kernel, self: 20 },
      { name: "?", self: 5 },
      {
        name: "calls",
        mapping: "/lib/libcalls.so",
        self: 0,
        children: [{ name: "y", mapping: "/lib/libz.so", self: 15 }],
      },
    ],
  });
  const parts = heaviestParts(flame, new FrameColours(flame, "binary")).map(([part, { value }]) => [
    part,
    value,
  ]);
  assert.deepEqual(parts, [
    ["libz.so", 45],
    ["app", 10],
    ["kernel", 20],
    ["libcalls.so", 0],
    ["(no binary)", 5],
  ]);
});

test("colours equal those of the server's pictures", () => {
  const table = readFileSync(
    new URL("../../../../tests/picture_theme.txt", import.meta.url),
    "utf8",
  );
  const rows = table
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => line.split("\t"));
  const [light, dark] = [false, true].map(makePalette);
  assert.deepEqual(
    rows,
    light.fills.map((fill, i) => [String(i), fill, light.inks[i], dark.fills[i], dark.inks[i]]),
  );
});

test("signs are shown only for flags that some frames have and others do not", () => {
  const of = (...flags: number[]) =>
    new FrameColours(
      decode({
        name: "root",
        children: flags.map((one, i) => ({ name: `f${i}`, flags: one, self: 1 })),
      }),
    ).signs;
  assert.equal(of(0, 0), 0);
  assert.equal(of(0, FrameFlag.Kernel, FrameFlag.Inlined), FrameFlag.Kernel | FrameFlag.Inlined);
  assert.equal(of(FrameFlag.Interpreted, FrameFlag.Interpreted), 0, "all frames have the flag");
  assert.equal(
    of(FrameFlag.Interpreted, FrameFlag.Interpreted | FrameFlag.Inlined),
    FrameFlag.Inlined,
  );
  assert.equal(
    of(FrameFlag.Interpreted, FrameFlag.Interpreted, FrameFlag.Other),
    0,
    "the flags of merged functions do not count",
  );
});

/** CPU time that only backtracking reaches: linear matching takes a hundredth of it. */
const quadraticMs = 5000;

test("names that cause backtracking take linear time", () => {
  const names = [
    "a: " + ":1".repeat(50_000) + "!",
    "<" + " as ".repeat(50_000),
    "a/".repeat(50_000),
    "a.".repeat(50_000),
    "x.(*" + "a.".repeat(50_000),
    "::" + "A".repeat(100_000),
  ];
  const cost = cpuMs(() => {
    for (const name of names) {
      packageOf(name, "", "");
      const flame = decode({ name: "root", children: [{ name, self: 1 }] });
      new RuntimeNames(flame.frames, [0, 1]).of(1);
    }
  });
  assert.ok(cost < quadraticMs, `${cost} ms`);
});
