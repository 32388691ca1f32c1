/* fitter: the longest form of a name that fits a width, measured once per name. */
import { shorterNames } from "../model/names.ts";

export class LabelFitter {
  private readonly widths = new Map<string, number>();
  constructor(private readonly context: CanvasRenderingContext2D) {}

  private measure(text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) this.widths.set(text, (width = this.context.measureText(text).width));
    return width;
  }
  /** The longest form of the name that fits, else its beginning with an ellipsis; "" if hopeless. */
  fit(name: string, available: number): string {
    if (this.measure(name) <= available) return name;
    const forms = shorterNames(name);
    for (const form of forms) if (this.measure(form) <= available) return form;
    const shortest = forms[forms.length - 1];
    const perLetter = this.measure(shortest) / shortest.length;
    let letters = Math.min(shortest.length - 1, Math.floor(available / perLetter) - 1);
    while (letters > 0) {
      const text = shortest.slice(0, letters) + "…";
      if (this.context.measureText(text).width <= available) return letters > 1 ? text : "";
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
