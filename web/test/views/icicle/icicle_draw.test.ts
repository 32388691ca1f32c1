import assert from "node:assert/strict";
import { test } from "node:test";
import { makePalette } from "../../../src/model/colours/colour.ts";
import { decodeFlame } from "../../../src/model/tree/flame.ts";
import { FrameColours } from "../../../src/model/colours/frame_colours.ts";
import { wholeOf } from "../../../src/model/tree/window.ts";
import { IciclePainter } from "../../../src/views/icicle/icicle_draw.ts";
import { Rows } from "../../../src/views/icicle/rows.ts";
import { bigFlame } from "../../big_flame.mjs";
import { blankContext } from "../../blank_canvas.ts";

test("labels of new names are measured a few hundred per paint until all are drawn", () => {
  const bytes: Buffer = bigFlame(30_000, { maxDepth: 12, functionCount: 20_000 });
  const flame = decodeFlame(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer,
  );
  let labels = 0;
  const context = { ...blankContext, fillText: () => void labels++ };
  const painter = new IciclePainter(context as unknown as CanvasRenderingContext2D);
  const picture = {
    flame,
    colours: new FrameColours(flame),
    palette: makePalette(false),
    window: wholeOf(flame, 0),
    rows: new Rows(flame.rowCount, 800, false),
    scrollTop: 0,
    widthPx: 60_000,
    ratio: 1,
    zoomDepth: 0,
    marks: null,
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
