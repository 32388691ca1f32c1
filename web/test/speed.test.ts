import assert from "node:assert/strict";
import { test } from "node:test";
import { makePalette } from "../src/model/colour.ts";
import { decodeFlame } from "../src/model/flame.ts";
import { FrameColours } from "../src/model/frame_colours.ts";
import { matchedColumns, nodeAt } from "../src/model/layout.ts";
import { compileSearch, search } from "../src/model/search.ts";
import { panned, wholeOf, zoomed } from "../src/model/window.ts";
import { IciclePainter } from "../src/views/icicle_draw.ts";
import { Rows } from "../src/views/rows.ts";
import { bigFlame } from "./big_flame.mjs";

/** A canvas that draws nothing: what is measured is what the page itself does. */
const blank = {
  font: "", fillStyle: "", globalAlpha: 1, textBaseline: "",
  fillRect: () => undefined,
  fillText: () => undefined,
  measureText: (text: string) => ({ width: text.length * 6.5 }),
};

/** Processor time of each call in ms, sorted: wall time would measure the machine's other work. */
function costs(count: number, run: (i: number) => void): number[] {
  return Array.from({ length: count }, (_, i) => {
    const before = process.cpuUsage();
    run(i);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  }).sort((a, b) => a - b);
}
const median = (sorted: number[]) => sorted[sorted.length >> 1];

test("a million nodes are hit, zoomed, panned and scrolled within a frame of the screen", () => {
  const bytes: Buffer = bigFlame(1_000_000);
  const flame = decodeFlame(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer);
  const colours = new FrameColours(flame);
  const palette = makePalette(false);
  const painter = new IciclePainter(blank as unknown as CanvasRenderingContext2D);
  const rows = new Rows(flame.rowCount, 800, false);
  const marks = search(flame, compileSearch("Method1.*7"));
  const whole = wholeOf(flame, 0);
  const paint = (window = whole, withMarks = false, scrollTop = 0) =>
    painter.paint({ flame, colours, palette, window, rows, scrollTop, widthPx: 1600, zoomDepth: 0, marks: withMarks ? marks : null });
  paint();

  let window = whole;
  const zooming = costs(60, (i) => paint((window = zoomed(window, whole, whole.to * 1e-5, 0.3, i < 30 ? 0.75 : 1.3))));
  window = { from: whole.to * 0.4, to: whole.to * 0.45 };
  const panning = costs(40, () => paint((window = panned(window, whole, 0.02))));
  const scrolling = costs(30, (i) => paint(whole, false, i * 40));
  const marked = costs(20, () => paint(whole, true));
  const columns = costs(10, () => void matchedColumns(flame, marks.frameMatches, 1600));
  const hits = costs(10, () => {
    for (let i = 0; i < 1000; i++) nodeAt(flame, i % flame.rowCount, whole, 1600, (i * 37) % 1600);
  });
  const shown = { zooming, panning, scrolling, columns, marked };
  console.log(`# a million nodes, ms of CPU, median and most: ${Object.entries(shown).map(([name, all]) => `${name} ${median(all).toFixed(1)} ${all[all.length - 1].toFixed(1)}`).join(", ")}; a hit ${median(hits).toFixed(2)} us`);
  for (const [name, all] of Object.entries({ zooming, panning, scrolling, columns })) assert.ok(median(all) < 16, `${name}: ${median(all)} ms`);
  // The whole tree with a tenth of all nodes marked is painted after a letter typed, not while something moves.
  assert.ok(median(marked) < 60, `${median(marked)} ms`);
  assert.ok(median(hits) < 16);
});

test("names that are new are fitted a few hundred at a time, and all in the end", () => {
  const bytes: Buffer = bigFlame(30_000, { maxDepth: 12, functionCount: 20_000 });
  const flame = decodeFlame(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer);
  let labels = 0;
  const context = { ...blank, fillText: () => void labels++ };
  const painter = new IciclePainter(context as unknown as CanvasRenderingContext2D);
  const picture = {
    flame, colours: new FrameColours(flame), palette: makePalette(false), window: wholeOf(flame, 0), rows: new Rows(flame.rowCount, 800, false),
    scrollTop: 0, widthPx: 60_000, zoomDepth: 0, marks: null,
  };
  const counts: number[] = [];
  do {
    labels = 0;
    const isWhole = painter.paint(picture);
    counts.push(labels);
    if (isWhole) break;
  } while (counts.length < 100);
  assert.ok(counts.length > 2 && counts.length < 100, `${counts.length} pictures`);
  for (let i = 1; i < counts.length; i++) assert.ok(counts[i] >= counts[i - 1]);
  labels = 0;
  assert.ok(painter.paint(picture));
  assert.equal(labels, counts[counts.length - 1]);
});
