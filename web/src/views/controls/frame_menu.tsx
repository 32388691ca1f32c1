/* frame_menu: the actions for a frame in a menu at the pointer; most have a key too. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Action } from "../../model/rules/chain.ts";
import { copyText } from "../../ui/kit.tsx";
import { addStyle } from "../../ui/later.tsx";
import style from "./frame_menu.css?text";

addStyle(style);

export interface MenuPlace {
  name: string;
  x: number;
  y: number;
}

interface FrameMenuProps {
  place: MenuPlace;
  isMarked: boolean;
  addRule: (action: Action, name: string) => void;
  mark: (name: string) => void;
  onAround: (name: string) => void;
  /** The stack of the frame; "" if the menu belongs to a function. */
  stack: string;
  /** Absent if the reader may not comment. */
  onComment?: (name: string) => void;
  onClose: () => void;
}

interface FrameAction {
  label: string;
  /** The key for the same action, or "". */
  key: string;
  run: () => void;
}

const actionsOn = ({
  place: { name },
  isMarked,
  addRule,
  mark,
  onAround,
  stack,
  onComment,
}: FrameMenuProps): FrameAction[] => [
  { label: "Focus on stacks with this function", key: "f", run: () => addRule("focus", name) },
  { label: "Ignore stacks with this function", key: "i", run: () => addRule("ignore", name) },
  { label: "Hide this function", key: "h", run: () => addRule("hide", name) },
  { label: "Show only this function", key: "", run: () => addRule("show", name) },
  { label: "Fold callees", key: "m", run: () => addRule("merge", name) },
  { label: "Collapse recursion", key: "r", run: () => addRule("recursion", name) },
  { label: "Callers and callees", key: "3", run: () => onAround(name) },
  {
    label: isMarked ? "Unmark function" : "Mark function in all views",
    key: "l",
    run: () => mark(name),
  },
  { label: "Copy name", key: "c", run: () => void copyText(name, "Name") },
  ...(stack ? [{ label: "Copy stack", key: "C", run: () => void copyText(stack, "Stack") }] : []),
  ...(onComment
    ? [{ label: "Comment on this function", key: "", run: () => onComment(name) }]
    : []),
];

/** Opens at a position on the page. Arrows move, Escape closes, and the focus returns. */
export function FrameMenu(props: FrameMenuProps) {
  const { place, onClose } = props;
  const items = actionsOn(props);
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const menu = element.current!;
    const before = document.activeElement as HTMLElement | null;
    const x = Math.max(8, Math.min(place.x, innerWidth - menu.offsetWidth - 8));
    const y = Math.max(8, Math.min(place.y, innerHeight - menu.offsetHeight - 8));
    menu.style.transform = `translate(${x}px, ${y}px)`;
    menu.querySelector("button")?.focus({ preventScroll: true });
    return () => before?.focus({ preventScroll: true });
  }, [place]);
  useEffect(() => {
    const outside = (event: Event) => element.current?.contains(event.target as Node) || onClose();
    document.addEventListener("pointerdown", outside);
    addEventListener("scroll", onClose, true);
    addEventListener("resize", onClose);
    return () => {
      document.removeEventListener("pointerdown", outside);
      removeEventListener("scroll", onClose, true);
      removeEventListener("resize", onClose);
    };
  }, []);
  const key = (event: KeyboardEvent) => {
    const buttons = [...element.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const move: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: buttons.length - 1,
    };
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") onClose();
    else if (event.key in move)
      buttons[(move[event.key] + buttons.length) % buttons.length].focus();
    else {
      const item = items.find((one) => one.key === event.key);
      if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
      onClose();
      item.run();
    }
    event.preventDefault();
  };
  return (
    <div
      class="frame-menu"
      role="menu"
      aria-label={place.name}
      ref={element}
      onKeyDown={key}
      onContextMenu={(event) => event.preventDefault()}
    >
      <p class="frame-menu-title" aria-hidden="true">
        {place.name}
      </p>
      {items.map((item) => (
        <button
          type="button"
          role="menuitem"
          tabIndex={-1}
          key={item.label}
          onClick={() => {
            onClose();
            item.run();
          }}
        >
          <span>{item.label}</span>
          {item.key && <kbd aria-hidden="true">{item.key}</kbd>}
        </button>
      ))}
    </div>
  );
}
