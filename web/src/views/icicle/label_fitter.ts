/*
 * label_fitter: the longest form of a name that fits a width; each name and form is measured once.
 */
import { FrameFlag } from "../../model/tree/flame.ts";
import { shorterNames } from "../../model/text/names.ts";
import { shownName, visible } from "../../model/text/visible_text_model.ts";

/** The number of texts whose width is cached; a large profile has more names than anyone reads. */
const maxRemembered = 60_000;

export class LabelFitter {
  private readonly widths = new Map<string, number>();
  private readonly forms = new Map<string, string[]>();
  constructor(private readonly context: CanvasRenderingContext2D) {}

  private measure(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size >= maxRemembered) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }
  /** Whether a name was fitted before, so that fitting it again is cheap. */
  knows(name: string): boolean {
    return this.forms.has(name);
  }
  /**
   * The longest form of the name that fits, or its start with an ellipsis; "" if neither fits.
   * Label values are never shortened by the rules for names.
   */
  fit(name: string, available: number, flags = 0): string {
    let forms = this.forms.get(name);
    if (!forms) {
      if (this.forms.size >= maxRemembered) this.forms.clear();
      this.forms.set(name, (forms = shorterNames(visible(shownName(name)))));
    }
    if (flags & FrameFlag.Label) forms = forms.slice(0, 1);
    for (const form of forms) if (this.measure(form) <= available) return form;
    const shortest = forms[forms.length - 1];
    const perLetter = this.measure(shortest) / shortest.length;
    let letters = Math.min(shortest.length - 1, Math.floor(available / perLetter) - 1);
    while (letters > 0) {
      const text = shortest.slice(0, letters) + "…";
      if (this.measure(text) <= available) return letters > 1 ? text : "";
      letters--;
    }
    return "";
  }
}

/** A fitter for text in an element's own font. */
export function fitterFor(element: Element): LabelFitter | null {
  const context = document.createElement("canvas").getContext("2d");
  if (!context) return null;
  const style = getComputedStyle(element);
  context.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  return new LabelFitter(context);
}
