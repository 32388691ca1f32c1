/*
 * keep_focus: moves the focus when the focused element disappears: a row that was deleted, a panel
 * that was closed, a form that was sent. Browsers then focus the page's body, and a user of keys or
 * a screen reader starts at the top again.
 *
 * The focus moves to the element in the same place: the row that moved up, or the one above, or the
 * container. Code that knows a better place focuses it; this module acts only if nothing else did.
 * It is in the first load, because a press may precede any later chunk.
 */

const focusable = "a[href], button, input, select, textarea, summary, [tabindex]";

const canTake = (element: HTMLElement) =>
  element.tabIndex >= 0 && !element.matches(":disabled") && element.checkVisibility?.() !== false;

interface Step {
  parent: Element;
  /** The index of the ancestor's child that contained the focus. */
  index: number;
  /** The index among that child's focusable elements. */
  at: number;
}

const allIn = (root: Element): HTMLElement[] => [...root.querySelectorAll<HTMLElement>(focusable)];

let last: HTMLElement | null = null;
let path: Step[] = []; // from the element to the root of the page

function rememberPlace(element: HTMLElement): void {
  last = element;
  path = [];
  for (let child: Element = element; child.parentElement; child = child.parentElement)
    path.push({
      parent: child.parentElement,
      index: [...child.parentElement.children].indexOf(child),
      at: Math.max(0, allIn(child).indexOf(element)),
    });
}

/**
 * The element itself if it can take the focus. Otherwise the one at that index among those in it
 * that can, or the last one if there are fewer.
 */
function within(element: Element | undefined, at: number): HTMLElement | undefined {
  if (!element) return undefined;
  if (element.matches(focusable) && canTake(element as HTMLElement)) return element as HTMLElement;
  const found = allIn(element).filter(canTake);
  return found[Math.min(at, found.length - 1)];
}

function findPlace(): HTMLElement | undefined {
  for (const { parent, index, at } of path) {
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

/** Runs after other code had the chance to move the focus. */
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

addEventListener("focusin", (event) => rememberPlace(event.target as HTMLElement));
// A press on something that cannot be focused removes the focus on purpose.
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
