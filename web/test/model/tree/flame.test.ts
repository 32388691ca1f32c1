import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeFlame,
  derive,
  FlameError,
  FrameFlag,
  hasSigns,
  parentOf,
  pathOf,
  startOf,
  type Flame,
} from "../../../src/model/tree/flame.ts";
import { heatFillOf } from "../../../src/model/colours/colour.ts";
import { FrameColours } from "../../../src/model/colours/frame_colours.ts";
import {
  countedAs,
  countFunctions,
  frameTitle,
  listFunctions,
  sortFunctions,
} from "../../../src/model/functions/functions.ts";
import { layoutRow, matchedColumns, nodeAt } from "../../../src/model/tree/row_layout.ts";
import { findByPathHash, findByPathHashes, pathHash } from "../../../src/model/tree/path.ts";
import { exactPattern } from "../../../src/model/search/escape_regex.ts";
import {
  bothMarks,
  compileRule,
  compileSearch,
  filterByName,
  namesNothing,
  nextMatch,
  search,
} from "../../../src/model/search/search.ts";
import { encodeFlame } from "../../encode_flame.mjs";
import { cpuMs } from "../../relative_cost.ts";
import { bigTree, decode, type Tree } from "../../trees.ts";

const names = (flame: Flame) => Array.from(flame.frame, (frame) => flame.frames.name(frame));

const small: Tree = {
  name: "root",
  children: [
    {
      name: "a",
      self: 1,
      children: [
        { name: "b", self: 2, children: [{ name: "a", self: 4 }] },
        { name: "c", self: 8 },
      ],
    },
    { name: "b", self: 16 },
  ],
};

test("derives depth, end, cumulative value, start and rows", () => {
  const flame = decode(small);
  assert.deepEqual(names(flame), ["root", "b", "a", "c", "b", "a"]);
  assert.deepEqual([...flame.cum], [31, 16, 15, 8, 6, 4]);
  assert.deepEqual([...flame.depth], [0, 1, 1, 2, 2, 3]);
  assert.deepEqual([...flame.end], [6, 2, 6, 4, 6, 6]);
  assert.deepEqual(
    [...flame.frame].map((_, node) => startOf(flame, node)),
    [0, 0, 16, 16, 24, 24],
  );
  assert.deepEqual([...flame.rowOffset], [0, 1, 3, 5, 6]);
  assert.equal(flame.total, 31);
  assert.deepEqual(pathOf(flame, 5), [0, 2, 4, 5]);
  assert.equal(parentOf(flame, 0), -1);
});

test("sums equal those of a recursive reader for a tree of many nodes", () => {
  const tree = bigTree(3000, 40);
  const flame = decode(tree);
  const sum = (node: Tree): number =>
    (node.self ?? 0) + (node.children ?? []).reduce((all, child) => all + sum(child), 0);
  assert.equal(flame.cum[0], sum(tree));
  for (let i = 1; i < flame.nodeCount; i++) {
    const parent = parentOf(flame, i);
    assert.ok(startOf(flame, i) >= startOf(flame, parent));
    assert.ok(startOf(flame, i) + flame.cum[i] <= startOf(flame, parent) + flame.cum[parent]);
    assert.ok(flame.end[i] <= flame.end[parent]);
  }
});

test("reads stacks that are 5,000 frames deep", () => {
  const root: Tree = { name: "root", children: [] };
  let at = root;
  for (let i = 0; i < 5000; i++) {
    const child: Tree = { name: `f${i % 7}`, self: 1, children: [] };
    at.children!.push(child);
    at = child;
  }
  const flame = decode(root);
  assert.equal(flame.rowCount, 5001);
  assert.equal(flame.cum[0], 5000);
  const rows = listFunctions(flame);
  assert.equal(rows.find((row) => row.name === "f0")!.cum, 5000);
  assert.equal(findByPathHash(flame, pathHash(flame, 5000)), 5000);
});

