/*
 * long_press: a finger that stays where it is asks for the menu. Safari on phones does not say so ("contextmenu"), so it is
 * said here; where the browser says it, that comes first.
 */
const stayMs = 650;
const slackPx = 10;

/** Listens until what is returned is called. */
export function hearLongPresses(): () => void {
  const ended = new AbortController();
  let timer = 0;
  let pressed: PointerEvent;
  /** The press that is under way made one. */
  let isMenu = false;
  const stop = () => clearTimeout(timer);
  const on = <K extends keyof DocumentEventMap>(
    kind: K,
    hear: (event: DocumentEventMap[K]) => void,
  ) => document.addEventListener(kind, hear, { capture: true, signal: ended.signal });
  on("pointerdown", (event) => {
    stop();
    pressed = event;
    isMenu = false;
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    timer = window.setTimeout(() => {
      const { clientX, clientY } = event;
      isMenu = !event.target!.dispatchEvent(
        new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX, clientY }),
      );
    }, stayMs);
  });
  on(
    "pointermove",
    ({ clientX, clientY }) =>
      pressed &&
      Math.hypot(clientX - pressed.clientX, clientY - pressed.clientY) > slackPx &&
      stop(),
  );
  for (const kind of ["pointerup", "pointercancel", "contextmenu"] as const) on(kind, stop);
  // The finger goes up where a menu is now: that presses nothing, and takes the focus nowhere, as a browser's mouse that follows would.
  on("mousedown", (event) => isMenu && event.preventDefault());
  on("click", (event) => {
    if (isMenu) event.stopPropagation();
    isMenu = false;
  });
  return () => ended.abort();
}
