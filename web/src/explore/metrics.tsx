/*
 * metrics: the values of one selection over time: the plot, a table of its series, and a table of
 * all values. The plot handles keys like a slider: arrows move by a step, Shift and arrows mark a
 * range, Enter applies it.
 */
import { useCallback, useMemo, useState } from "preact/hooks";
import type { Range, RangeResponse, Series } from "../api/explore_api.ts";
import {
  digestOf,
  formatMetric,
  lineLook,
  otherLook,
  plotData,
  sameSeries,
  seriesName,
  valueAt,
  type LineLook,
} from "../model/continuous/plot_data.ts";
import {
  formatLength,
  formatTime,
  formatSpan,
  type Span,
} from "../model/continuous/time_window.ts";
import { formatExact } from "../model/text/units.ts";
import type { Selection } from "../model/continuous/explore_state.ts";
import { Button, ErrorLine, Name } from "../ui/kit.tsx";
import { later } from "../ui/later.tsx";
import { usePalette } from "../ui/theme.ts";
import type { Loaded } from "./use_selection.ts";

const plot = later(async () => (await import("./plot.tsx")).Plot);

interface MetricsProps {
  response: RangeResponse;
  isCurrent: boolean;
  /** The response for the marked range, if one is marked. */
  part: Loaded<Range>;
  window: Span;
  selection: Selection;
  /** Describes the stacks that are counted if a rule restricts them. */
  of: string;
  onPart: (part: Span | null) => void;
  /** Called with the labels of a series, or with none for all series. */
  onChoose: (labels: Selection["only"]) => void;
  /** Makes the marked range the window. */
  onZoom: () => void;
}

const isSame = (labels: Record<string, string>, only: Selection["only"]) =>
  only.length > 0 &&
  only.length === Object.keys(labels).length &&
  only.every(([name, value]) => labels[name] === value);

const dataOf = ({ series, step_ms }: RangeResponse) =>
  plotData(
    series.map(({ points }) => points),
    step_ms,
  );

function Swatch({ look }: { look: LineLook }) {
  return (
    <svg class="swatch-line" width="22" height="8" viewBox="0 0 22 8" aria-hidden="true">
      <line
        x1="1"
        y1="4"
        x2="21"
        y2="4"
        stroke={look.stroke}
        stroke-width="2.5"
        stroke-dasharray={look.dash.join(" ")}
      />
    </svg>
  );
}

/**
 * The name and values of each series; if a range is marked, of the largest series of that range,
 * which may be others than the lines of the graph. A press restricts the page to that series.
 */
