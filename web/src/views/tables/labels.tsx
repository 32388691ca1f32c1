/*
 * labels: the labels of the samples with the value of each label value; a press restricts every
 * view to its samples. The numbers come from the server (or from local/labels.ts), not from the
 * tree.
 *
 * A label that is filtered is counted without its own rules, so that another value can be added or
 * chosen instead, and excluded values can be included again.
 */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import {
  formatLabels,
  groupOfLabel,
  parseLabelRule,
  invertLabelRule,
  type Label,
  type LabelBar,
  type LabelCount,
  type LabelsResponse,
  type LabelsRequest,
  type LabelValue,
  type LoadLabels,
} from "../../model/rules/labels.ts";
import { textsOf } from "../../model/rules/stack_rules.ts";
import {
  formatChange,
  formatCount,
  formatExact,
  formatPercent,
  formatSigned,
  formatValue,
} from "../../model/text/units.ts";
import { shownName } from "../../model/text/visible_text_model.ts";
import { asProblem, Button, Empty, IconButton, Loading, ProblemView } from "../../ui/kit.tsx";
import { addStyle } from "../../ui/later.tsx";
import style from "./labels.css?text";
import type { PaneContext, PaneProps } from "../panes.tsx";

const firstValues = 50;
/** The maximum number of values per label during a search. */
const searchedValues = 10_000;
/** The number of values shown at first, and added by each press of "more". */
const shownAtFirst = 8;
const shownMore = 500;

/* ---- loading ---- */

/** The number of values to request for a label, if it exceeds that of the others. */
type Depths = Readonly<Record<string, number>>;

interface Counted {
  key: string;
  response: LabelsResponse;
  /**
   * Labels that are requested separately: filtered labels without their own filter, and labels with
   * more values.
   */
  alone: Map<string, Label>;
}

const keyOf = (rule: string) => parseLabelRule(rule)?.key ?? "";

async function count(
  context: PaneContext,
  loadLabels: LoadLabels,
  limit: number,
  depths: Depths,
  signal: AbortSignal,
): Promise<Omit<Counted, "key">> {
  const { state } = context;
  const labelsRequest: LabelsRequest = {
    rules: state.labels,
    focus: textsOf(state.rules, "focus"),
    ignore: textsOf(state.rules, "ignore"),
    key: "",
    limit,
  };
  const keys = [...new Set([...state.labels.map(keyOf), ...Object.keys(depths)])];
  const [response, ...others] = await Promise.all([
    loadLabels(labelsRequest, signal),
    ...keys.map((key) => {
      const rules = state.labels.filter((rule) => keyOf(rule) !== key);
      return loadLabels(
        { ...labelsRequest, rules, key, limit: limit && Math.max(limit, depths[key] ?? 0) },
        signal,
      );
    }),
  ]);
  return {
    response,
    alone: new Map(
      keys.flatMap((key, i) => others[i].labels.map((label) => [key, label] as const)),
    ),
  };
}

/** The last result stays while the next one loads. */
function useLabels(context: PaneContext, limit: number, depths: Depths) {
  const { state, labelsKey } = context;
  const key = [
    labelsKey,
    formatLabels([...textsOf(state.rules, "focus"), "", ...textsOf(state.rules, "ignore")]),
    limit,
    JSON.stringify(depths),
  ].join("\n");
  const [counted, setCounted] = useState<Counted | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    if (!context.loadLabels) return;
    const abort = new AbortController();
    setProblem(null);
    count(context, context.loadLabels, limit, depths, abort.signal).then(
      (got) => abort.signal.aborted || setCounted({ key, ...got }),
      (error) => abort.signal.aborted || setProblem(asProblem(error)),
    );
    return () => abort.abort();
  }, [key, attempt]);
  return {
    counted,
    isCurrent: counted?.key === key,
    problem,
    retry: () => setAttempt(attempt + 1),
  };
}

/**
 * All sections in the server's order; a section without samples under the current filters stays.
 */
function sectionsOf({ response, alone }: Counted): Label[] {
  const shown = response.labels.map((label) => alone.get(label.key) ?? label);
  const names = new Set(shown.map(({ key }) => key));
  return [...shown, ...[...alone.values()].filter(({ key }) => !names.has(key))];
}

/* ---- numbers ---- */

interface Scale {
  unit: string;
  isDiff: boolean;
  /** The value that counts as 100 %. */
  total: number;
  baseTotal: number;
}

const after = (count: LabelCount) => count.total ?? count.total_b ?? 0;
const samplesOf = (count: LabelCount) =>
  count.samples ?? Math.max(count.samples_a ?? 0, count.samples_b ?? 0);

