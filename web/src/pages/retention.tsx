/* retention: parts of the settings: for how long which continuous profiles are kept, and which labels of samples make series. */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { getTenant, type Problem, type Tenant } from "../api.ts";
import { keepText, keepWords, ruleWords } from "../model/keep.ts";
import { placeOfError } from "../model/selector.ts";
import { listRules, removeRule, setRule, setSampleLabels, type Rule, type Rules, type RuleWish } from "../retention_api.ts";
import { asProblem, Button, ErrorLine, Field, IconButton, Loading, say, Select } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { SureButton } from "../ui/sure_button.tsx";

/** What the server says of one field begins with its name. */
const isAbout = (error: Problem | null, field: string) => error?.message.startsWith(field) || undefined;

/** The server's sentence and, where it names a character, the selector with that marked. */
function FormError({ id, error, query }: { id: string; error: Problem | null; query: string }) {
  const at = error && isAbout(error, "query") ? placeOfError(query, error.message) : null;
  if (!error || at === null) return <div id={id}><ErrorLine error={error} /></div>;
  return (
    <p class="error-line" id={id} role="alert">
      <Icon name="alert" />
      <span>
        {error.message.replace(/^query: /, "")}
        <code class="wrong-selector">
          {query.slice(0, at)}
          <mark>{query.slice(at, at + 1) || " "}</mark>
          {query.slice(at + 1)}
        </code>
      </span>
    </p>
  );
}

interface RuleFormProps {
  /** The rule that changes; none for a new one. */
  rule?: Rule;
  /** How many there are. */
  count: number;
  onDone: (rule: Rule) => void;
  onCancel?: () => void;
}