test("a diff is as wide as the sum of larger sides; negative values count absolutely", () => {
  const diff = decode(
    {
      name: "root",
      children: [
        { name: "old", base: 30 },
        { name: "both", self: 10, base: 5 },
      ],
    },
    { isDiff: true },
  );
  assert.deepEqual([...diff.width], [40, 30, 10]);
  assert.deepEqual([...diff.baseCum!], [35, 30, 5]);
  assert.equal(diff.baseTotal, 35);
  assert.equal(diff.total, 10);
  const negative = decode({
    name: "root",
    children: [
      { name: "less", self: -6 },
      { name: "more", self: 4 },
    ],
  });
  assert.equal(negative.width[0], 10);
  assert.equal(negative.cum[0], -2);
  assert.ok(hasSigns(negative), "the page can note negative values");
  const colours = new FrameColours(negative, "value");
  const fillOf = (name: string) =>
    colours.fill([...negative.frame].find((frame) => negative.frames.name(frame) === name)!);
  assert.deepEqual(
    [fillOf("less"), fillOf("more")],
    [heatFillOf(0), heatFillOf(0.4)],
    "a negative value is not among the largest",
  );
  assert.ok(!hasSigns(decode(small)) && !hasSigns(diff));
  // In a diff, a negative value on one side is enough, even if the sums are positive.
  for (const child of [
    { self: -1, base: 2 },
    { self: 2, base: -1 },
  ])
    assert.ok(
      hasSigns(
        decode(
          {
            name: "root",
            children: [
              { name: "a", ...child },
              { name: "b", self: 9, base: 9 },
            ],
          },
          { isDiff: true },
        ),
      ),
    );
});

test("refuses bytes that are truncated, of another format, or refer to missing nodes", () => {
  const bytes: Buffer = encodeFlame(small);
  const copy = () => new Uint8Array(bytes);
  assert.throws(() => decodeFlame(new ArrayBuffer(10)), FlameError);
  for (const length of [64, 100, 300, bytes.length - 40])
    assert.throws(() => decodeFlame(copy().slice(0, length).buffer), FlameError);
  const magic = copy();
  magic[0] = 88;
  assert.throws(() => decodeFlame(magic.buffer), FlameError);
  // Writes a number out of range into each section that refers to nodes or frames.
  for (const [id, at, value] of [
    [1, 2, 999],
    [2, 0, 1],
    [2, 2, 0],
    [2, 4, 9],
    [3, 0, 999],
  ]) {
    const broken = copy();
    const view = new DataView(broken.buffer);
    let entry = 64;
    while (view.getUint32(entry, true) !== id) entry += 24;
    view.setUint16(Number(view.getBigUint64(entry + 8, true)) + at, value, true);
    assert.throws(() => decodeFlame(broken.buffer), FlameError, `section ${id} at ${at}`);
  }
});

test("numbers above 16 bits are stored in 32", () => {
  let chain: Tree = { name: "leaf", self: 3 };
  for (let i = 0; i < 66_000; i++) chain = { name: `f${i}`, children: [chain] };
  const flame = decode(chain);
  assert.equal(flame.depth[66_000], 66_000);
  assert.equal(flame.frames.name(flame.frame[66_000]), "leaf");
  assert.equal(flame.cum[0], 3);
  assert.deepEqual(derive({ ...flame }).depth, flame.depth);
});

test("lists functions with recursion counted once", () => {
  const rows = sortFunctions(listFunctions(decode(small)), { column: "cum", descending: true });
  assert.deepEqual(
    rows.map((row) => [row.name, row.flat, row.cum]),
    [
      ["b", 18, 22],
      ["a", 5, 15],
      ["c", 8, 8],
    ],
  );
});

test("counts functions without listing them", () => {
  for (const tree of [
    small,
    bigTree(500, 20),
    {
      name: "root",
      children: [
        { name: "other", self: 1, flags: FrameFlag.Other },
        { name: "a", self: 1 },
      ],
    },
  ]) {
    const flame = decode(tree);
    assert.equal(countFunctions(flame), listFunctions(flame).length);
  }
});

