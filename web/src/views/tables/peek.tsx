/*
 * peek: the callers and callees of one function as tables of numbers that sum to its total. A press
 * on a caller or callee opens it; the browser's back button returns.
 */
import { useMemo, useRef } from "preact/hooks";
import type { Flame } from "../../model/tree/flame.ts";
import { peek, type Peek, type PeekRow } from "../../model/functions/peek.ts";
import type { Pattern } from "../../model/search/regex.ts";
import { boundedTest } from "../../model/search/search.ts";
import {
  changeOf,
  formatChange,
  formatCount,
  formatPercent,
  formatSigned,
  formatValue,
} from "../../model/text/units.ts";
import { shownName } from "../../model/text/visible_text_model.ts";
import { addStyle } from "../../ui/later.tsx";
import { placeOf } from "../foot/describe.ts";
import { fitterFor, type LabelFitter } from "../icicle/label_fitter.ts";
import type { PaneContext, PaneProps } from "../panes.tsx";
import aroundStyle from "./no_function.css?text";
import style from "./peek.css?text";
import { ChangeCell, TablePane, useSeenRows, ValueCell } from "./table.tsx";

addStyle(aroundStyle);
addStyle(style);

interface ListProps {
  context: PaneContext;
  label: string;
  /** The heading of the names. */
  header: string;
  lines: readonly PeekRow[];
  /** The base of percentages. */
  whole: Peek;
  isMatch: (name: string) => boolean;
}

/** A line that is not a function to open. */
const own = (name: string, value: number, baseValue: number): PeekRow => ({
  frame: -1,
  name,
  value,
  baseValue,
  isOther: true,
});

/**
 * The row handles the button's click, too. If the button had a handler of its own, the row might
 * show another function by the time the click bubbles up to it.
 */
function NameCell({
  line,
  context,
  shown,
  swatch,
}: {
  line: PeekRow;
  context: PaneContext;
  shown: string;
  swatch: string;
}) {
  const place = line.frame < 0 ? "" : placeOf(context.flame, line.frame);
  const whole = shownName(line.name);
  const name = whole.includes(shown) ? { "aria-label": whole } : { title: whole };
  return (
    <div class="cell name" role="cell" title={place ? `${whole}\n${place}` : whole}>
      {!context.flame.isDiff && <span class="swatch" style={{ background: swatch }} />}
      {line.isOther ? (
        <em tabIndex={-1}>{whole}</em>
      ) : (
        <button type="button" tabIndex={-1} {...name}>
          <bdi>{shown}</bdi>
        </button>
      )}
    </div>
  );
}

function List({ context, label, header, lines, whole, isMatch }: ListProps) {
  const { flame, colours, unit, palette, hovered, onHoverName, openMenu } = context;
  const bound = flame.bounds.part;
  const { list, scroller, nameWidth, first, last, spacePx, topOf } = useSeenRows(lines.length);
  const fitter = useRef<LabelFitter | null>(null);
  const shown = (name: string) => {
    if (nameWidth === 0) return shownName(name);
    fitter.current ??= scroller.current && fitterFor(scroller.current);
    return fitter.current?.fit(name, nameWidth - (flame.isDiff ? 4 : 24)) || shownName(name);
  };
  const heads = flame.isDiff ? ["Before", "After", "Change"] : ["Value"];
  return (
    <section class="peek-list">
      <h3>{label}</h3>
      <div
        class={`peek-table ${flame.isDiff ? "diff" : ""}`}
        role="table"
        aria-label={label}
        aria-rowcount={lines.length + 1}
      >
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1}>
            {heads.map((head) => (
              <div class="cell value" role="columnheader" key={head}>
                {head}
              </div>
            ))}
            <div class="cell name" role="columnheader">
              {header}
            </div>
          </div>
        </div>
        <div class="rows" role="rowgroup" aria-label={label} {...list}>
          <div class="rows-space" style={{ height: `${spacePx}px` }} role="presentation">
            {lines.slice(first, last).map((line, i) => (
              <div
                class={
                  `row ${line.isOther ? "own" : ""} ` +
                  `${line.name === hovered ? "hovered" : ""} ` +
                  (isMatch(line.name) ? "chosen" : "")
                }
                role="row"
                data-function={line.isOther ? "" : line.name}
                aria-rowindex={first + i + 2}
                key={first + i}
                style={{ transform: `translateY(${topOf(first + i)}px)` }}
                onClick={() => line.isOther || context.update({ marked: line.name })}
                onPointerEnter={() => line.isOther || onHoverName(line.name)}
                onPointerLeave={() => onHoverName("")}
                onContextMenu={(event) => {
                  if (line.isOther) return;
                  event.preventDefault();
                  openMenu(line.name, event.clientX, event.clientY);
                }}
              >
                {flame.isDiff && (
                  <ValueCell
                    value={line.baseValue}
                    total={whole.baseCum}
                    {...{ unit, bound }}
                    tone="before"
                  />
                )}
                <ValueCell value={line.value} total={whole.cum} {...{ unit, bound }} />
                {flame.isDiff && (
                  <ChangeCell before={line.baseValue} after={line.value} {...{ unit, bound }} />
                )}
                <NameCell
                  {...{ line, context }}
                  shown={shown(line.name)}
                  swatch={line.frame < 0 ? "transparent" : palette.fills[colours.fill(line.frame)]}
                />
              </div>
            ))}
          </div>
          {lines.length === 0 && <p class="nothing">None</p>}
        </div>
      </div>
    </section>
  );
}

