/*
 * bands: rows of boxes as pixels, for a canvas that gets the whole picture at once.
 *
 * All lines of a row are alike, so a row is reckoned once, as one line of pixels, and copied down. Ten
 * thousand boxes of a few pixels each cost a canvas far more than this: it keeps, sorts and draws every
 * one as a shape. Edges between pixels are mixed as a canvas does. Lengths are in CSS pixels.
 */
const mixed = (under: number, colour: number, share: number): number => {
  const rest = 256 - share;
  const outer = (((under & 0xff00ff) * rest + (colour & 0xff00ff) * share) >>> 8) & 0xff00ff;
  const inner = (((under & 0x00ff00) * rest + (colour & 0x00ff00) * share) >>> 8) & 0x00ff00;
  return (outer | inner | 0xff000000) >>> 0;
};

/** "#rrggbb" as a pixel; its bytes stand in memory as red, green, blue, alpha, since browsers run on little-endian machines. */
export function pixelOf(colour: string): number {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

const known = new WeakMap<readonly string[], Uint32Array>();

/** The same for a list that does not change. */
export function pixelsOf(colours: readonly string[]): Uint32Array {
  let pixels = known.get(colours);
  if (!pixels) known.set(colours, (pixels = Uint32Array.from(colours, pixelOf)));
  return pixels;
}

export class Bands {
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0);
  private line = new Uint32Array(0);
  private background = 0;
  private ratio = 1;

  constructor(private readonly context: CanvasRenderingContext2D) {}

  /** Begins a picture of nothing; ratio is that of the canvas's pixels to CSS pixels. */
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
    this.line.fill(this.background);
  }

  /** A box of the row that is under way. */
  box(left: number, right: number, pixel: number): void {
    const { line, ratio } = this;
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

  /** Puts the row where it belongs; the next begins empty. */
  endRow(top: number, heightPx: number): void {
    const { line, pixels, ratio } = this;
    const width = line.length;
    const lines = pixels.length / width;
    const from = Math.max(0, Math.trunc(top * ratio * 256));
    const to = Math.min(lines << 8, Math.trunc((top + heightPx) * ratio * 256));
    for (let y = from >> 8; y << 8 < to; y++) {
      const share = Math.min(to, (y + 1) << 8) - Math.max(from, y << 8);
      if (share === 256) pixels.set(line, y * width);
      else for (let x = 0; x < width; x++) pixels[y * width + x] = mixed(this.background, line[x], share);
    }
    line.fill(this.background);
  }

  /** Shows what was made; whatever was on the canvas is gone. */
  put(): void {
    if (this.image) this.context.putImageData(this.image, 0, 0);
  }
}
