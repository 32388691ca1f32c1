/*
 * colour: the colours of boxes and their text, light and dark. They are defined in OKLCH, whose
 * steps are perceptually equal, and converted to sRGB here, because older browsers do not support
 * oklch() on a canvas. frame_colours.ts chooses the colour of a frame.
 *
 * Every fill has a text colour ("ink") with a contrast of at least 4.5 to 1, also when the box is
 * faded because it is a caller of the zoomed frame.
 */

/**
 * sRGB "#rrggbb" of lightness 0..1, chroma 0..0.4 and hue in degrees, clipped to the sRGB gamut.
 */
export function oklch(lightness: number, chroma: number, hue: number): string {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channel = (linear: number) => {
    const clipped = Math.min(1, Math.max(0, linear));
    const value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(value * 255)
      .toString(16)
      .padStart(2, "0");
  };
  return (
    "#" +
    channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) +
    channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) +
    channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)
  );
}

function channels(colour: string): [number, number, number] {
  const part = (at: number) => parseInt(colour.slice(at, at + 2), 16) / 255;
  return [part(1), part(3), part(5)];
}

/** The relative luminance of a colour, 0 to 1, as defined by WCAG 2. */
export function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((value) =>
    value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** A colour with the opacity `share` over another one. */
export function mix(colour: string, under: string, share: number): string {
  const below = channels(under);
  const mixed = channels(colour).map((value, i) =>
    Math.round(255 * (value * share + below[i] * (1 - share))),
  );
  return "#" + mixed.map((value) => value.toString(16).padStart(2, "0")).join("");
}

export interface Palette {
  isDark: boolean;
  /** fills[h * shadeCount + s] for hue h and shade s, followed by the fills defined below. */
  fills: string[];
  /** The colour of text on fills[i]. */
  inks: string[];
  /** Faded fills, and their text colours. */
  faded: string[];
  fadedInks: string[];
  background: string;
  outline: string;
  /** Marks search matches in the minimap. */
  mark: string;
  hatch: string;
  /** Covers the boxes of the function under the pointer. */
  veil: string;
}

export const shadeCount = 3;
export const diffSteps = 6;
/** Step i of a function's self share starts at heatShares[i]; step 0 is no self value. */
export const heatShares = [0, 0, 0.001, 0.003, 0.01, 0.03, 0.1] as const;
// Warm hues are closer together than cold ones, because they are easier to distinguish and fit a
// flame.
const hues = [36, 62, 84, 20, 106, 134, 50, 164, 72, 196, 228, 8, 258, 288, 322, 350];
export const hueCount = hues.length;
/** One more "hue" without chroma, for the kernel and code without names. */
export const neutralHue = hues.length;

export const heatFill = (hues.length + 1) * shadeCount;
/** From "much less" via "equal" to "much more": 2 * diffSteps + 1 fills. */
export const diffFill = heatFill + heatShares.length;
export const rootFill = diffFill + 2 * diffSteps + 1;
export const dimmedFill = rootFill + 1;
export const diffFills = (palette: Palette): string[] => palette.fills.slice(diffFill, rootFill);
export const heatFills = (palette: Palette): string[] => palette.fills.slice(heatFill, diffFill);

function hueFill(hue: number, shade: number, isDark: boolean): string {
  // Warm hues have more chroma, and in the dark palette more lightness.
  const isWarm = hues[hue] >= 20 && hues[hue] <= 110;
  const chroma =
    hue === neutralHue ? 0.012 : isWarm ? (isDark ? 0.092 : 0.098) : isDark ? 0.06 : 0.058;
  const lightness =
    (isDark ? 0.42 + 0.032 * shade : 0.795 + 0.028 * shade) + (isWarm && isDark ? 0.02 : 0);
  return oklch(lightness, chroma, hue === neutralHue ? 260 : hues[hue]);
}

/**
 * Pale to strong: the steps differ in lightness, so they are distinguishable without colour vision.
 */
function heat(step: number, isDark: boolean): string {
  const strength = step / (heatShares.length - 1);
  if (step === 0) return isDark ? oklch(0.27, 0.006, 80) : oklch(0.945, 0.008, 80);
  return isDark
    ? oklch(0.27 + 0.58 * strength, 0.05 + 0.1 * strength, 10 + 75 * strength)
    : oklch(0.96 - 0.56 * strength, 0.05 + 0.1 * strength, 90 - 78 * strength);
}

function diffColour(step: number, isDark: boolean): string {
  const strength = Math.abs(step) / diffSteps;
  // Blue and orange are distinguishable with every common colour blindness.
  const hue = step < 0 ? 250 : 48;
  return isDark
    ? oklch(0.36 + 0.2 * strength, 0.006 + 0.124 * strength, hue)
    : oklch(0.925 - 0.2 * strength, 0.006 + 0.124 * strength, hue);
}

const minContrast = 4.5;

/** For each fill, the first ink that is readable on it. */
function inksOn(fills: readonly string[], inks: readonly string[]): string[] {
  const lights = inks.map((ink) => luminance(ink) + 0.05);
  return fills.map((fill) => {
    const light = luminance(fill) + 0.05;
    return (
      inks.find((_, i) => Math.max(lights[i] / light, light / lights[i]) >= minContrast) ??
      inks[inks.length - 1]
    );
  });
}

export function makePalette(isDark: boolean): Palette {
  const fills: string[] = [];
  for (let hue = 0; hue <= neutralHue; hue++)
    for (let shade = 0; shade < shadeCount; shade++) fills.push(hueFill(hue, shade, isDark));
  for (let step = 0; step < heatShares.length; step++) fills.push(heat(step, isDark));
  for (let step = -diffSteps; step <= diffSteps; step++) fills.push(diffColour(step, isDark));
  fills.push(isDark ? "#322e27" : "#e4dfd6", isDark ? "#25221c" : "#efece6");
  const background = isDark ? "#15130f" : "#faf8f4";
  const strong = isDark ? ["#f3efe9", "#0d0a06", "#ffffff"] : ["#1f1a14", "#ffffff", "#0d0a06"];
  const soft = [isDark ? "#938d83" : "#6f695f", ...strong];
  const faded = fills.map((fill) => mix(fill, background, 0.55));
  return {
    isDark,
    fills,
    inks: [...inksOn(fills.slice(0, dimmedFill), strong), ...inksOn(fills.slice(dimmedFill), soft)],
    faded,
    fadedInks: inksOn(faded, soft),
    background,
    outline: isDark ? "#fff6e8" : "#1f1a14",
    mark: isDark ? "#ff9c57" : "#b8420a",
    hatch: isDark ? "#8b857b" : "#746e64",
    veil: isDark ? "rgba(255,255,255,0.13)" : "rgba(60,35,0,0.09)",
  };
}

/** The fill for a share of the total. */
export function heatFillOf(share: number): number {
  if (share <= 0) return heatFill;
  let step = 1;
  while (step + 1 < heatShares.length && share >= heatShares[step + 1]) step++;
  return heatFill + step;
}

export const diffFillOf = (before: number, after: number): number =>
  diffFill + diffStep(before, after);

/** Index into the fills of a diff: the change of a node relative to its larger side. */
export function diffStep(before: number, after: number): number {
  const larger = Math.max(Math.abs(before), Math.abs(after));
  if (larger === 0) return diffSteps;
  // If the sign changes, the change exceeds both sides.
  const share = Math.max(-1, Math.min(1, (after - before) / larger));
  // The square root spreads small changes, which are the most common.
  const strength = Math.sqrt(Math.abs(share));
  const step = Math.abs(share) < 0.005 ? 0 : Math.max(1, Math.round(strength * diffSteps));
  return diffSteps + Math.sign(share) * step;
}
