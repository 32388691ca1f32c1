/*
 * query_bar: the matchers of a query, with completions of names, operators and values, as a combobox: arrows choose, Enter
 * takes what is chosen and else asks, Escape closes. Where the server says what is wrong, the place is shown.
 */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { listLabelNames, listLabelValues } from "../explore_api.ts";
import type { Span } from "../model/moment.ts";
import { afterName, complete, joinQuery, operators, othersOf, placeOfError, readMatchers, splitQuery, type Place } from "../model/selector.ts";
import { Icon } from "../ui/icons.tsx";

const operatorNames: Record<string, string> = { "=": "is", "!=": "is not", "=~": "matches", "!~": "does not match" };
const maxShown = 100;
const maxKnown = 50;

interface Choice {
  text: string;
  place: Place;
}

/** What the server knows, by what was asked. */
function useAnswers() {
  const known = useRef(new Map<string, Promise<string[]>>());
  return (key: string, ask: () => Promise<string[]>) => {
    if (known.current.size > maxKnown) known.current.clear();
    const found = known.current.get(key) ?? ask();
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
  const answers = useAnswers();
  const asked = useRef(0);
  const close = () => {
    asked.current++;
    setChoices([]);
  };
  const open = async (text: string, cursor: number) => {
    const turn = ++asked.current;
    const { matchers, place } = readMatchers(text, cursor);
    const match = othersOf(type, matchers, place);
    const key = `${place.expects}\n${place.label}\n${match}\n${span.from}\n${span.to}`;
    let all: string[] = [];
    if (place.expects === "operator") all = [...operators];
    else if (place.expects !== "comma")
      all = await answers(key, () => (place.expects === "name" ? listLabelNames(match, span) : listLabelValues(place.label, match, span))).catch(() => []);
    if (turn !== asked.current) return;
    const next = all.includes(place.typed) ? afterName(text, place) : null;
    const found = matching(all, place.expects === "operator" ? "" : place.typed).filter((one) => !next || one !== place.typed);
    setChoices([...(next ? operators.map((text) => ({ text, place: next })) : []), ...found.map((text) => ({ text, place }))]);
  };
  return { choices, open, close };
}

/** The query with the wrong place marked. */
function WrongPlace({ query, at }: { query: string; at: number }) {
  return (
    <code class="wrong-place">
      {query.slice(0, at)}
      <mark>{query.slice(at, at + 1) || " "}</mark>
      {query.slice(at + 1)}
    </code>
  );
}

interface QueryBarProps {
  query: string;
  /** What the server said of the query, or "". */
  error: string;
  /** When the labels that are offered were seen. */
  span: Span;
  label: string;
  onQuery: (query: string) => void;
}

export function QueryBar({ query, error, span, label, onQuery }: QueryBarProps) {
  const { type, matchers } = splitQuery(query);
  const [text, setText] = useState(matchers);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);
  const { choices, open, close } = useChoices(type, span);
  const id = useId();
  useEffect(() => setText(matchers), [query]);
  const wrong = error ? placeOfError(query, error) : null;
  const offered = choices.length > 0;

  const look = () => {
    setActive(-1);
    void open(input.current!.value, input.current!.selectionStart ?? 0);
  };
  const run = () => {
    close();
    const typed = input.current!.value;
    // A whole query may be pasted, type and all.
    onQuery(typed.includes("{") && typed.trimEnd().endsWith("}") ? typed.trim() : joinQuery(type, typed));
  };
  const choose = (choice: Choice) => {
    const done = complete(text, choice.place, choice.text);
    setText(done.text);
    close();
    requestAnimationFrame(() => {
      input.current?.focus();
      input.current?.setSelectionRange(done.cursor, done.cursor);
      look();
    });
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      if (!offered) look();
      else setActive((active + step + choices.length + (active < 0 && step < 0 ? 1 : 0)) % choices.length);
    } else if (event.key === "Enter") {
      if (offered && active >= 0) choose(choices[active]);
      else run();
    } else if (event.key === "Tab" && offered && active >= 0) choose(choices[active]);
    else if (event.key === "Escape" && offered) close();
    else return;
    event.preventDefault();
  };
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
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            look();
          }}
          onClick={look}
          onKeyDown={press}
          onBlur={close}
        />
        <span aria-hidden="true">{"}"}</span>
        <button type="button" class="icon-button" aria-label="Ask" title="Ask (Enter)" onClick={run}>
          <Icon name="search" />
        </button>
      </div>
      <ul class="offers" id={`${id}-list`} role="listbox" aria-label="Completions" hidden={!offered}>
        {choices.map((choice, i) => (
          <li
            key={choice.place.expects + choice.text}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === active}
            onPointerDown={(event) => {
              event.preventDefault(); // the field keeps the focus
              choose(choice);
            }}
          >
            <bdi>{choice.text || "(empty)"}</bdi>
            {choice.place.expects === "operator" && <em>{operatorNames[choice.text]}</em>}
          </li>
        ))}
      </ul>
      {error && (
        <p class="error-line" id={`${id}-error`} role="alert">
          <Icon name="alert" />
          <span>
            {error.replace(/^query: /, "")}
            {wrong !== null && <WrongPlace query={query} at={wrong} />}
          </span>
        </p>
      )}
    </div>
  );
}
