/* fitter: the longest form of a name that fits a width; names and forms are measured once. */
import { FrameFlag } from "../model/flame.ts";
import { shorterNames } from "../model/names.ts";
import { shownName, visible } from "../model/visible_text_model.ts";

/** Texts whose width is remembered; a large profile has more names than anybody looks at. */
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
  /** Whether a name was fitted before, so that fitting it again costs little. */
  knows(name: string): boolean {
    return this.forms.has(name);
  }
  /** The longest form of the name that fits, else its beginning with an ellipsis; "" if hopeless. Values of labels are no names to be shortened. */
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