function scaleOf(response: LabelsResponse, isDiff: boolean, isOfFiltered: boolean): Scale {
  const [whole, kept] = [
    response.total ?? response.total_b ?? 0,
    response.kept ?? response.kept_b ?? 0,
  ];
  return {
    unit: response.unit,
    isDiff,
    total: isOfFiltered ? kept : whole,
    baseTotal: (isOfFiltered ? response.kept_a : response.total_a) ?? 0,
  };
}

const samplesText = (count: number) =>
  `${formatCount(count)} ${count === 1 ? "sample" : "samples"}`;

function amountText(count: LabelCount, { unit, isDiff, total }: Scale): string {
  if (!isDiff) return `${formatValue(after(count), unit)}, ${formatPercent(after(count), total)}`;
  return `${formatValue(count.total_a ?? 0, unit)} → ${formatValue(count.total_b ?? 0, unit)}`;
}

function Amounts({ count, scale }: { count: LabelCount; scale: Scale }) {
  const { unit, isDiff, total } = scale;
  if (isDiff) {
    const [a, b] = [count.total_a ?? 0, count.total_b ?? 0];
    return (
      <>
        <span class="label-amount" title={`${formatExact(a, unit)} → ${formatExact(b, unit)}`}>
          {amountText(count, scale)}
        </span>
        <span
          class={`label-share ${b > a ? "more" : b < a ? "less" : ""}`}
          title={formatSigned(b - a, unit)}
        >
          {formatChange(a, b)}
        </span>
      </>
    );
  }
  return (
    <>
      <span
        class="label-amount"
        title={`${formatExact(after(count), unit)} in ${samplesText(samplesOf(count))}`}
      >
        {formatValue(after(count), unit)}
      </span>
      <span class="label-share">{formatPercent(after(count), total)}</span>
    </>
  );
}

/** A bar as long as the share; in a diff, the bar of the side before is drawn below it. */
function Bars({ count, scale }: { count: LabelCount; scale: Scale }) {
  const width = (value: number, of: number) =>
    `${of === 0 ? 0 : Math.min(100, Math.abs((100 * value) / of))}%`;
  return (
    <>
      {scale.isDiff && (
        <i class="label-bar base" style={{ width: width(count.total_a ?? 0, scale.baseTotal) }} />
      )}
      <i class="label-bar" style={{ width: width(after(count), scale.total) }} />
    </>
  );
}

/* ---- one label ---- */

/** The value as text; numbers with their unit. */
const valueText = ({ value, unit }: LabelValue) =>
  value === null
    ? "without it"
    : typeof value === "number"
      ? formatValue(value, unit ?? "")
      : value;
const exactText = ({ value, unit }: LabelValue) =>
  typeof value === "number" ? formatExact(value, unit ?? "") : (value ?? "");

interface RowProps {
  value: LabelValue;
  scale: Scale;
  rules: readonly string[];
  choose: (filter: string, excludes: boolean) => void;
}

function ValueRow({ value, scale, rules, choose }: RowProps) {
  const { filter } = value;
  const isChosen = filter !== undefined && rules.includes(filter);
  const isExcluded = filter !== undefined && rules.includes(invertLabelRule(filter));
  const text = valueText(value);
  return (
    <li class={`label-row ${isExcluded ? "excluded" : ""} ${value.value === null ? "none" : ""}`}>
      <button
        type="button"
        class="label-value"
        aria-pressed={isChosen}
        disabled={filter === undefined}
        title={
          filter === undefined
            ? "Too long to filter by"
            : `${exactText(value)}\nClick: only these samples. Alt+click: all other samples.`
        }
        onClick={(event) => filter && choose(filter, event.altKey)}
      >
        <Bars count={value} scale={scale} />
        <bdi class="label-name">{shownName(text)}</bdi>
        <Amounts count={value} scale={scale} />
        <span class="label-samples">{samplesText(samplesOf(value))}</span>
      </button>
      {filter !== undefined && (
        <IconButton
          icon={isExcluded ? "plus" : "close"}
          aria-pressed={isExcluded}
          label={isExcluded ? `Include ${text} again` : `Exclude ${text}`}
          onClick={() => choose(filter, true)}
        />
      )}
    </li>
  );
}

