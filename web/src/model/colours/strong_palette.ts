/*
 * strong_palette: colours for high contrast: text on every box has a contrast of 7 to 1 if the
 * page's text has it, and boxes too narrow for an edge are visible on the page.
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

/** The colours of the page, each "#rrggbb". */
export interface PageColours {
  background: string;
  text: string;
  /** For hovered boxes and search matches. */
  highlight: string;
}

const wantedContrast = 7;
/** The minimum contrast of shapes other than text in WCAG 2. */
const shapeContrast = 3;
const shares = Array.from({ length: 41 }, (_, i) => 1 - i / 40);

/** The colour mixed with as little of the background as makes text on it readable. */
function tint(colour: string, { background, text }: PageColours): string {
  return (
    shares
      .map((share) => mix(colour, background, share))
      .find((mixed) => contrast(mixed, text) >= wantedContrast) ?? background
  );
}

/** The fill mixed with as little of the text colour as makes it visible on the background. */
function seen(fill: string, { background, text }: PageColours): string {
  return (
    shares
      .map((share) => mix(fill, text, share))
      .find((mixed) => contrast(mixed, background) >= shapeContrast) ?? text
  );
}

/** overview: for boxes without an edge, with the same indexes as fills. */
export function strongPalette(
  plain: Palette,
  colours: PageColours,
): Palette & { overview: string[] } {
  const { background, text, highlight } = colours;
  const isDark = luminance(background) < luminance(text);
  const fills = plain.fills.map((fill) => tint(fill, colours));
  const step = (hue: number, strength: number) =>
    mix(tint(oklch(isDark ? 0.6 : 0.66, 0.16, hue), colours), background, strength);
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
    overview: fills.map((fill) => seen(fill, colours)),
  };
}
