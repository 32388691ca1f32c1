/*
 * icicle_draw: paints the visible part of an icicle on a canvas of the size of the view, not of the
 * graph, so that depth and number of nodes do not meet a limit of the canvas.
 *
 * One call of paint is one picture: boxes first, row by row as pixels (bands.ts), labels last. The
 * painted boxes are kept for the overlay (hover, marks). Cost: that of layoutRow, and at most one
 * label per 22 pixels.
 */
import { FrameFlag, hasSigns, type Flame } from "../../model/tree/flame.ts";
import { diffFillOf, dimmedFill, rootFill, type Palette } from "../../model/colours/colour.ts";
import type { FrameColours } from "../../model/colours/frame_colours.ts";
import { beginOf, endOf, firstEndingNear, layoutRow } from "../../model/tree/row_layout.ts";
import type { SearchResult } from "../../model/search/search.ts";
import type { Window } from "../../model/tree/window.ts";
import { Bands, type BoxTarget } from "./bands.ts";
import { LabelFitter } from "./label_fitter.ts";
import { rowHeight, type Rows } from "./rows.ts";

const fontPx = 12;
const textInset = 5;
const minLabelPx = 22;
/**
 * The number of names that are fitted for the first time in one picture; the rest is fitted in the
 * next ones.
 */
const newNamesPerPaint = 500;
const minSignPx = 9;
const minHatchPx = 2;
const signPx = 2;
/** Length and distance of the strokes of each sign. */
const signShapes = [
  [FrameFlag.Kernel, rowHeight - 4, rowHeight],
  [FrameFlag.Inlined, 4, 7],
  [FrameFlag.Interpreted, 2, 4],
  [FrameFlag.NotSymbolised, 3, rowHeight - 6],
] as const;
const fontFamily =
  '"Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "DejaVu Sans Condensed", ' +
  "system-ui, sans-serif";

/** The colours of a picture, and the additions for high contrast (ui/contrast.ts). */
export interface Look extends Palette {
  /** The fills of the minimap, with the same indexes as fills, if they differ. */
  overview?: string[];
  /**
   * Draws edges and marks that distinguish boxes without colours. Called after the boxes and before
   * their names.
   */
  paintEdges?: (context: CanvasRenderingContext2D, picture: Picture) => void;
}

export interface Picture {
  flame: Flame;
  colours: FrameColours;
  palette: Look;
  window: Window;
  rows: Rows;
  scrollTop: number;
  widthPx: number;
  /** Canvas pixels per CSS pixel. */
  ratio: number;
  /** The depth of the zoomed node; its ancestors are faded. */
  zoomDepth: number;
  marks: SearchResult | null;
}

/**
 * The painted boxes: box i is node[i] (the first of a run) at x[i], row[i], width[i], with fill[i]
 * of the palette.
 */
export class PaintedBoxes {
  count = 0;
  node = new Uint32Array(1024);
  row = new Uint32Array(1024);
  x = new Float32Array(1024);
  width = new Float32Array(1024);
  fill = new Uint16Array(1024);

  push(node: number, row: number, x: number, width: number, fill: number): void {
    if (this.count === this.node.length) this.grow();
    this.node[this.count] = node;
    this.row[this.count] = row;
    this.x[this.count] = x;
    this.width[this.count] = width;
    this.fill[this.count++] = fill;
  }
  private grow(): void {
    const size = this.count * 2;
    const copy = <T extends Uint32Array | Float32Array | Uint16Array>(from: T, to: T): T => (
      to.set(from),
      to
    );
    this.node = copy(this.node, new Uint32Array(size));
    this.row = copy(this.row, new Uint32Array(size));
    this.x = copy(this.x, new Float32Array(size));
    this.width = copy(this.width, new Float32Array(size));
    this.fill = copy(this.fill, new Uint16Array(size));
  }
}

/** The index of the palette's fill for a node. */
export function fillOf(
  { flame, colours }: Pick<Picture, "flame" | "colours">,
  node: number,
): number {
  if (flame.baseCum) return diffFillOf(flame.baseCum[node], flame.cum[node]);
  return node === 0 ? rootFill : colours.fill(flame.frame[node]);
}

