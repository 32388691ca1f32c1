/*
 * retention: two parts of the settings: how long continuous profiles are kept, and which labels of
 * samples define series.
 */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import {
  formatPeriod,
  describePeriod,
  describeRetention,
} from "../../model/account/retention_text.ts";
import { placeOfError } from "../../model/continuous/selector.ts";
import {
  labelsText,
  removeRule,
  rulesPart,
  setRule,
  setSampleLabels,
  teamPart,
  type Rule,
  type RuleInput,
} from "../../api/team_api.ts";
import { Button, Field, IconButton, Loading, Select } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";
import { ConfirmButton } from "../../ui/confirm_button.tsx";
import { RefusalLine, usePart, type Refusal } from "./use_part.tsx";

/**
 * The server's error about a field starts with the name of the field. Otherwise undefined, which
 * omits the attribute aria-invalid.
 */
const isAbout = (error: Problem | null, field: string) =>
  error?.message.startsWith(field) || undefined;

/** The server's error and, if it contains a position, the selector with that position marked. */
function FormError({ id, refusal, query }: { id: string; refusal: Refusal | null; query: string }) {
  const error = refusal?.problem ?? null;
  const at = error && isAbout(error, "query") ? placeOfError(query, error.message) : null;
  if (!error || at === null) return <RefusalLine id={id} refusal={refusal} />;
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
  /** The rule to change; absent for a new one. */
  rule?: Rule;
  /** Someone else has removed it meanwhile. */
  isGone?: boolean;
  /** The number of rules. */
  count: number;
  onDone?: () => void;
  onCancel?: () => void;
}

interface PeriodFieldProps {
  label: string;
  hint: string;
  placeholder: string;
  isRequired?: boolean;
  value: string;
  onChange: (value: string) => void;
  /** Attributes that connect it with an error. */
  marks: { "aria-invalid"?: boolean; "aria-describedby"?: string };
}

function PeriodField(props: PeriodFieldProps) {
  const { label, hint, placeholder, isRequired, value, onChange, marks } = props;
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          required={isRequired}
          autocomplete="off"
          maxLength={64}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
          {...marks}
        />
      )}
    </Field>
  );
}

const placesOf = (count: number) => [
  { value: "", label: "Last (lowest priority)" },
  ...Array.from({ length: count }, (_, i) => ({
    value: `${i + 1}`,
    label: i ? `${i + 1}` : "First (highest priority)",
  })),
];