test("frames are named by their grouping, and lines of one function are distinguished", () => {
  const children = [
    { name: "run", file: "a.go", line: 12, self: 3 },
    { name: "run", file: "a.go", line: 30, self: 2 },
  ];
  const by = (group: string, more: Tree[] = children) =>
    decode({ name: "root", children: more }, { metadata: { group_by: group } });
  assert.deepEqual(
    listFunctions(by("line")).map((row) => row.file),
    ["a.go:12", "a.go:30"],
  );
  assert.equal(search(by("line"), compileSearch("run")).functionCount, countFunctions(by("line")));
  assert.equal(countedAs(by("line"), 2), "2 lines");
  assert.equal(countedAs(by("binary"), 1), "1 binary");
  assert.equal(countedAs(by("label:thread"), 1144), "1,144 functions");
  assert.equal(
    countedAs(decode(small, { isCut: true }), 2),
    "≥ 2 functions",
    "merged boxes may contain more functions",
  );
  assert.equal(frameTitle(by("file")), "File");
  const label: Tree = { name: "io", flags: FrameFlag.Label, children: [{ name: "main", self: 1 }] };
  assert.equal(countFunctions(by("thread", [label])), 1);
});

test("sorts in both directions, equal rows by name", () => {
  const rows = listFunctions(
    decode({
      name: "root",
      children: [
        { name: "z", self: 1 },
        { name: "y", self: 1 },
        { name: "x", self: 3 },
      ],
    }),
  );
  assert.deepEqual(
    sortFunctions(rows, { column: "flat", descending: true }).map((row) => row.name),
    ["x", "y", "z"],
  );
  assert.deepEqual(
    sortFunctions(rows, { column: "name", descending: true }).map((row) => row.name),
    ["z", "y", "x"],
  );
});

test("detects an expression that matches no name, file or binary of the tree", () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "a", self: 5, file: "/src/a.go", mapping: "/bin/app" },
      { name: "other", flags: FrameFlag.Other, self: 2 },
    ],
  });
  assert.deepEqual(
    ["^a$", "a\\.go", "bin/", "", "("].map((text) => namesNothing(flame, text)),
    [false, false, false, false, false],
  );
  assert.deepEqual(
    ["root", "other", "^b$"].map((text) => namesNothing(flame, text)),
    [true, true, true],
  );
});

test("searches outermost matches only", () => {
  const flame = decode(small);
  const found = search(flame, compileSearch("^[ab]$"));
  assert.equal(found.functionCount, 2);
  assert.equal(found.value, 31);
  assert.equal(found.nodeCount, 4);
  assert.equal(search(flame, compileSearch("^a$")).value, 15);
  assert.equal(search(flame, compileSearch("root")).value, 0);
  assert.equal(nextMatch(flame, search(flame, compileSearch("c")), 0, 1), 3);
  assert.equal(nextMatch(flame, search(flame, compileSearch("c")), 0, -1), 3);
  assert.equal(nextMatch(flame, search(flame, compileSearch("nothing")), 0, 1), -1);
});

test("marked functions are highlighted together with search matches", () => {
  const flame = decode(small);
  const [searched, marked] = [
    search(flame, compileSearch("c")),
    search(flame, compileSearch("^b$")),
  ];
  const lit = bothMarks(flame, searched, marked)!;
  assert.deepEqual(
    [...lit.frameMatches]
      .map((isLit, frame) => isLit && flame.frames.name(frame))
      .filter(Boolean)
      .sort(),
    ["b", "c"],
  );
  assert.equal(lit.rows.count, searched.nodeCount + marked.nodeCount);
  assert.equal(lit.value, searched.value);
  assert.equal(bothMarks(flame, null, marked), marked);
});

