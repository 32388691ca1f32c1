/*
 * keep_focus: where the focus goes when what had it goes away: a row that was deleted, a panel that was closed, a form that
 * was sent. Browsers leave it to the page's body then, and whoever uses keys or a screen reader begins at the top again.
 *
 * It goes to what stands in that place now: the row that moved up, else the one above, else what is around. Whoever knows a
 * better place takes the focus there: this only acts where nobody did. It is in the first load, since a press may come
 * before any chunk does.
 */

const focusable = "a[href], button, input, select, textarea, summary, [tabindex]";

const canTake = (element: HTMLElement) =>
  element.tabIndex >= 0 && !element.matches(":disabled") && element.checkVisibility?.() !== false;

interface Step {
  parent: Element;
  /** Of the ancestor's child that held the focus. */
  index: number;
  /** Which of that child's focusable elements it was. */
  at: number;
}

const allIn = (root: Element): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(focusable)];

let last: HTMLElement | null = null;
let way: Step[] = []; // from the element to the page's root

function remember(element: HTMLElement): void {
  last = element;
  way = [];
  for (let child: Element = element; child.parentElement; child = child.parentElement)
    way.push({
      parent: child.parentElement,
      index: [...child.parentElement.children].indexOf(child),
      at: Math.max(0, allIn(child).indexOf(element)),
    });
}

/** Of one element: the focusable thing at that place in it, or the nearest before. */
function within(element: Element | undefined, at: number): HTMLElement | undefined {
  if (!element) return undefined;
  if (element.matches(focusable) && canTake(element as HTMLElement)) return element as HTMLElement;
  const found = allIn(element).filter(canTake);
  return found[Math.min(at, found.length - 1)];
}

function findPlace(): HTMLElement | undefined {
  for (const { parent, index, at } of way) {
    if (!parent.isConnected || parent === document.body) continue;
    const found =
      within(parent.children[index], at) ??
      within(parent.children[index - 1], at) ??
      within(parent, 0);
    if (found) return found;
  }
  return document.getElementById("main") ?? undefined;
}

let isWaiting = false;

/** Once those who know better had their turn. */
function look(): void {
  isWaiting = false;
  if (!last || (document.activeElement && document.activeElement !== document.body)) return;
  if (last.isConnected && canTake(last)) return;
  const place = findPlace();
  last = null;
  place?.focus({ preventScroll: true });
}

function soon(): void {
  if (isWaiting || !last) return;
  isWaiting = true;
  setTimeout(() => requestAnimationFrame(() => setTimeout(look)));
}

addEventListener("focusin", (event) => remember(event.target as HTMLElement));
// Left by a press on what takes no focus, it was not lost.
addEventListener("pointerdown", () =>
  setTimeout(() => {
    if (last?.isConnected && canTake(last) && document.activeElement === document.body) last = null;
  }),
);
new MutationObserver(soon).observe(document.body, {
  subtree: true,
  childList: true,
  attributes: true,
  attributeFilter: ["hidden", "disabled", "open"],
});

export {};