function RuleForm({ rule, isGone = false, count, onDone, onCancel }: RuleFormProps) {
  const [query, setQuery] = useState(rule?.query ?? "");
  const [keep, setKeep] = useState(rule ? formatPeriod(rule.keep_s) : "");
  const [totals, setTotals] = useState(rule?.totals_s ? formatPeriod(rule.totals_s) : "");
  const [place, setPlace] = useState("");
  const { refusal, submit, isSending } = usePart(rulesPart);
  const error = refusal?.problem ?? null;
  const [submitted, setSubmitted] = useState(""); // the text that the error refers to
  const selector = useRef<HTMLInputElement>(null);
  const errorId = useId();
  useEffect(() => {
    const at = error && isAbout(error, "query") ? placeOfError(submitted, error.message) : null;
    if (at === null) return;
    selector.current?.focus();
    selector.current?.setSelectionRange(at, at);
  }, [error]);
  const send = async (event: Event) => {
    event.preventDefault();
    const input: RuleInput = { query, keep: keep.trim(), replace: rule !== undefined };
    if (totals.trim()) input.totals = totals.trim();
    if (place) input.position = Number(place);
    setSubmitted(query);
    const made = await submit(
      (version) => setRule(input, version),
      ({ position }) => (rule && !isGone ? "Rule changed" : `Rule added at position ${position}`),
    );
    if (!made) return;
    if (!rule) for (const set of [setQuery, setKeep, setTotals, setPlace]) set("");
    onDone?.();
  };
  const marks = (field: string) => ({
    "aria-invalid": isAbout(error, field),
    "aria-describedby": error ? errorId : undefined,
  });
  const places = placesOf(count);
  return (
    <form
      class="inset"
      onSubmit={send}
      aria-busy={isSending}
      aria-label={rule ? `Change the rule for ${rule.query}` : "New rule"}
    >
      {!rule && (
        <Field
          label="Selector of a new rule"
          hint="A profile type, labels in braces, or both, as in Explore."
        >
          {(id) => (
            <input
              id={id}
              ref={selector}
              required
              spellcheck={false}
              autocapitalize="off"
              autocomplete="off"
              maxLength={8192}
              placeholder='{service_name="checkout",env=~"dev|test"}'
              value={query}
              onInput={(event) => setQuery(event.currentTarget.value)}
              {...marks("query")}
            />
          )}
        </Field>
      )}
      <div class="field-row rule-times">
        <PeriodField
          label="Keep profiles for"
          hint="For example 12h, 30d, 1y or forever."
          placeholder="30d"
          isRequired
          value={keep}
          onChange={setKeep}
          marks={marks("keep")}
        />
        <PeriodField
          label="Keep hourly totals for"
          hint="Optional and longer: stacks summed by the hour."
          placeholder="1y"
          value={totals}
          onChange={setTotals}
          marks={marks("totals")}
        />
        {!rule && count > 0 && (
          <Field label="Position in the list">
            {(id) => <Select id={id} value={place} choices={places} onChange={setPlace} />}
          </Field>
        )}
      </div>
      <FormError id={errorId} refusal={refusal} query={submitted} />
      <div class="actions start">
        <Button look="primary" type="submit" disabled={!query.trim() || !keep.trim()}>
          {rule ? "Save" : "Add rule"}
        </Button>
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
  isGone: boolean;
  onMove: (by: 1 | -1) => void;
  onEdit: (isEdited: boolean) => void;
  onRemove: () => void;
}

function Row({ rule, count, isEdited, isGone, onMove, onEdit, onRemove }: RowProps) {
  return (
    <li class={isEdited ? "edited" : ""}>
      <div class="rule-line">
        <span class="rule-place" aria-hidden="true">
          {isGone ? "–" : rule.position}
        </span>
        <span class="grow">
          <code class="rule-query">{rule.query}</code>
          <span class="hint">
            {isGone
              ? "Someone removed this rule in the meantime. Saving adds it to the end of the list."
              : describeRetention(rule.keep_s, rule.totals_s)}
          </span>
        </span>
        {!isGone && (
          <span class="rule-tools">
            <IconButton
              icon="up"
              id={buttonId(rule, "up")}
              label={`Move ${rule.query} up`}
              disabled={rule.position === 1}
              onClick={() => onMove(-1)}
            />
            <IconButton
              icon="down"
              id={buttonId(rule, "down")}
              label={`Move ${rule.query} down`}
              disabled={rule.position === count}
              onClick={() => onMove(1)}
            />
            <Button
              id={buttonId(rule, "edit")}
              look="quiet"
              aria-label={`Change the rule for ${rule.query}`}
              aria-expanded={isEdited}
              onClick={() => onEdit(!isEdited)}
            >
              Change
            </Button>
            <ConfirmButton label="Remove" what={rule.query} again="Remove rule" onSure={onRemove} />
          </span>
        )}
      </div>
      {isEdited && (
        <RuleForm
          rule={rule}
          isGone={isGone}
          count={count}
          onDone={() => onEdit(false)}
          onCancel={() => onEdit(false)}
        />
      )}
    </li>
  );
}

/**
 * Returns a function that focuses, after the next render, the first of the buttons with these ids
 * that exists and is enabled, unless the user has moved the focus to another element.
 */
function useFocusAfter() {
  const [wanted, setWanted] = useState<string[]>([]);
  useEffect(() => {
    const at = document.activeElement;
    if (at && at !== document.body && !wanted.includes(at.id)) return;
    const buttons = wanted.map((id) => document.getElementById(id) as HTMLButtonElement | null);
    buttons.find((one) => one && !one.disabled)?.focus();
  }, [wanted]);
  return setWanted;
}

export function RetentionRules() {
  const { value: response, refusal, attempt } = usePart(rulesPart);
  const team = usePart(teamPart);
  const [edited, setEdited] = useState<Rule | null>(null);
  const focusAfter = useFocusAfter();
  const move = async (rule: Rule, by: 1 | -1) => {
    await attempt(
      (version, value) => {
        const rules = value?.rules ?? [];
        const now = rules.find(({ id }) => id === rule.id);
        const position = now ? now.position + by : 0;
        // it was removed, or an earlier press has moved it to the end
        if (!now || position < 1 || position > rules.length) return null;
        const totals = now.totals_s ? { totals: formatPeriod(now.totals_s) } : {};
        return setRule(
          { query: now.query, keep: formatPeriod(now.keep_s), ...totals, position },
          version,
        );
      },
      ({ position }) => `Moved to position ${position}`,
    );
    // At the end of the list, the pressed button is disabled.
    focusAfter((by < 0 ? ["up", "down"] : ["down", "up"]).map((what) => buttonId(rule, what)));
  };
  const remove = async (rule: Rule) => {
    const removed = await attempt((version) => removeRule(rule.id, version), "Rule removed");
    if (removed) setEdited((old) => (old?.id === rule.id ? null : old));
  };
  const close = (rule: Rule) => {
    setEdited(null);
    document.getElementById(buttonId(rule, "edit"))?.focus();
  };
  if (!response || !team.value)
    return refusal || team.refusal ? (
      <RefusalLine refusal={refusal ?? team.refusal} />
    ) : (
      <Loading />
    );
  const { rules, default_keep_s } = response;
  const most = team.value.quotas.rule_keep_s;
  // A rule that is being changed stays with the typed text, even if someone removes it.
  const lost = edited && !rules.some(({ id }) => id === edited.id) ? edited : null;
  const shown = lost
    ? [...rules.slice(0, lost.position - 1), lost, ...rules.slice(lost.position - 1)]
    : rules;
  return (
    <>
      <RuleForm count={rules.length} />
      <RefusalLine refusal={refusal} />
      <ol class="rows-list rules-list" aria-label="Rules in order of priority">
        {shown.map((rule) => (
          <Row
            key={rule.id}
            rule={rule}
            count={rules.length}
            isEdited={edited?.id === rule.id}
            isGone={rule === lost}
            onMove={(by) => void move(rule, by)}
            onEdit={(isEdited) => (isEdited ? setEdited(rule) : close(rule))}
            onRemove={() => void remove(rule)}
          />
        ))}
        <li class="rule-default">
          <div class="rule-line">
            <span class="rule-place" aria-hidden="true">
              –
            </span>
            <span class="grow">
              <strong>{rules.length ? "Everything else" : "Everything"}</strong>
              <span class="hint">{describeRetention(default_keep_s, null)} (server default)</span>
            </span>
          </div>
        </li>
      </ol>
      <p class="hint">
        The first rule that matches a series applies, even if a later one would keep it longer.
        Rules also apply to stored profiles: profiles older than their rule can no longer be read,
        and a longer rule may not restore them. Hourly totals keep stacks and series, summed by the
        hour, without single profiles, sample labels and exact times.
        {most > 0 && <> A rule can keep profiles for at most {describePeriod(most)}.</>}
      </p>
    </>
  );
}

export function SampleLabels() {
  const { value, refusal, submit, isSending } = usePart(teamPart);
  const [typed, setTyped] = useState<string | null>(null);
  const save = async (labels: string | null) => {
    if (await submit((version) => setSampleLabels(labels, version), "Saved")) setTyped(null);
  };
  if (!value) return refusal ? <RefusalLine refusal={refusal} /> : <Loading />;
  const kept = labelsText(value.sample_labels);
  const text = typed ?? kept;
  return (
    <form aria-busy={isSending} onSubmit={(event) => (event.preventDefault(), void save(text))}>
      <p>
        {kept ? (
          <>
            Now: <code>{kept}</code>
          </>
        ) : (
          "No sample label splits series."
        )}
      </p>
      <Field
        label="Labels"
        hint={
          "Comma-separated, at most 16. They apply to profiles received from now on. Labels " +
          "of threads and spans never split series, and neither do labels of gauges and " +
          "counters. The average of a series that such a label defines covers only the time of " +
          "profiles that contain a sample of the series."
        }
      >
        {(id) => (
          <input
            id={id}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder="endpoint, region"
            value={text}
            aria-invalid={refusal ? true : undefined}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Field>
      <RefusalLine refusal={refusal} />
      <div class="actions start">
        <Button look="primary" type="submit">
          Save labels
        </Button>
        <Button onClick={() => void save(null)}>Use the server’s default</Button>
      </div>
    </form>
  );
}
