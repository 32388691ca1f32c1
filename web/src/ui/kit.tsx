/* kit: the controls that all pages share. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/api.ts";
import { formatValue } from "../model/text/units.ts";
import { shownName, visible } from "../model/text/visible_text_model.ts";
import { Icon, type IconName } from "./icons.tsx";

/* ---- messages ---- */

const messages = new EventTarget();

/** Shows a short message at the foot of the page; a screen reader reads it. */
export function showMessage(text: string): void {
  messages.dispatchEvent(new CustomEvent("message", { detail: text }));
}

const storedMessageKey = "perfolio:message";
/** The page is being left, so a stored message is not for this page. */
let isLeft = false;
/** Shows a message on the next page in this tab. */
export function showMessageOnNextPage(text: string): void {
  isLeft = true;
  try {
    sessionStorage.setItem(storedMessageKey, text);
  } catch {
    // Without storage, the message is lost.
  }
}

function takeStoredMessage(): string | null {
  if (isLeft) return null;
  try {
    const text = sessionStorage.getItem(storedMessageKey);
    sessionStorage.removeItem(storedMessageKey);
    return text;
  } catch {
    return null;
  }
}

export function Messages() {
  const [text, setText] = useState("");
  useEffect(() => {
    let timer = 0;
    const show = (event: Event) => {
      const { detail } = event as CustomEvent<string>;
      setText(detail);
      clearTimeout(timer);
      timer = window.setTimeout(() => setText(""), 2200 + 40 * detail.length);
    };
    messages.addEventListener("message", show);
    // A browser blocks while it opens the storage, so this waits until the page has started.
    const opening = window.setTimeout(() => {
      const text = takeStoredMessage();
      if (text) show(new CustomEvent("", { detail: text }));
    }, 300);
    return () => {
      clearTimeout(opening);
      messages.removeEventListener("message", show);
    };
  }, []);
  return (
    <div class={`message ${text ? "shown" : ""}`} role="status" aria-live="polite">
      {text}
    </div>
  );
}

/**
 * Copies the text and shows a message that names it by `what`, such as "Link". If the browser does
 * not allow copying, the message contains the text.
 */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showMessage(`${what} copied`);
  } catch {
    showMessage(`The browser did not allow copying. ${what}: ${text}`);
  }
}

/**
 * A name from an agent or a file: all its characters are visible, and it does not change the
 * direction of the text around it.
 */
export const Name = ({ text }: { text: string }) => <bdi>{shownName(text)}</bdi>;

/* ---- buttons ---- */

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon"> & {
  icon?: IconName;
  look?: "plain" | "primary" | "danger" | "quiet";
};