function RuleForm({ rule, count, onDone, onCancel }: RuleFormProps) {
  const [query, setQuery] = useState(rule?.query ?? "");
  const [keep, setKeep] = useState(rule ? keepText(rule.keep_s) : "");
  const [totals, setTotals] = useState(rule?.totals_s ? keepText(rule.totals_s) : "");
  const [place, setPlace] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const [asked, setAsked] = useState(""); // what the error is about
  const selector = useRef<HTMLInputElement>(null);
  const errorId = useId();
  useEffect(() => {
    const at = error && isAbout(error, "query") ? placeOfError(asked, error.message) : null;
    if (at === null) return;
    selector.current?.focus();
    selector.current?.setSelectionRange(at, at);
  }, [error]);
  const send = async (event: Event) => {
    event.preventDefault();
    const wish: RuleWish = { query, keep: keep.trim() };
    if (totals.trim()) wish.totals = totals.trim();
    if (place) wish.position = Number(place);
    setAsked(query);
    setError(null);
    try {
      const made = await setRule(wish);
      if (!rule) for (const set of [setQuery, setKeep, setTotals, setPlace]) set("");
      onDone(made);
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  const marks = (field: string) => ({ "aria-invalid": isAbout(error, field), "aria-describedby": error ? errorId : undefined });
  const places = [{ value: "", label: "Last" }, ...Array.from({ length: count }, (_, i) => ({ value: `${i + 1}`, label: i ? `Number ${i + 1}` : "First" }))];
  return (
    <form class="inset" onSubmit={send} aria-label={rule ? `Change the rule of ${rule.query}` : "New rule"}>
      {!rule && (
        <Field label="Selector of a new rule" hint="As in Explore: a type, labels, or both.">
          {(id) => <input id={id} ref={selector} required spellcheck={false} autocapitalize="off" autocomplete="off" maxLength={8192} placeholder='{service_name="checkout",env=~"dev|test"}' value={query} onInput={(event) => setQuery(event.currentTarget.value)} {...marks("query")} />}
        </Field>
      )}
      <div class="field-row rule-times">
        <Field label="Keep profiles for" hint="12h, 30d, 1y or forever.">
          {(id) => <input id={id} required autocomplete="off" maxLength={64} placeholder="30d" value={keep} onInput={(event) => setKeep(event.currentTarget.value)} {...marks("keep")} />}
        </Field>
        <Field label="Then hourly totals until" hint="How old they become; may be empty.">
          {(id) => <input id={id} autocomplete="off" maxLength={64} placeholder="1y" value={totals} onInput={(event) => setTotals(event.currentTarget.value)} {...marks("totals")} />}
        </Field>
        {!rule && count > 0 && <Field label="Place">{(id) => <Select id={id} value={place} choices={places} onChange={setPlace} />}</Field>}
      </div>
      <FormError id={errorId} error={error} query={asked} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!query.trim() || !keep.trim()}>{rule ? "Save" : "Add rule"}</Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
      </div>
    </form>
  );
}

const buttonId = (rule: Rule, what: string) => `rule-${rule.id}-${what}`;

interface RowProps {
  rule: Rule;
  count: number;
  isEdited: boolean;
  onMove: (by: 1 | -1) => void;
  onEdit: (isEdited: boolean) => void;
  onSet: () => void;
  onRemove: () => void;
}

function Row({ rule, count, isEdited, onMove, onEdit, onSet, onRemove }: RowProps) {
  return (
    <li class={isEdited ? "edited" : ""}>
      <div class="rule-line">
        <span class="rule-place" aria-hidden="true">{rule.position}</span>
        <span class="grow">
          <code class="rule-query">{rule.query}</code>
          <span class="hint">{ruleWords(rule.keep_s, rule.totals_s)}</span>
        </span>
        <span class="rule-tools">
          <IconButton icon="up" id={buttonId(rule, "up")} label={`Move ${rule.query} up`} disabled={rule.position === 1} onClick={() => onMove(-1)} />
          <IconButton icon="down" id={buttonId(rule, "down")} label={`Move ${rule.query} down`} disabled={rule.position === count} onClick={() => onMove(1)} />
          <Button id={buttonId(rule, "edit")} look="quiet" aria-label={`Change the rule of ${rule.query}`} aria-expanded={isEdited} onClick={() => onEdit(!isEdited)}>Change</Button>
          <SureButton label="Remove" again="Remove it" onSure={onRemove} />
        </span>
      </div>
      {isEdited && <RuleForm rule={rule} count={count} onDone={onSet} onCancel={() => onEdit(false)} />}
    </li>
  );
}

/** Where the focus goes once the rules have been loaded anew: the first of these that is there and can be pressed. */
function useFocusAfter(rules: Rules | null) {
  const wanted = useRef<string[]>([]);
  useEffect(() => {
    const found = wanted.current.map((id) => document.getElementById(id) as HTMLButtonElement | null).find((one) => one && !one.disabled);
    wanted.current = [];
    found?.focus();
  }, [rules]);
  return (...ids: string[]) => void (wanted.current = ids);
}

export function RetentionRules() {
  const [answer, setAnswer] = useState<Rules | null>(null);
  const [tenant, setTenant] = useState<Tenant | null>(null);
  const [error, setError] = useState<Problem | null>(null);
  const [edited, setEdited] = useState<number | null>(null);
  const isBusy = useRef(false); // one change after the other, so that each goes by what it sees
  const focusAfter = useFocusAfter(answer);
  const load = () => listRules().then(setAnswer, (caught) => setError(asProblem(caught)));
  useEffect(() => {
    void load();
    getTenant().then(setTenant, (caught) => setError(asProblem(caught)));
  }, []);
  const attempt = async (change: () => Promise<unknown>, done: string) => {
    if (isBusy.current) return;
    isBusy.current = true;
    setError(null);
    try {
      await change();
      say(done);
    } catch (caught) {
      setError(asProblem(caught));
    }
    await load();
    isBusy.current = false;
  };
  const move = (rule: Rule, by: 1 | -1) => {
    const totals = rule.totals_s ? { totals: keepText(rule.totals_s) } : {};
    const position = rule.position + by;
    focusAfter(...(by < 0 ? ["up", "down"] : ["down", "up"]).map((what) => buttonId(rule, what)));
    void attempt(() => setRule({ query: rule.query, keep: keepText(rule.keep_s), ...totals, position }), `Number ${position} now`);
  };
  const set = async (rule: Rule, isNew: boolean) => {
    setEdited(null);
    if (!isNew) focusAfter(buttonId(rule, "edit"));
    say(isNew ? `Rule ${rule.position} is set` : "Rule changed");
    await load();
  };
  if (!answer || !tenant) return error ? <ErrorLine error={error} /> : <Loading />;
  const { rules, default_keep_s } = answer;
  const most = tenant.quotas.rule_keep_s;
  return (
    <>
      <RuleForm count={rules.length} onDone={(rule) => void set(rule, true)} />
      <ErrorLine error={error} />
      <ol class="rows-list rules-list" aria-label="Rules in their order">
        {rules.map((rule) => (
          <Row
            key={rule.id} rule={rule} count={rules.length} isEdited={edited === rule.id}
            onMove={(by) => move(rule, by)}
            onEdit={(isEdited) => setEdited(isEdited ? rule.id : null)}
            onSet={() => void set(rule, false)}
            onRemove={() => void attempt(() => removeRule(rule.id), "Rule removed")}
          />
        ))}
        <li class="rule-default">
          <div class="rule-line">
            <span class="rule-place" aria-hidden="true">–</span>
            <span class="grow">
              <strong>{rules.length ? "Everything else" : "Everything"}</strong>
              <span class="hint">{ruleWords(default_keep_s, null)}, as the server’s operator says</span>
            </span>
          </div>
        </li>
      </ol>
      <p class="hint">
        A series is kept as the first rule that finds it says, even where a later one keeps it longer. Rules count for what is stored already:
        what is past its rule can be read by nobody from that moment on, and a longer rule does not bring it back for sure. Of hourly totals the
        stacks and series of whole hours stay; single profiles, labels of samples and moments go.
        {most > 0 && <> A rule that is set here can keep at most {keepWords(most)}.</>}
      </p>
    </>
  );
}

export function SampleLabels() {
  const [kept, setKept] = useState<string | null>(null);
  const [text, setText] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const show = ({ sample_labels }: Tenant) => {
    setKept(sample_labels);
    setText(sample_labels.replaceAll(",", ", "));
  };
  useEffect(() => void getTenant().then(show, (caught) => setError(asProblem(caught))), []);
  const save = async (labels: string | null) => {
    setError(null);
    try {
      show(await setSampleLabels(labels));
      say("Saved");
    } catch (caught) {
      setError(asProblem(caught));
    }
  };
  if (kept === null) return error ? <ErrorLine error={error} /> : <Loading />;
  return (
    <form onSubmit={(event) => (event.preventDefault(), void save(text))}>
      <p>
        {kept ? <>Now: <code>{kept.replaceAll(",", ", ")}</code></> : "No label of samples makes series."}
      </p>
      <Field label="Labels" hint="Names with commas between them, at most 16. Profiles that come from now on go by them; labels of threads and spans never make series, nor do labels of levels and counters such as memory: they stay with their samples.">
        {(id) => <input id={id} autocomplete="off" autocapitalize="off" spellcheck={false} placeholder="endpoint, region" value={text} aria-invalid={error ? true : undefined} onInput={(event) => setText(event.currentTarget.value)} />}
      </Field>
      <ErrorLine error={error} />
      <div class="actions start">
        <Button look="primary" type="submit">Save labels</Button>
        <Button onClick={() => void save(null)}>Use the server’s default</Button>
      </div>
    </form>
  );
}