test("accepts the server's subset of regular expressions", () => {
  assert.ok(compileSearch("Foo").test("aFoo") && !compileSearch("Foo").test("foo"));
  assert.ok(compileSearch("foo").test("FOO"));
  assert.ok(compileSearch("\\Wx").test(".X"));
  assert.ok(compileSearch("(?i)FOO").test("foo"));
  for (const wrong of [
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?<!a)",
    "(a)\\1",
    "(?<n>a)\\k<n>",
    "(",
    "[z-a]",
  ])
    assert.throws(() => compileSearch(wrong), Error, wrong);
  const odd = "std::map<int, (a|b)>::operator[]";
  assert.ok(compileSearch(exactPattern(odd)).test(odd));
  assert.ok(!compileSearch(exactPattern(odd)).test(odd + "x"));
  for (const letter of ["a", "(", "é", "🔥", "\n"]) {
    const long = letter.repeat(10_000);
    assert.ok(
      compileRule(exactPattern(long)).test(long) &&
        !compileRule(exactPattern(long)).test(letter.repeat(1999)),
      letter,
    );
    assert.ok(new TextEncoder().encode(exactPattern(letter.repeat(1999))).length < 8192);
    assert.ok(!compileRule(exactPattern(letter.repeat(1999))).test(long), letter);
  }
});

test("a search expression that backtracking could not finish takes linear time", () => {
  const nested = [
    "(a+)+$",
    "(a*)*b",
    "(a?){40}",
    "((ab)*c*)+",
    "(a|a)*b",
    "(?:a|aa)+$",
    "([a-z]+)*$",
    "(x(y+)z)*",
    "(a{1,9}){9}",
    "(a+?)+?",
  ];
  const name = "a".repeat(3000);
  const long = decode({
    name: "root",
    children: [
      { name, self: 1 },
      { name: "b", self: 2 },
    ],
  });
  const cost = cpuMs(() => {
    for (const text of nested)
      assert.equal(compileSearch(text).test(name), !text.endsWith("b"), text);
    for (const text of [
      "a*a*a*a*b",
      ".*.*.*.*x",
      `${"a?".repeat(40)}${"a".repeat(40)}b`,
      `${"(a|a)".repeat(40)}b`,
    ]) {
      assert.equal(search(long, compileSearch(text)).value, text.startsWith("a*") ? 2 : 0, text);
      assert.equal(filterByName([{ name }], compileSearch(text)).length, 0);
    }
  });
  // With backtracking, the first expression takes 2^3000 steps.
  assert.ok(cost < 20_000, `${cost} ms`);
  for (const text of ["(((a|b){1000}){1000}){1000}", "((((){1000}){1000}){1000}){1000}"])
    assert.throws(() => compileSearch(text), /repeats too much/);
});

test("usual search expressions are accepted", () => {
  const flame = decode({
    name: "root",
    children: [
      { name: "std::vector<" + "int, ".repeat(60) + ">::push_back", self: 1 },
      { name: "main.run", self: 2 },
    ],
  });
  for (const text of [
    "push_back",
    "std::.*::push",
    "^main\\.",
    "(foo|bar|main)",
    "(main|mine)?\\.run",
    "[a-z]+\\.run$",
    "a{2,3}",
    "int.*int.*push",
    "(?:abc)+",
    "\\(.*\\)+",
    "[(+]+x",
    "^(runtime|main)\\.(run|gc)$",
  ])
    assert.doesNotThrow(() => search(flame, compileSearch(text)), text);
  assert.equal(search(flame, compileSearch("std::.*push")).value, 1);
});

test("finds a node again by the hash of its path, also in another table order", () => {
  const flame = decode(bigTree(2000, 30));
  for (let i = 1; i < flame.nodeCount; i += 37) {
    const found = findByPathHash(flame, pathHash(flame, i));
    assert.deepEqual(
      pathOf(flame, found).map((node) => names(flame)[node]),
      pathOf(flame, i).map((node) => names(flame)[node]),
    );
  }
  const other = decode({ name: "root", children: [{ name: "new", self: 99 }, ...small.children!] });
  const place = names(other).lastIndexOf("a");
  assert.equal(pathHash(decode(small), 5), pathHash(other, place));
  assert.equal(findByPathHash(flame, "0123456789abcdef"), -1);
  assert.equal(findByPathHash(flame, "no hash"), -1);
});