export function Button({ icon, look = "plain", children, class: extra, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button ${look} ${extra ?? ""}`}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function IconButton({
  icon,
  label,
  ...rest
}: Omit<ButtonProps, "label"> & { icon: IconName; label: string }) {
  return (
    <button
      type="button"
      {...rest}
      class={`icon-button ${rest.class ?? ""}`}
      aria-label={label}
      title={label}
    >
      <Icon name={icon} />
    </button>
  );
}

/**
 * A text to copy as a whole: a command, a link, a token. Lines break between words, and within a
 * word that is longer than a line after a slash.
 */
export function CopyField({
  text,
  what,
  isSecret = false,
}: {
  text: string;
  what: string;
  isSecret?: boolean;
}) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text, what);
    setCopied(true);
    setTimeout(() => setCopied(false), 1600);
  };
  return (
    <div class={`copy-field ${isSecret ? "secret" : ""}`}>
      <code tabIndex={0} aria-label={what}>
        {text.split(/(?<= )/).map((word) => (
          <span>
            {word.split(/(?<=[^/]\/)/).flatMap((part, i) => (i ? [<wbr />, part] : part))}
          </span>
        ))}
      </code>
      <IconButton
        icon={isCopied ? "check" : "copy"}
        label={`Copy ${what.toLowerCase()}`}
        onClick={copy}
      />
    </div>
  );
}

/* ---- fields ---- */

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  children: (id: string) => ComponentChildren;
}

export function Field({ label, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
    </div>
  );
}

export interface Choice {
  value: string;
  label: string;
}

export function Select({
  id,
  value,
  choices,
  onChange,
  label,
}: {
  id?: string;
  value: string;
  choices: Choice[];
  onChange: (value: string) => void;
  label?: string;
}) {
  return (
    <span class="select">
      <select
        id={id}
        value={value}
        aria-label={label}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} selected={choice.value === value}>
            {choice.label}
          </option>
        ))}
      </select>
      <Icon name="down" />
    </span>
  );
}

/** A row of buttons of which one is pressed. */
export function Segments<T extends string>(props: {
  label: string;
  value: T;
  choices: { value: T; label: string; icon?: IconName; count?: number }[];
  onChange: (value: T) => void;
  /** Only the pressed button shows its text. */
  isCompact?: boolean;
}) {
  return (
    <div
      class={`segments ${props.isCompact ? "compact" : ""}`}
      role="group"
      aria-label={props.label}
    >
      {props.choices.map((choice) => (
        <button
          type="button"
          key={choice.value}
          aria-pressed={choice.value === props.value}
          onClick={() => props.onChange(choice.value)}
          title={choice.label}
        >
          {choice.icon && <Icon name={choice.icon} />}
          <span>{choice.label}</span>
          {choice.count ? <b class="count">{choice.count}</b> : null}
        </button>
      ))}
    </div>
  );
}

/** Whether keys pressed in the target are text instead of commands. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/* ---- disclosure: folds, menus, dialogs ---- */

/** A list in one line on small screens, until the reader unfolds it. */
export function Fold({ label, children }: { label: string; children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class={`fold ${isOpen ? "open" : ""}`}>
      {children}
      <IconButton
        icon="down"
        class="unfold"
        label={label}
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      />
    </div>
  );
}

interface MenuProps {
  label: string;
  icon?: IconName;
  class?: string;
  /** The content is created when it is first opened. */
  isLazy?: boolean;
  children: ComponentChildren;
}

/** The minimum distance of panels from the edges of the window. */
const panelEdgePx = 12;

/**
 * Shifts a panel sideways if it would leave the window, and sets --top to its top, by which the
 * style sheet limits its height.
 */
function keepInWindow(panel: HTMLElement): void {
  const { style } = panel;
  style.translate = "";
  const { left, right, top } = panel.getBoundingClientRect();
  const fromLeft = Math.max(0, panelEdgePx - left);
  style.translate = `${fromLeft + Math.min(0, innerWidth - panelEdgePx - right)}px`;
  style.setProperty("--top", `${top}px`);
}

export function Menu({ label, icon, class: extra = "", isLazy = false, children }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => void (isOpen && keepInWindow(panel.current!)), [isOpen]);
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      setOpen(false);
      root.current?.querySelector("button")?.focus();
    };
    document.addEventListener("pointerdown", outside);
    document.addEventListener("keydown", escape, true);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("keydown", escape, true);
    };
  }, [isOpen]);
  return (
    <div class={`menu ${extra}`} ref={root}>
      <button
        type="button"
        class="button plain"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {icon && <Icon name={icon} />}
        <span>{label}</span>
        <Icon name="down" />
      </button>
      <div class="menu-panel" id={id} hidden={!isOpen} ref={panel}>
        {(isOpen || !isLazy) && children}
      </div>
    </div>
  );
}

export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
}: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  isWide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement as HTMLElement | null;
    element.current?.showModal();
    // the browser restores the focus only if the dialog is closed before it is removed
    return () => opener?.focus();
  }, []);
  return (
    <dialog
      class={isWide ? "wide" : ""}
      ref={element}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) element.current?.close();
      }}
    >
      <div class="dialog-body">
        <header>
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" label="Close" onClick={() => element.current?.close()} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/* ---- states of a page ---- */

/** The error itself if it is a Problem; otherwise a Problem that explains it. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new Problem(0, "error", "This page could not be displayed", text, "", null);
}

export function ErrorLine({ error }: { error: Problem | null }) {
  return (
    <p class="error-line" role="alert">
      {error && (
        <>
          <Icon name="alert" />
          <span>
            {error.message}
            {error.retryAfter ? ` Try again in ${formatValue(error.retryAfter, "s")}.` : ""}
          </span>
        </>
      )}
    </p>
  );
}

/** Invisible for 200 ms (states.css), so that fast responses do not flicker. */
export function Loading({ label = "Loading" }: { label?: string }) {
  return (
    <div class="loading" role="status">
      <span class="unseen">{label}</span>
      <span class="loading-rows" aria-hidden="true">
        <i />
        <i />
        <i />
        <i />
        <i />
      </span>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <svg width="96" height="56" viewBox="0 0 96 56" aria-hidden="true">
        <rect x="0" y="0" width="96" height="12" rx="3" />
        <rect x="0" y="15" width="58" height="12" rx="3" />
        <rect x="61" y="15" width="22" height="12" rx="3" />
        <rect x="0" y="30" width="24" height="12" rx="3" />
        <rect x="27" y="30" width="18" height="12" rx="3" />
      </svg>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** By kind: a heading, and a sentence that explains what happened and what to do. */
const problemTexts: Record<string, [string, string]> = {
  gone: [
    "This profile is gone",
    "It was deleted or has expired and cannot be restored. Ask its owner for the file.",
  ],
  not_found: [
    "Not found",
    "Check that the link is complete, and sign in if the profile belongs to your team.",
  ],
  damaged: [
    "This profile is damaged",
    "Its stored data failed a check. The server’s operator can restore it from a backup.",
  ],
  lost: [
    "The data of this profile is lost",
    "It is missing from storage although it was not deleted. The server’s operator can restore " +
      "it from a backup.",
  ],
  forbidden: ["Not allowed", "Your role does not allow this. Ask an owner of your team."],
  rate_limited: ["Too many requests", "Wait a moment, then try again."],
  offline: ["The server cannot be reached", "Check the connection and try again."],
  updated: [
    "Perfolio was probably updated",
    "This page is from another version of the server. Reload it to continue.",
  ],
  busy: ["The server is overloaded", "Try again in a moment."],
};

/**
 * Whether the same request may succeed later: the network, the server or a limit failed, not the
 * request itself.
 */
const mayPass = ({ kind, status }: Problem) =>
  kind !== "damaged" && kind !== "lost" && (!status || status === 429 || status >= 500);

interface ProblemViewProps {
  problem: Problem;
  /** Offered only if a retry may help. */
  onRetry?: () => void;
  /** Replaces the problem's own heading by a more specific one. */
  heading?: string;
  /** Further actions. */
  actions?: ComponentChildren;
}

export function ProblemView({ problem, onRetry, heading, actions }: ProblemViewProps) {
  const kind =
    problem.status === 410 ? "gone" : problem.status === 404 ? "not_found" : problem.kind;
  const [title, text] = problemTexts[kind] ?? [problem.title, problem.detail];
  const detail = problem.detail !== text && problem.detail;
  return (
    <section class="problem" aria-labelledby="problem-title">
      <p class="problem-status">{problem.status || kind}</p>
      <h1 id="problem-title">{heading ?? title}</h1>
      <p>{text}</p>
      <p class="problem-ways">
        {kind === "updated" ? (
          <Button look="primary" onClick={() => location.reload()}>
            Reload the page
          </Button>
        ) : (
          onRetry &&
          mayPass(problem) && (
            <Button look="primary" onClick={onRetry}>
              Try again
            </Button>
          )
        )}
        {actions}
        <a class="button plain" href="/">
          <span>Share a profile</span>
        </a>
      </p>
      {(detail || problem.requestId) && (
        <details class="hint">
          <summary>Details</summary>
          {detail && <p>{detail}</p>}
          {problem.requestId && <p>Request {problem.requestId}</p>}
        </details>
      )}
    </section>
  );
}

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${visible(title)} · Perfolio` : "Perfolio";
  }, [title]);
}
