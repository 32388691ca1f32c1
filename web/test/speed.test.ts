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
import { effort } from "./effort.ts";

/** A canvas that draws nothing: what is measured is what the page itself does. */
const blank = {
  font: "", fillStyle: "", globalAlpha: 1, textBaseline: "",
  fillRect: () => undefined,
  fillText: () => undefined,
  createImageData: (width: number, height: number) => ({ width, height, data: new Uint8ClampedArray(width * height * 4) }),
  putImageData: () => undefined,
  measureText: (text: string) => ({ width: text.length * 6.5 }),
};

/** In walks of effort.ts: a frame of a screen with 60 a second. */
const frame = 5;

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
    painter.paint({ flame, colours, palette, window, rows, scrollTop, widthPx: 1600, ratio: 1, zoomDepth: 0, marks: withMarks ? marks : null });
  paint();

  let window = whole;
  const zooming = effort(60, frame, (i) => paint((window = zoomed(window, whole, whole.to * 1e-5, 0.3, i < 30 ? 0.75 : 1.3))));
  window = { from: whole.to * 0.4, to: whole.to * 0.45 };
  const panning = effort(40, frame, () => paint((window = panned(window, whole, 0.02))));
  const scrolling = effort(30, frame, (i) => paint(whole, false, i * 40));
  const marked = effort(20, 4 * frame, () => paint(whole, true));
  const columns = effort(10, frame, () => void matchedColumns(flame, marks.frameMatches, 1600));
  const hits = effort(10, frame, () => {
    for (let i = 0; i < 1000; i++) nodeAt(flame, i % flame.rowCount, whole, 1600, (i * 37) % 1600);
  });
  const shown = { zooming, panning, scrolling, columns, marked, hits };
  console.log(`# a million nodes, walks of a table: ${Object.entries(shown).map(([name, cost]) => `${name} ${cost.toFixed(2)}`).join(", ")}`);
  for (const [name, cost] of Object.entries({ zooming, panning, scrolling, columns, hits })) assert.ok(cost < frame, `${name}: ${cost} walks`);
  // The whole tree with a tenth of all nodes marked is painted after a letter typed, not while something moves.
  assert.ok(marked < 4 * frame, `${marked} walks`);
});

test("names that are new are fitted a few hundred at a time, and all in the end", () => {
  const bytes: Buffer = bigFlame(30_000, { maxDepth: 12, functionCount: 20_000 });
  const flame = decodeFlame(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer);
  let labels = 0;
  const context = { ...blank, fillText: () => void labels++ };
  const painter = new IciclePainter(context as unknown as CanvasRenderingContext2D);
  const picture = {
    flame, colours: new FrameColours(flame), palette: makePalette(false), window: wholeOf(flame, 0), rows: new Rows(flame.rowCount, 800, false),
    scrollTop: 0, widthPx: 60_000, ratio: 1, zoomDepth: 0, marks: null,
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
