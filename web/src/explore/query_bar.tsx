/*
 * query_bar: the matchers of a query as a combobox with completions of names, operators and values.
 * Arrows choose a completion; while the text at the cursor is not yet a matcher, the first
 * completion is preselected. Enter and Tab accept the chosen completion. Without one, Enter runs
 * the query and Tab leaves the field. Escape closes the list, so that Enter runs the query as
 * typed. The field marks the position of an error that the server reports.
 */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { listLabelNames, listLabelValues } from "../api/explore_api.ts";
import type { Span } from "../model/continuous/time_window.ts";
import {
  afterName,
  complete,
  errorInField,
  isUnfinished,
  joinQuery,
  operators,
  othersOf,
  readMatchers,
  splitQuery,
  type Place,
} from "../model/continuous/selector.ts";
import { Icon } from "../ui/icons.tsx";
import { Name } from "../ui/kit.tsx";

const operatorNames: Record<string, string> = {
  "=": "is",
  "!=": "is not",
  "=~": "matches",
  "!~": "does not match",
};
const maxShown = 100;
const maxKnown = 50;

interface Choice {
  text: string;
  place: Place;
}

/** Caches completions by request. */
function useCompletionCache() {
  const known = useRef(new Map<string, Promise<string[]>>());
  return (key: string, load: () => Promise<string[]>) => {
    if (known.current.size > maxKnown) known.current.clear();
    const found = known.current.get(key) ?? load();
    known.current.set(key, found);
    found.catch(() => known.current.delete(key));
    return found;
  };
}

const matching = (choices: readonly string[], typed: string) => {
  const wanted = typed.toLowerCase();
  const found = choices.filter((choice) => choice.toLowerCase().includes(wanted));
  const begins = (choice: string) => (choice.toLowerCase().startsWith(wanted) ? 0 : 1);
  return found.sort((a, b) => begins(a) - begins(b)).slice(0, maxShown);
};

function useChoices(type: string, span: Span) {
  const [choices, setChoices] = useState<Choice[]>([]);
  const responses = useCompletionCache();
  const lastCall = useRef(0);
  const close = () => {
    lastCall.current++;
    setChoices([]);
  };
  /** The completions at the cursor, or null once a later call or close() has replaced them. */
  const open = async (text: string, cursor: number): Promise<Choice[] | null> => {
    const call = ++lastCall.current;
    const { matchers, place } = readMatchers(text, cursor);
    const match = othersOf(type, matchers, place);
    const key = `${place.expects}\n${place.label}\n${match}\n${span.from}\n${span.to}`;
    let all: string[] = [];
    if (place.expects === "operator") all = [...operators];
    else if (place.expects !== "comma")
      all = await responses(key, () =>
        place.expects === "name"
          ? listLabelNames(match, span)
          : listLabelValues(place.label, match, span),
      ).catch(() => []);
    if (call !== lastCall.current) return null;
    const next = all.includes(place.typed) ? afterName(text, place) : null;
    const found = matching(all, place.expects === "operator" ? "" : place.typed).filter(
      (one) => !next || one !== place.typed,
    );
    const offered = [
      ...(next ? operators.map((text) => ({ text, place: next })) : []),
      ...found.map((text) => ({ text, place })),
    ];
    setChoices(offered);
    return offered;
  };
  return { choices, open, close };
}

/** The text with the position of the error marked. */
function WrongPlace({ text, at }: { text: string; at: number }) {
  return (
    <code class="wrong-place">
      {text.slice(0, at)}
      <mark>{text.slice(at, at + 1) || " "}</mark>
      {text.slice(at + 1)}
    </code>
  );
}

interface QueryBarProps {
  query: string;
  /** The server's error for the query, or "". */
  error: string;
  /** The time range in which the offered labels occur. */
  span: Span;
  label: string;
  onQuery: (query: string) => void;
}