/** The self and total value of the function. */
function Sums({ flame, whole, unit }: { flame: Flame; whole: Peek; unit: string }) {
  const bound = flame.bounds.part;
  const rows: [string, number, number][] = [
    ["Self", whole.baseFlat, whole.flat],
    ["Total", whole.baseCum, whole.cum],
  ];
  return (
    <table class="peek-sums">
      {flame.isDiff && (
        <thead>
          <tr>
            <td />
            <th scope="col">Before</th>
            <th scope="col">After</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
      )}
      <tbody>
        {rows.map(([label, before, after]) => {
          const change = changeOf(before, after);
          return (
            <tr key={label}>
              <th scope="row">{label}</th>
              {flame.isDiff && (
                <td>
                  {bound}
                  {formatValue(before, unit)}
                </td>
              )}
              <td>
                {bound}
                {formatValue(after, unit)}
              </td>
              {flame.isDiff ? (
                <td class={change > 0 ? "more" : change < 0 ? "less" : ""}>
                  {bound && "≈ "}
                  {formatSigned(change, unit)} <em>{formatChange(before, after)}</em>
                </td>
              ) : (
                <td>
                  <em>{formatPercent(after, flame.total)}</em>
                </td>
              )}
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function matcher(pattern: Pattern | null): (name: string) => boolean {
  if (!pattern) return () => false;
  const test = boundedTest(pattern);
  return (name) => {
    try {
      return test(name);
    } catch {
      return false;
    }
  };
}

const counted = (count: number, one: string) =>
  count === 0 ? `No ${one}s` : count === 1 ? `1 ${one}` : `${formatCount(count)} ${one}s`;

/** Without a marked function, shows the table, sorted by self value, to choose one. */
export function PeekPane(props: PaneProps) {
  const { context } = props;
  const { state, flame, unit, pattern } = context;
  const found = useMemo(
    () => (state.marked ? peek(flame, state.marked) : null),
    [flame, state.marked],
  );
  const isMatch = useMemo(() => matcher(pattern), [pattern]);
  if (!state.marked)
    return (
      <div class="peek-choice">
        <p class="hint">Select a function to see its callers and callees.</p>
        <TablePane {...props} />
      </div>
    );
  if (!found)
    return (
      <div class="sandwich-empty">
        <p>“{state.marked}” is in no stack that passes the rules.</p>
      </div>
    );
  const { start, callers, callees } = found;
  const above = start
    ? [own("stacks start here", start.value, start.baseValue), ...callers]
    : callers;
  const below =
    found.flat || found.baseFlat
      ? [own("itself", found.flat, found.baseFlat), ...callees]
      : callees;
  const place = placeOf(flame, found.frame);
  return (
    <div class="peek-frame">
      <div class="peek">
        <List
          {...{ context, isMatch }}
          whole={found}
          label={counted(callers.length, "caller")}
          header="Caller"
          lines={above}
        />
        <section class="peek-self" aria-live="polite">
          <h3>
            <bdi>{state.marked}</bdi>
          </h3>
          {place && <p class="hint">{context.placed(found.frame, place)}</p>}
          <Sums flame={flame} whole={found} unit={unit} />
          {flame.isCut && (
            <p class="hint">Small stacks are merged, so the numbers here may be too low.</p>
          )}
        </section>
        <List
          {...{ context, isMatch }}
          whole={found}
          label={counted(callees.length, "callee")}
          header="Callee"
          lines={below}
        />
      </div>
    </div>
  );
}