test("many paths are found in one pass, at little more than the cost of one path", () => {
  const flame = decode(bigTree(20_000, 300));
  const hashes = Array.from({ length: 500 }, (_, i) => pathHash(flame, 1 + i * 39));
  const lost = "0123456789abcdef";
  const found = findByPathHashes(flame, [...hashes, lost, "no hash"]);
  assert.deepEqual(
    [...found].sort(),
    hashes.map((hash): [string, number] => [hash, findByPathHash(flame, hash)]).sort(),
  );
  assert.ok(!found.has(lost));
  const cpuOf = (run: () => void) => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const one = () => cpuOf(() => findByPathHash(flame, lost));
  const least = Math.min(one(), one(), one(), one(), one());
  const all = cpuOf(() => findByPathHashes(flame, [...hashes, lost]));
  assert.ok(all < 50 * least + 2e4, `${all} µs for 500, ${least} µs for one`);
});

test("the hash of a path does not change, because existing links contain it", () => {
  assert.equal(pathHash(decode(small), 5), "58cdc962eccc1057");
});

/**
 * For main and a frame below it; the numbers are those of
 * tests/unit/lib/profile/report/test_flame.c.
 */
const belowMain = (frame: Omit<Tree, "self">, group: string) =>
  decode(
    { name: "root", children: [{ name: "main", children: [{ ...frame, self: 1 }] }] },
    { metadata: { group_by: group } },
  );
const groups = ["function", "file", "line", "address", "binary", "label:thread"];

test("a frame with an address is found after its name became known", () => {
  const at = (address: number, name: string, mapping = "/bin/app") =>
    belowMain({ name: `0x${address.toString(16)} ${name}`, address, mapping }, "address");
  for (const flame of [at(0x4f2a10, "<unknown>"), at(0x4f2a10, "main.run")]) {
    assert.equal(pathHash(flame, 2), "eed00152f71ad20e");
    assert.equal(findByPathHash(flame, "eed00152f71ad20e"), 2);
    assert.equal(findByPathHash(flame, "54da7666f4231bb3"), 2, "by the hash of earlier versions");
  }
  for (const flame of [at(0x4f2a11, "main.run"), at(0x4f2a10, "main.run", "/bin/b")])
    assert.notEqual(pathHash(flame, 2), "eed00152f71ad20e");
});

test("a link from before symbolization finds its frame below inlined calls", () => {
  const app = { mapping: "/usr/bin/app" };
  const deep = (group: string, [a, b, c]: string[], hasInlined: boolean) => {
    const leaf = { ...app, name: c, address: 0x30, self: 1 };
    const inner = hasInlined
      ? { ...app, name: b, address: 0x20, flags: 1, children: [leaf] }
      : leaf;
    const outer = { ...app, name: b, address: 0x20, self: 1, children: [inner] };
    const tree = {
      name: "root",
      children: [{ ...app, name: a, address: 0x10, self: 1, children: [outer] }],
    };
    return decode(tree, { metadata: { group_by: group } });
  };
  for (const [group, names] of [
    ["function", ["[app]", "[app]", "[app]"]],
    ["address", ["0x10 [app]", "0x20 [app]", "0x30 [app]"]],
  ] as const) {
    const raw = deep(group, [...names], false);
    const named = deep(
      group,
      group === "address" ? ["0x10 main", "0x20 run", "0x30 leaf"] : ["main", "run", "leaf"],
      true,
    );
    for (const [before, after] of [
      [1, 1],
      [2, 2],
      [3, 4],
    ])
      assert.equal(findByPathHash(named, pathHash(raw, before)), after, group);
  }
});

test("siblings of the same name have different hashes, and a hash of names finds the first", () => {
  const run = (file: string, line: number, self: number) => ({ name: "run", file, line, self });
  for (const group of ["line", "address"]) {
    assert.equal(pathHash(belowMain(run("a.go", 12, 1), group), 2), "4429db708180e364");
    const children = [run("a.go", 12, 30), run("a.go", 300, 20), run("b.go", 12, 10)];
    const flame = decode(
      { name: "root", children: [{ name: "main", children }] },
      { metadata: { group_by: group } },
    );
    for (let node = 1; node < 5; node++)
      assert.equal(findByPathHash(flame, pathHash(flame, node)), node);
    assert.equal(findByPathHash(flame, pathHash(belowMain({ name: "run" }, "function"), 2)), 2);
  }
  for (const group of groups) {
    const children = [
      { name: "0x1f alpha", self: 2 },
      { name: "0x1f beta", self: 1 },
    ];
    const flame = decode({ name: "root", children }, { metadata: { group_by: group } });
    for (const node of [1, 2])
      assert.equal(findByPathHash(flame, pathHash(flame, node)), node, group);
  }
});

