/*
 * bands: draws rows of boxes as pixels, for a canvas that gets the whole picture at once; or as
 * shapes, for targets without pixel access.
 *
 * All lines of a row are equal, so a row is computed as one line of pixels and copied down. For a
 * canvas, ten thousand boxes of a few pixels each cost far more than this, because it stores, sorts
 * and draws each as a shape. Edges between pixels are blended as on a canvas. Lengths are in CSS
 * pixels.
 */
const mixed = (under: number, colour: number, share: number): number => {
  const rest = 256 - share;
  const outer = (((under & 0xff00ff) * rest + (colour & 0xff00ff) * share) >>> 8) & 0xff00ff;
  const inner = (((under & 0x00ff00) * rest + (colour & 0x00ff00) * share) >>> 8) & 0x00ff00;
  return (outer | inner | 0xff000000) >>> 0;
};

/**
 * "#rrggbb" as a pixel. The bytes in memory are red, green, blue, alpha, because browsers run on
 * little-endian machines.
 */
function pixelOf(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

const known = new WeakMap<readonly string[], Uint32Array>();

/** Cached for a list that does not change. */
function pixelsOf(colours: readonly string[]): Uint32Array {
  let pixels = known.get(colours);
  if (!pixels) known.set(colours, (pixels = Uint32Array.from(colours, pixelOf)));
  return pixels;
}

/**
 * A target for rows of boxes: call begin, then row by row, then put. Discards the previous content
 * of the canvas.
 */
export interface BoxTarget {
  /** Starts an empty picture; ratio is canvas pixels per CSS pixel. */
  begin(widthPx: number, heightPx: number, ratio: number, background: string): void;
  beginRow(top: number, heightPx: number, fills: readonly string[]): void;
  /** fill: an index into the row's fills. */
  box(left: number, right: number, fill: number): void;
  endRow(): void;
  put(): void;
}

/** Draws each box as a shape, for targets without pixels: under a transformation or in an SVG. */
export class Shapes implements BoxTarget {
  private row = { top: 0, heightPx: 0, fills: [] as readonly string[] };

  constructor(private readonly context: CanvasRenderingContext2D) {}

  begin(widthPx: number, heightPx: number, _ratio: number, background: string): void {
    this.context.fillStyle = background;
    this.context.fillRect(0, 0, widthPx, heightPx);
  }
  beginRow(top: number, heightPx: number, fills: readonly string[]): void {
    this.row = { top, heightPx, fills };
  }
  box(left: number, right: number, fill: number): void {
    const x = Math.max(0, left);
    this.context.fillStyle = this.row.fills[fill];
    this.context.fillRect(x, this.row.top, right - x, this.row.heightPx);
  }
  endRow(): void {}
  put(): void {}
}

export class Bands implements BoxTarget {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private line = new Uint32Array(0);
  private background = 0;
  private ratio = 1;
  private row: { top: number; heightPx: number; fills: Uint32Array } = {
    top: 0,
    heightPx: 0,
    fills: new Uint32Array(0),
  };

  constructor(private readonly context: CanvasRenderingContext2D) {}

  begin(widthPx: number, heightPx: number, ratio: number, background: string): void {
    const width = Math.max(1, Math.round(widthPx * ratio));
    const height = Math.max(1, Math.round(heightPx * ratio));
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.line = new Uint32Array(width);
    }
    this.ratio = ratio;
    this.background = pixelOf(background);
    this.pixels.fill(this.background);
  }

  beginRow(top: number, heightPx: number, fills: readonly string[]): void {
    this.row = { top, heightPx, fills: pixelsOf(fills) };
    this.line.fill(this.background);
  }

  box(left: number, right: number, fill: number): void {
    const { line, ratio } = this;
    const pixel = this.row.fills[fill];
    // In 256ths of a pixel.
    const from = Math.max(0, Math.trunc(left * ratio * 256));
    const to = Math.min(line.length << 8, Math.trunc(right * ratio * 256));
    if (from >= to) return;
    let at = from >> 8;
    const last = to >> 8;
    if (at === last) {
      line[at] = mixed(line[at], pixel, to - from);
      return;
    }
    const first = from & 255;
    if (first) {
      line[at] = mixed(line[at], pixel, 256 - first);
      at++;
    }
    while (at < last) line[at++] = pixel;
    if (to & 255) line[last] = mixed(line[last], pixel, to & 255);
  }

  endRow(): void {
    const { line, pixels, ratio } = this;
    const { top, heightPx } = this.row;
    const width = line.length;
    const lines = pixels.length / width;
    const from = Math.max(0, Math.trunc(top * ratio * 256));
    const to = Math.min(lines << 8, Math.trunc((top + heightPx) * ratio * 256));
    for (let y = from >> 8; y << 8 < to; y++) {
      const share = Math.min(to, (y + 1) << 8) - Math.max(from, y << 8);
      if (share === 256) pixels.set(line, y * width);
      else
        for (let x = 0; x < width; x++)
          pixels[y * width + x] = mixed(this.background, line[x], share);
    }
  }

  put(): void {
    if (this.image) this.context.putImageData(this.image, 0, 0);
  }
}