function SeriesTable({
  response,
  part,
  looks,
  selection,
  cursor,
  onChoose,
}: Pick<MetricsProps, "response" | "part" | "selection" | "onChoose"> & {
  looks: LineLook[];
  cursor: number | null;
}) {
  const isOfPart = selection.part !== null && part.isCurrent;
  const isLoading = selection.part !== null && !part.isCurrent;
  const series = isOfPart ? part.value!.series : response.series;
  const shown = (value: number | null | undefined) =>
    value === null || value === undefined ? "–" : formatMetric(value, response.unit);
  /**
   * The line of the graph for a series of the table; null if there is none. The table of a range
   * sums other series than the graph, so its sum has no line.
   */
  const lineOf = (one: Series) =>
    isOfPart ? (one.other_count ? null : sameSeries(one, response.series)) : one;
  const atCursor = (line: Series | null, ms: number) =>
    line && valueAt(line.points, ms, response.step_ms);
  const of = selection.part ? " of selection" : "";
  return (
    <div class="series-table" role="group" aria-label="Series" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Series</th>
            <th scope="col" class="number">
              {cursor === null ? "Last" + of : formatTime(cursor, cursor)}
            </th>
            <th scope="col" class="number">
              Average{of}
            </th>
            <th scope="col" class="number">
              Highest{of}
            </th>
          </tr>
        </thead>
        <tbody>
          {series.map((one) => {
            const isChosen = isSame(one.labels, selection.only);
            const digest = digestOf(one);
            const ofDigest = (value: number | undefined) => (isLoading ? "…" : shown(value));
            const line = lineOf(one);
            const look = line && looks[response.series.indexOf(line)];
            return (
              <tr key={seriesName(one)} class={isChosen ? "chosen" : ""}>
                <th scope="row">
                  {one.other_count ? (
                    <span class="series-other">
                      {look && <Swatch look={look} />}
                      {seriesName(one)}
                    </span>
                  ) : (
                    <button
                      type="button"
                      aria-pressed={isChosen}
                      disabled={!Object.keys(one.labels).length}
                      title="Show only this series"
                      onClick={() => onChoose(isChosen ? [] : Object.entries(one.labels))}
                    >
                      {look && <Swatch look={look} />}
                      <Name text={seriesName(one)} />
                    </button>
                  )}
                </th>
                <td class="number">
                  {cursor === null ? ofDigest(digest?.last) : shown(atCursor(line, cursor))}
                </td>
                <td class="number">{ofDigest(digest?.mean)}</td>
                <td class="number">{ofDigest(digest?.highest)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function AllValues({ response }: { response: RangeResponse }) {
  const [isOpen, setOpen] = useState(false);
  const times = useMemo(
    () =>
      [...new Set(response.series.flatMap(({ points }) => points.map(([ms]) => ms)))].sort(
        (a, b) => a - b,
      ),
    [response],
  );
  return (
    <details class="all-values" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show all values as a table</summary>
      {isOpen && (
        <div class="value-table" role="group" aria-label="All values" tabIndex={0}>
          <table>
            <thead>
              <tr>
                <th scope="col">Step start</th>
                {response.series.map((one) => (
                  <th scope="col" class="number" key={seriesName(one)}>
                    <Name text={seriesName(one)} />
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((ms) => (
                <tr key={ms}>
                  <th scope="row">
                    <time dateTime={new Date(ms).toISOString()}>{formatTime(ms)}</time>
                  </th>
                  {response.series.map((one) => {
                    const value = valueAt(one.points, ms, 1);
                    return (
                      <td class="number" key={seriesName(one)} data-value={value ?? undefined}>
                        {value === null ? "" : formatExact(value, response.unit)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

/** Marking with keys: where the range starts and the step of the cursor. */
function useSteps({
  window,
  response,
  onPart,
  selection,
}: Pick<MetricsProps, "window" | "response" | "onPart" | "selection">) {
  const [step, setStep] = useState<number | null>(null);
  const [anchor, setAnchor] = useState<number | null>(null);
  const first = Math.floor(window.from / response.step_ms) * response.step_ms;
  const count = Math.max(1, Math.ceil((window.to - first) / response.step_ms));
  const msOf = (at: number) => Math.max(window.from, first + at * response.step_ms);
  const at = Math.min(step ?? count - 1, count - 1);
  const marked: Span | null =
    anchor === null
      ? null
      : {
          from: msOf(Math.min(anchor, at)),
          to: Math.min(window.to, msOf(Math.max(anchor, at) + 1)),
        };
  const moves: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    PageUp: -10,
    PageDown: 10,
    Home: -count,
    End: count,
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moves[event.key];
    if (move) {
      setAnchor(event.shiftKey ? (anchor ?? at) : null);
      setStep(step === null && !event.shiftKey ? at : Math.min(count - 1, Math.max(0, at + move)));
    } else if (event.key === "Enter" && marked) {
      onPart(marked);
      setAnchor(null);
    } else if (event.key === "Escape" && (marked || selection.part)) {
      if (!marked) onPart(null);
      setAnchor(null);
    } else return;
    event.preventDefault();
  };
  return {
    at,
    begin: msOf(at),
    ms: step === null ? null : msOf(at),
    count,
    marked,
    press,
    leave: () => setStep(null),
  };
}

interface PartLineProps extends Pick<MetricsProps, "selection" | "of" | "onZoom" | "onPart"> {
  marked: Span | null;
}

/** The selected range with its actions, or how to select one. */
function PartLine({ selection, of, onZoom, onPart, marked }: PartLineProps) {
  return (
    <p class="part-line" role="status">
      {selection.part ? (
        <>
          <span>
            Showing <strong>{formatSpan(selection.part)}</strong> (
            {formatLength(selection.part.to - selection.part.from)})
          </span>
          <Button look="quiet" onClick={onZoom}>
            Zoom to this range
          </Button>
          <Button look="quiet" onClick={() => onPart(null)}>
            Clear selection
          </Button>
        </>
      ) : (
        <span>
          {marked
            ? `Selected ${formatSpan(marked)}: press Enter to show it`
            : "Drag across the graph to select a time range"}
        </span>
      )}
      {of && <strong class="of-stacks">{of}</strong>}
    </p>
  );
}

export function Metrics(props: MetricsProps) {
  const { response, isCurrent, window, selection, of, onPart, onChoose, onZoom } = props;
  const failed = selection.part && props.part.problem;
  const palette = usePalette();
  const [pointed, setPointed] = useState<number | null>(null);
  const steps = useSteps(props);
  const data = useMemo(() => dataOf(response), [response]);
  const looks = useMemo(
    () =>
      response.series.map((one, i) =>
        one.other_count ? otherLook(palette.background) : lineLook(i, palette.background),
      ),
    [response, palette],
  );
  const colours = useMemo(() => {
    const style = getComputedStyle(document.documentElement);
    return { text: style.getPropertyValue("--muted"), line: style.getPropertyValue("--line") };
  }, [palette]);
  const format = useCallback(
    (value: number) => formatMetric(value, response.unit),
    [response.unit],
  );
  const cursor = steps.ms ?? pointed;
  const values = response.series.slice(0, 5).map((one) => {
    const value = valueAt(one.points, steps.begin, response.step_ms);
    return `${seriesName(one)} ${value === null ? "no data" : formatMetric(value, response.unit)}`;
  });
  const time = formatTime(steps.begin, window.from);
  const listed = selection.part && props.part.isCurrent ? props.part.value! : response;
  const others = listed.series.at(-1)?.other_count ?? 0;
  const marked = steps.marked ?? selection.part;
  return (
    <div class={`metrics ${isCurrent ? "" : "stale"}`}>
      <div
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={
          "Values over time. Arrow keys move between steps, Shift with an arrow key " +
          "selects a range, Enter shows only that range, Escape clears the selection."
        }
        aria-valuemin={0}
        aria-valuemax={steps.count - 1}
        aria-valuenow={steps.at}
        aria-valuetext={
          `${time}: ${values.join(", ")}` +
          (steps.marked ? `; selected ${formatSpan(steps.marked)}` : "")
        }
        onKeyDown={steps.press}
        onBlur={steps.leave}
      >
        <plot.Component
          {...{ data, window, looks, colours, cursor, onPart }}
          part={marked}
          format={format}
          chosen={response.series.findIndex(({ labels }) => isSame(labels, selection.only))}
          onCursor={setPointed}
        />
      </div>
      <PartLine {...{ selection, of, onZoom, onPart }} marked={steps.marked} />
      {response.notes?.map((note) => (
        <p class="hint range-note" key={note}>
          {note}
        </p>
      ))}
      {failed && <ErrorLine error={failed} />}
      <SeriesTable {...{ response, looks, selection, cursor, onChoose }} part={props.part} />
      {others > 0 && (
        <p class="hint">
          The {listed.series.length - 1} largest series are shown; the other {others} are summed in
          one line. To see them, group by other labels or narrow the query.
        </p>
      )}
      <AllValues response={response} />
    </div>
  );
}
