/*
 * pictures: the visible icicles as SVG and PNG. The painter of the screen paints them too, so
 * colours, window, marks and labels are the same. Several icicles are stacked vertically.
 */
import type { Flame } from "../model/tree/flame.ts";
import { visible } from "../model/text/visible_text_model.ts";
import { Shapes } from "../views/icicle/bands.ts";
import { spokenNode } from "../views/foot/describe.ts";
import { IciclePainter, type Picture } from "../views/icicle/icicle_draw.ts";
import { rowHeight } from "../views/icicle/rows.ts";

const gapPx = 12;
/** The maximum width and height of a browser's canvas. */
export const maxCanvasPx = 16_384;

/** Paints the picture repeatedly until all names are fitted and written. */
function paintWhole(context: CanvasRenderingContext2D, picture: Picture): IciclePainter {
  const painter = new IciclePainter(context, new Shapes(context));
  for (let isWhole = painter.paint(picture); !isWhole;) isWhole = painter.paintMore(picture);
  return painter;
}

/** The upper edge of each picture, and the total size. */
function placesOf(pictures: readonly Picture[]): { tops: number[]; width: number; height: number } {
  const tops: number[] = [];
  let height = 0;
  for (const { rows } of pictures) {
    tops.push(height);
    height += rows.viewPx + gapPx;
  }
  return {
    tops,
    width: Math.max(...pictures.map(({ widthPx }) => widthPx)),
    height: height - gapPx,
  };
}

/* ---- SVG ---- */

/** Characters that XML 1.0 cannot contain, not even escaped. */
const notInXml =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
export const inXml = (text: string) => text.replace(notInXml, "\ufffd");
const escape = (text: string) =>
  inXml(visible(text)).replace(/[&<>"']/g, (letter) => entities[letter]);
const short = (value: number) => String(Math.round(value * 100) / 100);

/** The part of the canvas API that the painter uses, written as SVG. */
class SvgPen {
  fillStyle: string | CanvasPattern = "#000";
  globalAlpha = 1;
  textBaseline = "middle";
  private readonly elements: string[] = [];
  private readonly measuring = document.createElement("canvas").getContext("2d")!;

  set font(font: string) {
    this.measuring.font = font;
  }
  get font(): string {
    return this.measuring.font;
  }
  measureText(text: string): TextMetrics {
    return this.measuring.measureText(text);
  }
  createPattern(): CanvasPattern {
    // fill() recognizes it by its type, which is not a string
    return this.measuring.createPattern(this.measuring.canvas, "repeat")!;
  }
  private fill(): string {
    const opacity = this.globalAlpha < 1 ? ` fill-opacity="${this.globalAlpha}"` : "";
    return (
      `fill="` +
      `${typeof this.fillStyle === "string" ? escape(this.fillStyle) : "url(#hatch)"}"` +
      opacity
    );
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.elements.push(
      `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ` +
        `${this.fill()}/>`,
    );
  }
  fillText(text: string, x: number, y: number): void {
    this.elements.push(
      `<text x="${short(x)}" y="${short(y)}" dy=".35em" ${this.fill()}>${escape(text)}</text>`,
    );
  }
  text(): string {
    return this.elements.join("\n");
  }
}

/** For each box, an invisible rectangle over it with a title. */
function titles(
  flame: Flame,
  { boxes }: IciclePainter,
  { rows, scrollTop }: Picture,
  unit: string,
): string {
  const made: string[] = [];
  for (let i = 0; i < boxes.count; i++) {
    const place =
      `x="${short(boxes.x[i])}" y="${short(rows.topOf(boxes.row[i]) - scrollTop)}" ` +
      `width="${short(boxes.width[i])}" height="${rowHeight - 1}"`;
    made.push(
      `<rect ${place} fill-opacity="0"><title>` +
        `${escape(spokenNode(flame, boxes.node[i], unit))}</title></rect>`,
    );
  }
  return made.join("\n");
}

export function toSvg(pictures: readonly Picture[], title: string): string {
  const { tops, width, height } = placesOf(pictures);
  const { palette, flame } = pictures[0];
  const parts = pictures.map((picture, i) => {
    const pen = new SvgPen();
    const painter = paintWhole(pen as unknown as CanvasRenderingContext2D, picture);
    const unit = picture.flame.metadata.unit ?? "";
    return (
      `<svg y="${tops[i]}" width="${picture.widthPx}" height="${picture.rows.viewPx}" ` +
      `font-size="12">\n${pen.text()}\n${titles(picture.flame, painter, picture, unit)}\n</svg>`
    );
  });
  const hatch =
    `<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path ` +
    `d="M-6 6L0 0M0 6L6 0M6 6L12 0" stroke="${escape(palette.hatch)}"/></pattern>`;
  const about = spokenNode(flame, 0, flame.metadata.unit ?? "");
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ` +
      `${width} ${height}" font-family="Segoe UI, Roboto, Helvetica Neue, Noto Sans, DejaVu ` +
      `Sans, sans-serif" role="img">`,
    `<title>${escape(title)}</title><desc>${escape(about)}</desc><defs>${hatch}</defs>`,
    `<rect width="${width}" height="${height}" fill="${escape(palette.background)}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/* ---- PNG ---- */

export async function toPng(pictures: readonly Picture[]): Promise<Blob> {
  const { tops, width, height } = placesOf(pictures);
  const ratio = Math.min(2, Math.max(1, devicePixelRatio), maxCanvasPx / Math.max(width, height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d", { alpha: false });
  if (!context)
    throw new Error("The browser could not create the picture. Reload the page and try again.");
  context.fillStyle = pictures[0].palette.background;
  context.fillRect(0, 0, canvas.width, canvas.height);
  pictures.forEach((picture, i) => {
    context.save();
    context.setTransform(ratio, 0, 0, ratio, 0, tops[i] * ratio);
    context.beginPath();
    context.rect(0, 0, picture.widthPx, picture.rows.viewPx);
    context.clip();
    paintWhole(context, picture);
    context.restore();
  });
  return pngOf(canvas);
}

export function pngOf(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) =>
        blob
          ? resolve(blob)
          : reject(new Error("The browser could not write the picture. Try a smaller view.")),
      "image/png",
    ),
  );
}
