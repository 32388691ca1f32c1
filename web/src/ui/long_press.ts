/*
 * long_press: a long touch requests a context menu. Safari on phones sends no "contextmenu" event,
 * so this module sends one; in other browsers the browser's event comes first.
 */
const stayMs = 650;
const slackPx = 10;

/** Listens until the returned function is called. */
export function listenForLongPresses(): () => void {
  const ended = new AbortController();
  let timer = 0;
  let pressed: PointerEvent;
  /** The current touch has opened a menu. */
  let isMenu = false;
  const stop = () => clearTimeout(timer);
  const on = <K extends keyof DocumentEventMap>(
    kind: K,
    listener: (event: DocumentEventMap[K]) => void,
  ) => document.addEventListener(kind, listener, { capture: true, signal: ended.signal });
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
  // The finger is lifted over the menu: this must not press anything or move the focus, as the
  // emulated mouse events would.
  on("mousedown", (event) => isMenu && event.preventDefault());
  on("click", (event) => {
    if (isMenu) event.stopPropagation();
    isMenu = false;
  });
  return () => ended.abort();
}
