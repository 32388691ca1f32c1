/*
 * contrast: colours for systems that request more contrast or force their own colours on all pages
 * (forced colours). Boxes have edges, their text has a contrast of 7 to 1 if the system's own text
 * has it, and search matches have a thick edge: no information depends on colour alone.
 */
import type { Palette } from "../model/colours/colour.ts";
import { layoutRow } from "../model/tree/row_layout.ts";
import { strongPalette, type PageColours } from "../model/colours/strong_palette.ts";
import { fillOf, type Look, type Picture } from "../views/icicle/icicle_draw.ts";
import { rowHeight } from "../views/icicle/rows.ts";
import style from "./contrast.css?text";
import { addStyle } from "./later.tsx";

addStyle(style, true);

const plainPageColours: Record<"dark" | "light", PageColours> = {
  light: { background: "#ffffff", text: "#000000", highlight: "#0000c0" },
  dark: { background: "#000000", text: "#ffffff", highlight: "#ffd400" },
};

/**
 * The system's colours of pages. A canvas cannot use them by name, so they are read from an
 * element.
 */
function systemPageColours(): PageColours {
  const probe = document.createElement("i");
  document.body.append(probe);
  const colourOf = (name: string) => {
    probe.style.color = name;
    const channels = getComputedStyle(probe).color.match(/[\d.]+/g) ?? [];
    return (
      "#" +
      channels
        .slice(0, 3)
        .map((value) => Math.round(Number(value)).toString(16).padStart(2, "0"))
        .join("")
    );
  };
  const colours = {
    background: colourOf("Canvas"),
    text: colourOf("CanvasText"),
    highlight: colourOf("Highlight"),
  };
  probe.remove();
  return colours;
}

/**
 * Draws lines of px pixels inside a box along its four edges. In a narrow box those at the sides
 * have one pixel, so that a part of its fill remains visible.
 */
function strokeInside(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  px: number,
): void {
  const height = rowHeight - 1;
  const sidePx = width < 4 * px ? 1 : px;
  context.fillRect(x, y, width, px);
  context.fillRect(x, y + height - px, width, px);
  context.fillRect(x, y + px, sidePx, height - 2 * px);
  context.fillRect(x + width - sidePx, y + px, sidePx, height - 2 * px);
}

/** A box of at most this width, in pixels, has no room for edges at its sides. */
const leastWithInside = 5;
/** The width of the edges of search matches, in pixels. */
const wide = 3;

/**
 * Draws the edges of boxes that are wide enough; those of search matches are thick. Narrower boxes
 * are filled so that they are visible. During a search, narrow matches also have a thick line at
 * the top and the bottom, and other narrow boxes are only a line at the bottom. Takes twice the
 * time of a picture without edges.
 */
function edgesIn(colour: string, narrowFills: readonly string[]): Look["paintEdges"] {
  return (context: CanvasRenderingContext2D, picture: Picture) => {
    const { flame, marks, window, rows, scrollTop, widthPx } = picture;
    const [first, last] = rows.seen(scrollTop);
    for (let row = first; row <= last; row++) {
      const y = rows.topOf(row) - scrollTop;
      layoutRow(flame, row, window, widthPx, (begin, end, left, right) => {
        // Whole pixels: an edge that covers parts of two pixels has half the contrast.
        const from = Math.round(Math.max(-wide, left));
        const width = Math.max(1, Math.round(Math.min(widthPx + wide, right)) - from);
        const isFound = marks?.rows.any(begin, end) ?? false;
        const hasInside = begin === end && width > leastWithInside;
        context.fillStyle =
          hasInside || (marks && !isFound)
            ? colour
            : narrowFills[fillOf(picture, flame.rowNodes[begin])];
        if (hasInside) strokeInside(context, from, y, width - 1, isFound ? wide : 1);
        else if (!marks || isFound) context.fillRect(from, y, width, rowHeight - 1);
        else context.fillRect(from, y + rowHeight - 2, width, 1);
        if (hasInside || !isFound) return;
        context.fillStyle = colour;
        context.fillRect(from, y, width, wide);
        context.fillRect(from, y + rowHeight - 1 - wide, width, wide);
      });
    }
  };
}

export function strengthen(plain: Palette, isForced: boolean): Look {
  const colours = isForced
    ? systemPageColours()
    : plainPageColours[plain.isDark ? "dark" : "light"];
  const palette = strongPalette(plain, colours);
  return { ...palette, paintEdges: edgesIn(colours.text, palette.overview) };
}