const nameOf = (flame: Flame, node: number): string =>
  node === 0 ? "all" : flame.frames.name(flame.frame[node]);
/** Precedes the name in a box with a value below zero. */
const minus = "− ";
const minusPx = 11;

export class IciclePainter {
  readonly boxes = new PaintedBoxes();
  private readonly fitter: LabelFitter;
  private hatch: CanvasPattern | null = null;
  private hatchColour = "";
  /** Boxes whose names were not fitted with the picture, and the left insets of these names. */
  private late: { box: number; inset: number }[] = [];

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly target: BoxTarget = new Bands(context),
  ) {
    context.font = `${fontPx}px ${fontFamily}`;
    this.fitter = new LabelFitter(context);
  }

  /** Paints the picture. New names take time to fit: false if some are left for paintMore. */
  paint(picture: Picture): boolean {
    const { target } = this;
    const { palette, widthPx, ratio, rows, scrollTop } = picture;
    target.begin(widthPx, rows.viewPx, ratio, palette.background);
    this.boxes.count = 0;
    const [firstRow, lastRow] = rows.seen(scrollTop);
    for (let row = firstRow; row <= lastRow; row++) {
      target.beginRow(
        rows.topOf(row) - scrollTop,
        rowHeight - 1,
        row < picture.zoomDepth ? palette.faded : palette.fills,
      );
      this.paintRow(picture, row);
      target.endRow();
    }
    target.put();
    palette.paintEdges?.(this.context, picture);
    this.late = [];
    this.paintOnBoxes(picture);
    return this.paintMore(picture);
  }

  /** Writes some of the remaining names into the same picture; false if there are more. */
  paintMore(picture: Picture): boolean {
    const { late } = this;
    this.late = [];
    let newNames = 0;
    for (const left of late)
      if (newNames < newNamesPerPaint) newNames += this.paintName(picture, left.box, left.inset);
      else this.late.push(left);
    return this.late.length === 0;
  }

  private paintRow(picture: Picture, row: number): void {
    const { target, boxes } = this;
    const { flame, marks, window, widthPx } = picture;
    layoutRow(flame, row, window, widthPx, (first, last, left, right) => {
      const node = flame.rowNodes[first];
      const isMarked = !marks || (first === last && marks.rows.any(first, last));
      const gap = first === last && right - left > 3 ? 1 : 0;
      const fill = isMarked ? fillOf(picture, node) : dimmedFill;
      target.box(left, right - gap, fill);
      if (first === last) boxes.push(node, row, left, right - left - gap, fill);
      else if (marks) this.paintMarksOfRun(picture, first, last);
    });
  }

  /** Marked narrow boxes are painted at least one pixel wide, so that every match is visible. */
  private paintMarksOfRun(picture: Picture, first: number, last: number): void {
    const { flame, window, widthPx } = picture;
    const marks = picture.marks!;
    const scale = widthPx / (window.to - window.from);
    let at = first;
    while (at <= last && marks.rows.any(at, last)) {
      // The boxes that end within a pixel of this one's left edge share a mark if any of them
      // matches.
      const left = (beginOf(flame, at) - window.from) * scale;
      const next = Math.max(
        at + 1,
        firstEndingNear(flame, at, last + 1, window.from + (left + 1) / scale),
      );
      if (marks.rows.any(at, next - 1)) {
        let matched = at;
        while (!marks.rows.any(matched, matched)) matched++;
        const right = Math.max(left + 1, (endOf(flame, next - 1) - window.from) * scale);
        this.target.box(left, right, fillOf(picture, flame.rowNodes[matched]));
      }
      at = next;
    }
  }

  /** Hatched: stacks that are gone in a diff, values below zero, and nodes merged by truncation. */
  private isHatched(flame: Flame, node: number): boolean {
    if (flame.cum[node] < 0) return true;
    if (flame.baseCum)
      return flame.baseCum[node] < 0 || (flame.cum[node] === 0 && flame.baseCum[node] !== 0);
    return (flame.frames.flags(flame.frame[node]) & FrameFlag.Other) !== 0;
  }

  private paintHatch(picture: Picture, x: number, y: number, width: number): void {
    const { context } = this;
    if (!this.hatch || this.hatchColour !== picture.palette.hatch) {
      this.hatchColour = picture.palette.hatch;
      this.hatch = makeHatch(context, this.hatchColour);
    }
    if (!this.hatch) return;
    context.fillStyle = this.hatch;
    context.globalAlpha = 0.35;
    context.fillRect(x, y, width, rowHeight - 1);
    context.globalAlpha = 1;
  }

  /** Paints everything on the boxes except names that were never fitted. */
  private paintOnBoxes(picture: Picture): void {
    const { context, boxes, late } = this;
    const { flame, palette, rows, scrollTop, zoomDepth } = picture;
    const mayHatch = flame.baseCum !== null || flame.isCut || hasSigns(flame);
    context.textBaseline = "middle";
    for (let i = 0; i < boxes.count; i++) {
      const width = boxes.width[i];
      const node = boxes.node[i];
      if (width < minSignPx && !(width > minHatchPx && mayHatch)) continue;
      const y = rows.topOf(boxes.row[i]) - scrollTop;
      if (mayHatch && this.isHatched(flame, node)) this.paintHatch(picture, boxes.x[i], y, width);
      if (width < minSignPx) continue;
      const signs = node === 0 ? 0 : flame.frames.flags(flame.frame[node]) & picture.colours.signs;
      if (signs)
        context.fillStyle = (boxes.row[i] < zoomDepth ? palette.fadedInks : palette.inks)[
          boxes.fill[i]
        ];
      const inset = textInset + (signs ? this.paintSigns(signs, boxes.x[i], y) : 0);
      if (width < minLabelPx) continue;
      if (this.fitter.knows(nameOf(flame, node))) this.paintName(picture, i, inset);
      else late.push({ box: i, inset });
    }
  }

  /** Returns the number of names fitted for the first time. */
  private paintName(picture: Picture, box: number, inset: number): number {
    const { context, boxes, fitter } = this;
    const { flame, palette, rows, scrollTop, zoomDepth } = picture;
    const name = nameOf(flame, boxes.node[box]);
    const isNew = !fitter.knows(name);
    const sign = flame.cum[boxes.node[box]] < 0 ? minus : "";
    const text = fitter.fit(
      name,
      boxes.width[box] - inset - textInset - (sign ? minusPx : 0),
      flame.frames.flags(flame.frame[boxes.node[box]]),
    );
    if (text) {
      const y = rows.topOf(boxes.row[box]) - scrollTop;
      context.fillStyle = (boxes.row[box] < zoomDepth ? palette.fadedInks : palette.inks)[
        boxes.fill[box]
      ];
      context.fillText(sign + text, boxes.x[box] + inset, y + rowHeight / 2);
    }
    return isNew ? 1 : 0;
  }

  /**
   * Signs at the left edge: a line for the kernel, dashes for inlined, dots for interpreted frames,
   * one dot above and one below for frames without symbols.
   */
  private paintSigns(signs: number, x: number, y: number): number {
    const { context } = this;
    const draw = (at: number, length: number, step: number) => {
      for (let top = 1; top + length < rowHeight - 1; top += step)
        context.fillRect(at, y + top, signPx, length);
    };
    let inset = 0;
    context.globalAlpha = 0.6;
    for (const [flag, length, step] of signShapes) {
      if (!(signs & flag)) continue;
      draw(x + inset + 1, length, step);
      inset += signPx + 1;
    }
    context.globalAlpha = 1;
    return inset;
  }
}

function makeHatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  if (!pen) return null;
  pen.strokeStyle = colour;
  pen.beginPath();
  for (const offset of [-6, 0, 6]) {
    pen.moveTo(offset, 6);
    pen.lineTo(offset + 6, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