/** Columns side by side; arrows move between them, and a press selects the numbers of one. */
function Histogram({
  label,
  bars,
  scale,
  choose,
}: {
  label: Label;
  bars: readonly LabelBar[];
  scale: Scale;
  choose: (value: string) => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  const most = Math.max(
    ...bars.map((bar) => Math.max(Math.abs(after(bar)), Math.abs(bar.total_a ?? 0))),
    1,
  );
  const unit = label.unit ?? "";
  const ends = ({ low, high }: LabelBar) =>
    low === high
      ? formatValue(low, unit)
      : `${formatValue(low, unit)} to ${formatValue(high, unit)}`;
  const move = (event: KeyboardEvent) => {
    const columns = [...element.current!.querySelectorAll("button")];
    const at = columns.indexOf(event.target as HTMLButtonElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: columns.length - 1 }[
      event.key
    ];
    if (to === undefined || !columns[to]) return;
    columns[to].focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="label-histogram">
      <div
        class="label-columns"
        role="group"
        aria-label={`Distribution of ${label.key}`}
        ref={element}
        onKeyDown={move}
      >
        {bars.map((bar, i) => (
          <button
            type="button"
            key={bar.low}
            tabIndex={i === 0 ? 0 : -1}
            title={`${ends(bar)}\n${amountText(bar, scale)}, ${samplesText(samplesOf(bar))}`}
            aria-label={`${ends(bar)}: ${amountText(bar, scale)}`}
            onClick={() =>
              choose(bar.low === bar.high ? String(bar.low) : `${bar.low}..${bar.high}`)
            }
          >
            <i style={{ height: `${(100 * Math.abs(after(bar))) / most}%` }} />
          </button>
        ))}
      </div>
      <span>{formatValue(bars[0].low, unit)}</span>
      <span>{formatValue(bars[bars.length - 1].high, unit)}</span>
    </div>
  );
}

interface SectionProps {
  label: Label;
  scale: Scale;
  context: PaneContext;
  pattern: string;
  /** Requests this number of values of the label. */
  onDepth: (values: number) => void;
}

function SectionHead({ label, scale, context }: Pick<SectionProps, "label" | "scale" | "context">) {
  const { state, update } = context;
  const isGrouped = state.group === groupOfLabel(label.key);
  const valueWord = label.value_count === 1 ? "value" : "values";
  const withIt: LabelCount = {
    ...label,
    samples: label.samples_with,
    samples_a: label.samples_with_a,
    samples_b: label.samples_with_b,
  };
  return (
    <header>
      <h3>
        <bdi>{shownName(label.key)}</bdi>
      </h3>
      <p>
        {formatCount(label.value_count)} {valueWord}
        {label.unit && label.unit !== "count" ? `, in ${label.unit}` : ""} ·{" "}
        {amountText(withIt, scale)} · {samplesText(samplesOf(withIt))}
      </p>
      {context.canGroup && (
        <Button
          look="quiet"
          aria-pressed={isGrouped}
          onClick={() =>
            update({
              group: isGrouped ? "function" : groupOfLabel(label.key),
              zoom: "",
              root: "",
              window: null,
            })
          }
          title="Show the label’s values at the root of the tree"
        >
          Group by it
        </Button>
      )}
    </header>
  );
}

function Section({ label, scale, context, pattern, onDepth }: SectionProps) {
  const { state, setLabels } = context;
  const [most, setMost] = useState(shownAtFirst);
  const matches = useMemo(
    () =>
      pattern && !label.key.toLowerCase().includes(pattern)
        ? label.values.filter((value) =>
            `${valueText(value)}\n${exactText(value)}`.toLowerCase().includes(pattern),
          )
        : label.values,
    [label, pattern],
  );
  const shown = matches.slice(0, most);
  const hidden = pattern ? matches.length - shown.length : label.value_count - shown.length;
  const rest = label.other && !pattern ? label.other : null;
  /** Several values of a label can be selected; a value is either selected or excluded. */
  const choose = (filter: string, excludes: boolean) => {
    const wanted = excludes ? invertLabelRule(filter) : filter;
    const others = state.labels.filter(
      (rule) => rule !== filter && rule !== invertLabelRule(filter),
    );
    setLabels(state.labels.includes(wanted) ? others : [...others, wanted]);
  };
  const chooseRange = (value: string) => {
    const own = label.without.filter;
    if (own !== undefined && !state.labels.includes(own + value))
      setLabels([...state.labels.filter((rule) => !rule.startsWith(own)), own + value]);
  };
  const showMore = () => {
    setMost(most + shownMore);
    if (label.other) onDepth(most + shownMore);
  };
  return (
    <section class="label-section" aria-label={`Label ${label.key}`}>
      <SectionHead label={label} scale={scale} context={context} />
      {label.histogram && !pattern && (
        <Histogram label={label} bars={label.histogram} scale={scale} choose={chooseRange} />
      )}
      <ul>
        {shown.map((value) => (
          <ValueRow
            key={value.filter ?? `${value.value} ${value.unit}`}
            value={value}
            scale={scale}
            rules={state.labels}
            choose={choose}
          />
        ))}
        {!pattern && samplesOf(label.without) > 0 && (
          <ValueRow value={label.without} scale={scale} rules={state.labels} choose={choose} />
        )}
      </ul>
      {hidden > 0 && (
        <p class="label-more">
          <Button look="quiet" icon="down" onClick={showMore}>
            {hidden <= shownMore
              ? `Show all ${formatCount(shown.length + hidden)}`
              : `Show more of ${formatCount(shown.length + hidden)}`}
          </Button>
          {rest && most > shownAtFirst && shown.length === matches.length && (
            <span>
              {amountText(rest, scale)} in {formatCount(rest.value_count)} more
            </span>
          )}
        </p>
      )}
      {label.uncounted && (
        <p class="label-more">
          Only the first {formatCount(label.uncounted.values_counted)} values are counted
          separately; the others have {amountText(label.uncounted, scale)}.
        </p>
      )}
    </section>
  );
}

/* ---- the pane ---- */

/** Describes how the samples of the views beside this pane differ from the samples counted here. */
function difference({ response }: Counted, context: PaneContext): string {
  const { flame, source, state } = context;
  const kept = response.kept ?? response.kept_b ?? 0;
  const isPart = state.root !== "" || state.rules.some((rule) => !rule.isOff);
  if (flame.cum[0] === kept || !isPart || !Number.isSafeInteger(kept)) return "";
  return (
    "Labels follow only the rules focus and ignore: they show " +
    `${formatPercent(kept, source.total)} of the profile, the tree ` +
    `${formatPercent(flame.cum[0], source.total)}.`
  );
}

export function LabelsPane({ context }: PaneProps) {
  addStyle(style);
  const [text, setText] = useState("");
  const [wantsAll, setWantsAll] = useState(false);
  const [depths, setDepths] = useState<Depths>({});
  const pattern = text.trim().toLowerCase();
  const limit = wantsAll ? 0 : pattern ? searchedValues : firstValues;
  const { counted, isCurrent, problem, retry } = useLabels(context, limit, depths);
  if (!context.loadLabels)
    return (
      <Empty title="This file contains no labels">
        <p>
          The file contains only the tree. To see the labels, open the profile where it was shared.
        </p>
      </Empty>
    );
  if (problem) return <ProblemView problem={problem} onRetry={retry} />;
  if (!counted) return <Loading label="Counting labels" />;
  const scale = scaleOf(counted.response, context.flame.isDiff, context.state.isOfFiltered);
  const all = sectionsOf(counted);
  const sections = pattern
    ? all.filter(
        (label) =>
          label.key.toLowerCase().includes(pattern) ||
          label.values.some((value) =>
            `${valueText(value)}\n${exactText(value)}`.toLowerCase().includes(pattern),
          ),
      )
    : all;
  const note = difference(counted, context);
  const unsearched = pattern ? all.filter((label) => label.other).length : 0;
  if (all.length === 0)
    return (
      <Empty
        title={
          context.state.labels.length || context.state.rules.length
            ? "No labels match"
            : "No labels"
        }
      >
        <p>
          {context.state.labels.length || context.state.rules.length
            ? "No sample that passes the filters has a label."
            : "The samples of this profile have no labels. Go programs set them with pprof.Do; " +
              "other profilers call them tags."}
        </p>
      </Empty>
    );
  return (
    <div class="labels" aria-busy={!isCurrent}>
      <div class="labels-head">
        <input
          type="search"
          aria-label="Search labels and values"
          placeholder="Search labels and values"
          value={text}
          spellcheck={false}
          autocomplete="off"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <output aria-live="polite">
          {pattern
            ? `${sections.length} of ${all.length} labels`
            : `${formatCount(counted.response.label_count)} ` +
              (counted.response.label_count === 1 ? "label" : "labels")}
          {counted.response.truncated && !pattern ? `, ${all.length} shown` : ""}
          {unsearched ? "; only the largest 10,000 values of a label are searched" : ""}
        </output>
        {counted.response.truncated && !wantsAll && (
          <Button look="quiet" onClick={() => setWantsAll(true)}>
            Show all
          </Button>
        )}
      </div>
      {note && <p class="labels-note">{note}</p>}
      {sections.map((label) => (
        <Section
          key={label.key}
          label={label}
          scale={scale}
          context={context}
          pattern={pattern}
          onDepth={(values) => setDepths({ ...depths, [label.key]: values })}
        />
      ))}
    </div>
  );
}
