/*
 * strong_palette: colours for readers who want contrast: text on every box has 7 to 1 against it, wherever the text
 * has it against the page, and what is too narrow for an edge is seen on the page.
 */
import {
  contrast,
  diffFill,
  diffSteps,
  dimmedFill,
  heatFill,
  heatShares,
  luminance,
  mix,
  oklch,
  rootFill,
  type Palette,
} from "./colour.ts";

/** What pages are painted with, each "#rrggbb". */
export interface Ground {
  background: string;
  text: string;
  /** Of what is pointed at or found. */
  highlight: string;
}

const wantedContrast = 7;
/** Of shapes that are no text, as WCAG 2 wants it. */
const shapeContrast = 3;
const shares = Array.from({ length: 41 }, (_, i) => 1 - i / 40);

/** As much of a colour over the background as leaves the text on it readable. */
function tint(colour: string, { background, text }: Ground): string {
  return (
    shares
      .map((share) => mix(colour, background, share))
      .find((mixed) => contrast(mixed, text) >= wantedContrast) ?? background
  );
}

/** As little text colour over a fill as lets it be seen on the background. */
function seen(fill: string, { background, text }: Ground): string {
  return (
    shares
      .map((share) => mix(fill, text, share))
      .find((mixed) => contrast(mixed, background) >= shapeContrast) ?? text
  );
}

/** overview: by the same index as fills, of what has no edge. */
export function strongPalette(plain: Palette, ground: Ground): Palette & { overview: string[] } {
  const { background, text, highlight } = ground;
  const isDark = luminance(background) < luminance(text);
  const fills = plain.fills.map((fill) => tint(fill, ground));
  const step = (hue: number, strength: number) =>
    mix(tint(oklch(isDark ? 0.6 : 0.66, 0.16, hue), ground), background, strength);
  for (let i = 0; i < heatShares.length; i++)
    fills[heatFill + i] = step(48, i / (heatShares.length - 1));
  for (let i = -diffSteps; i <= diffSteps; i++)
    fills[diffFill + i + diffSteps] = step(i < 0 ? 250 : 48, Math.abs(i) / diffSteps);
  fills[rootFill] = fills[dimmedFill] = background;
  const inks = fills.map(() => text);
  return {
    isDark,
    fills,
    inks,
    faded: fills.map(() => background),
    fadedInks: inks,
    background,
    outline: highlight,
    mark: highlight,
    hatch: text,
    veil: highlight + "40",
    overview: fills.map((fill) => seen(fill, ground)),
  };
}