/** The text of the field, its completions, and the keys that choose and accept them. */
function useCombobox(query: string, span: Span, onQuery: (query: string) => void) {
  const { type, matchers } = splitQuery(query);
  const [text, setText] = useState(matchers);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const { choices, open, close } = useChoices(type, span);
  useEffect(() => setText(matchers), [query]);
  /** The completions that were requested last; null after Escape. */
  const opened = useRef<Promise<Choice[] | null> | null>(null);
  const offered = choices.length > 0;

  const isOpenEnded = () => {
    const { value, selectionStart } = input.current!;
    return isUnfinished(value, readMatchers(value, selectionStart ?? 0).place);
  };
  const look = () => {
    setActive(-1);
    opened.current = open(input.current!.value, input.current!.selectionStart ?? 0);
    void opened.current.then((found) => {
      if (found?.length && isOpenEnded()) setActive(0);
    });
  };
  const run = () => {
    opened.current = null;
    close();
    const typed = input.current!.value;
    // A complete query with a profile type may be pasted.
    onQuery(
      typed.includes("{") && typed.trimEnd().endsWith("}") ? typed.trim() : joinQuery(type, typed),
    );
  };
  const choose = (choice: Choice) => {
    const field = input.current!;
    const done = complete(field.value, choice.place, choice.text);
    // at once, because the next key may arrive before the next render
    setText((field.value = done.text));
    field.focus();
    field.setSelectionRange(done.cursor, done.cursor);
    close();
    look();
  };
  /** Completions may still be loading; an incomplete query waits for them. */
  const enter = async () => {
    const typed = input.current!.value;
    const found = isOpenEnded() ? await opened.current : null;
    if (input.current?.value !== typed) return;
    if (found?.length) choose(found[0]);
    else run();
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (!offered) look();
      else
        setActive(
          (active + step + choices.length + (active < 0 && step < 0 ? 1 : 0)) % choices.length,
        );
    } else if (
      (event.key === "Enter" || (event.key === "Tab" && !event.shiftKey)) &&
      offered &&
      active >= 0
    )
      choose(choices[active]);
    else if (event.key === "Enter") void enter();
    else if (event.key === "Escape") {
      opened.current = null;
      close();
      if (!offered) return;
    } else return;
    event.preventDefault();
  };
  const write = (value: string) => {
    setText(value);
    look();
  };
  return { text, active, input, choices, look, run, choose, press, write, close };
}

export function QueryBar({ query, error, span, label, onQuery }: QueryBarProps) {
  const { text, active, input, choices, look, run, choose, press, write, close } = useCombobox(
    query,
    span,
    onQuery,
  );
  const id = useId();
  const wrong = error ? errorInField(query, error) : null;
  const offered = choices.length > 0;
  useEffect(() => {
    document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);

  return (
    <div class="query-bar">
      <div class={`query-field ${error ? "wrong" : ""}`}>
        <span aria-hidden="true">{"{"}</span>
        <input
          ref={input}
          role="combobox"
          aria-label={label}
          aria-expanded={offered}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={offered && active >= 0 ? `${id}-${active}` : undefined}
          aria-invalid={error ? true : undefined}
          aria-describedby={error ? `${id}-error` : undefined}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          placeholder='service_name="api"'
          title='Series labels, or sample labels such as thread_name="main"'
          value={text}
          onInput={(event) => write(event.currentTarget.value)}
          onClick={look}
          onKeyDown={press}
          onBlur={close}
        />
        <span aria-hidden="true">{"}"}</span>
        <button
          type="button"
          class="icon-button"
          aria-label="Run query"
          title="Run query (Enter)"
          onClick={run}
        >
          <Icon name="search" />
        </button>
      </div>
      <ul
        class="offers"
        id={`${id}-list`}
        role="listbox"
        aria-label="Completions"
        hidden={!offered}
      >
        {choices.map((choice, i) => (
          <li
            key={choice.place.expects + choice.text}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            onPointerDown={(event) => {
              event.preventDefault(); // keeps the focus in the field
              choose(choice);
            }}
          >
            <Name text={choice.text || "(empty)"} />
            {choice.place.expects === "operator" && <em>{operatorNames[choice.text]}</em>}
          </li>
        ))}
      </ul>
      {wrong && (
        <p class="error-line" id={`${id}-error`} role="alert">
          <Icon name="alert" />
          <span>
            {wrong.sentence}
            {wrong.at !== null && <WrongPlace text={wrong.text} at={wrong.at} />}
          </span>
        </p>
      )}
    </div>
  );
}
