/*
 * The cost of the icicle of a million nodes per frame, and of renaming a function with 100,000
 * callers, in reference loops (relative_cost.ts). `make bench-frames` runs it.
 */
import { makePalette } from "../src/model/colours/colour.ts";
import { decodeFlame } from "../src/model/tree/flame.ts";
import { FrameColours } from "../src/model/colours/frame_colours.ts";
import { matchedColumns, nodeAt } from "../src/model/tree/row_layout.ts";
import { compileSearch, search } from "../src/model/search/search.ts";
import { panned, wholeOf, zoomed } from "../src/model/tree/window.ts";
import { IciclePainter } from "../src/views/icicle/icicle_draw.ts";
import { Rows } from "../src/views/icicle/rows.ts";
import { bigFlame } from "./big_flame.mjs";
import { blankContext } from "./blank_canvas.ts";
import { printCost, relativeCost } from "./relative_cost.ts";
import { renameWideTree } from "./wide_tree.ts";

/** One frame of a 60 Hz screen, in reference loops. */
const frame = 5;

const bytes: Buffer = bigFlame(1_000_000);
const flame = decodeFlame(
  bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
);
const colours = new FrameColours(flame);
const palette = makePalette(false);
const painter = new IciclePainter(blankContext as unknown as CanvasRenderingContext2D);
const rows = new Rows(flame.rowCount, 800, false);
const marks = search(flame, compileSearch("Method1.*7"));
const whole = wholeOf(flame, 0);
const paint = (window = whole, withMarks = false, scrollTop = 0) =>
  painter.paint({
    flame,
    colours,
    palette,
    window,
    rows,
    scrollTop,
    widthPx: 1600,
    ratio: 1,
    zoomDepth: 0,
    marks: withMarks ? marks : null,
  });
paint();

console.log(`${"".padEnd(64)} ${"loops".padStart(8)} ${"goal".padStart(6)}`);
let window = whole;
printCost(
  "one frame of zooming",
  relativeCost(60, (i) =>
    paint((window = zoomed(window, whole, whole.to * 1e-5, 0.3, i < 30 ? 0.75 : 1.3))),
  ),
  frame,
);
window = { from: whole.to * 0.4, to: whole.to * 0.45 };
printCost(
  "one frame of panning",
  relativeCost(40, () => paint((window = panned(window, whole, 0.02)))),
  frame,
);
printCost(
  "one frame of scrolling",
  relativeCost(30, (i) => paint(whole, false, i * 40)),
  frame,
);
printCost(
  "minimap with search matches",
  relativeCost(10, () => void matchedColumns(flame, marks.frameMatches, 1600)),
  frame,
);
const hitThousand = () => {
  for (let i = 0; i < 1000; i++) nodeAt(flame, i % flame.rowCount, whole, 1600, (i * 37) % 1600);
};
printCost("1,000 hit tests", relativeCost(10, hitThousand), frame);
// The whole tree with a tenth of all nodes marked is painted after a letter was typed, not during a
// movement.
printCost(
  "paint with a tenth of the nodes marked",
  relativeCost(20, () => paint(whole, true)),
  4 * frame,
);
printCost("rename a function with 100,000 callers", relativeCost(5, renameWideTree), 150);