test("boxes cover every row without gaps or overlaps, at every zoom", () => {
  const flame = decode(bigTree(4000, 9));
  const windows = [
    { from: 0, to: flame.width[0] },
    { from: flame.width[0] * 0.31, to: flame.width[0] * 0.33 },
    { from: flame.width[0] * 0.5, to: flame.width[0] * 0.5 + 3 },
  ];
  for (const window of windows)
    for (let row = 0; row < flame.rowCount; row++) {
      let right = 0;
      let last = -1;
      const seen = new Set<number>();
      layoutRow(flame, row, window, 300, (first, final, left, end) => {
        assert.ok(first > last && final >= first);
        assert.ok(left >= right - 1.0001, `row ${row}: ${left} after ${right}`);
        assert.ok(end <= 300 && left >= 0);
        for (let at = first; at <= final; at++) seen.add(flame.rowNodes[at]);
        last = final;
        right = end;
      });
      for (let at = flame.rowOffset[row]; at < flame.rowOffset[row + 1]; at++) {
        const node = flame.rowNodes[at];
        const isInside =
          startOf(flame, node) < window.to &&
          startOf(flame, node) + flame.width[node] > window.from;
        if (isInside && flame.width[node] > 0)
          assert.ok(seen.has(node), `row ${row} lacks node ${node}`);
      }
    }
});

test("narrow nodes are merged into few boxes, and the node under the pointer is found", () => {
  const flame = decode({
    name: "root",
    children: Array.from({ length: 20000 }, (_, i) => ({ name: `f${i}`, self: 1 })),
  });
  let boxes = 0;
  layoutRow(flame, 1, { from: 0, to: 20000 }, 200, () => boxes++);
  assert.ok(boxes >= 40 && boxes <= 60, `${boxes} boxes`);
  const node = nodeAt(flame, 1, { from: 0, to: 20000 }, 200, 100);
  assert.equal(startOf(flame, node), 10000);
  assert.equal(nodeAt(flame, 2, { from: 0, to: 20000 }, 200, 100), -1);
  assert.equal(nodeAt(flame, 1, { from: 0, to: 20000 }, 200, 200), -1);
});

test("detects for every range of a row whether it contains a match", () => {
  const flame = decode(bigTree(700, 5));
  for (const pattern of ["^f7$", "^f[0-9]", "nothing"]) {
    const found = search(flame, compileSearch(pattern));
    const matches = [...flame.rowNodes].map((node) => found.frameMatches[flame.frame[node]]);
    assert.equal(found.nodeCount, matches.filter(Boolean).length);
    for (let first = 0; first < matches.length; first += 3)
      for (let last = first; last < Math.min(matches.length, first + 90); last++)
        assert.equal(
          found.rows.any(first, last),
          matches.slice(first, last + 1).includes(1),
          `${pattern} ${first} ${last}`,
        );
  }
});

test("marks every pixel column in which a frame of any depth matches", () => {
  const flame = decode(bigTree(4000, 9));
  for (const pattern of ["^f7$", "^f[0-3]$", "nothing"]) {
    const found = search(flame, compileSearch(pattern));
    const columns = matchedColumns(flame, found.frameMatches, 321.5);
    assert.equal(columns.length, 322);
    const expected = new Uint8Array(322);
    const scale = 321.5 / flame.width[0];
    for (let i = 1; i < flame.nodeCount; i++)
      if (found.frameMatches[flame.frame[i]] && flame.width[i] > 0)
        for (
          let x = Math.floor(startOf(flame, i) * scale);
          x < (startOf(flame, i) + flame.width[i]) * scale;
          x++
        )
          expected[x] = 1;
    assert.deepEqual([...columns], [...expected]);
  }
});
