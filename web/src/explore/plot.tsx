/*
 * plot: lines over time, drawn by uPlot, in a chunk of its own. Dragging marks a range of the
 * window. Keys and texts for screen readers are in metrics.tsx.
 */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import uPlotStyle from "uplot/dist/uPlot.min.css?text";
import type { LineLook, PlotData } from "../model/continuous/plot_data.ts";
import type { Span } from "../model/continuous/time_window.ts";
import { addStyle } from "../ui/later.tsx";

addStyle(uPlotStyle);

export interface PlotProps {
  data: PlotData;
  window: Span;
  /** Formats a value for the axis. A different function redraws the plot. */
  format: (value: number) => string;
  looks: readonly LineLook[];
  /** The highlighted line, or -1. */
  chosen: number;
  /** The marked range, applied or being dragged. */
  part: Span | null;
  cursor: number | null;
  colours: { text: string; line: string };
  onPart: (part: Span) => void;
  onCursor: (ms: number | null) => void;
}

/** A pointer that moves fewer pixels has clicked, not dragged. */
const minDragPx = 4;

const two = (number: number) => String(number).padStart(2, "0");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The date is written below the first time of each day. */
function timeLabels(splits: number[], stepMs: number): string[] {
  let last = new Date(Date.now()).toDateString();
  return splits.map((ms) => {
    const date = new Date(ms);
    const day = `${date.getDate()} ${months[date.getMonth()]}`;
    if (stepMs >= 86_400_000) return day;
    const time =
      `${two(date.getHours())}:${two(date.getMinutes())}` +
      (stepMs < 60_000 ? ":" + two(date.getSeconds()) : "");
    const isNew = date.toDateString() !== last;
    last = date.toDateString();
    return isNew ? `${time}\n${day}` : time;
  });
}

function makePlot(root: HTMLElement, props: PlotProps): uPlot {
  const { data, window, format, looks, chosen, colours } = props;
  const font = `11px ${getComputedStyle(root).fontFamily}`;
  const axis = {
    stroke: colours.text,
    font,
    grid: { stroke: colours.line, width: 1, dash: [2, 3] },
    ticks: { show: false },
  };
  const widest = Math.max(...data.values.flat().map((value) => format(value ?? 0).length), 4);
  return new uPlot(
    {
      width: root.clientWidth,
      height: root.clientHeight,
      ms: 1,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, y: false, points: { size: 7 } },
      scales: {
        x: { range: () => [window.from, window.to] },
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 36,
          space: 70,
          values: (_, splits, _axis, _space, step) => timeLabels(splits, step),
        },
        {
          ...axis,
          size: Math.min(96, 16 + 6.2 * widest),
          space: 32,
          values: (_, splits) => splits.map((value) => format(value)),
        },
      ],
      series: [
        {},
        ...looks.map(({ stroke, dash }, i) => ({
          stroke,
          dash,
          width: chosen === i ? 2.5 : 1.5,
          alpha: chosen < 0 || chosen === i ? 1 : 0.3,
          points: { size: 5, fill: stroke },
        })),
      ],
    },
    [data.times, ...data.values] as uPlot.AlignedData,
    root,
  );
}

function showPart(plot: uPlot, part: Span | null): void {
  const place = (ms: number) =>
    Math.min(plot.over.clientWidth, Math.max(0, plot.valToPos(ms, "x")));
  const left = part ? place(part.from) : 0;
  plot.setSelect(
    {
      left,
      width: part ? Math.max(1, place(part.to) - left) : 0,
      top: 0,
      height: part ? plot.over.clientHeight : 0,
    },
    false,
  );
}

function showCursor(plot: uPlot, ms: number | null): void {
  const top = plot.over.clientHeight / 2;
  plot.setCursor(
    ms === null ? { left: -10, top: -10 } : { left: plot.valToPos(ms, "x"), top },
    false,
  );
}

/**
 * Follows one pointer from press to release. A finger that moves vertically scrolls the page as
 * usual.
 */
function followDrags(plot: uPlot, latest: { current: PlotProps }): void {
  const { over } = plot;
  let begun: number | null = null;
  const placeOf = (event: PointerEvent) =>
    Math.min(over.clientWidth, Math.max(0, event.clientX - over.getBoundingClientRect().left));
  const msAt = (place: number) => Math.round(plot.posToVal(place, "x"));
  const spanTo = (place: number): Span => {
    const [from, to] = [begun!, place].sort((a, b) => a - b).map(msAt);
    return { from, to };
  };
  const end = () => {
    begun = null;
    showPart(plot, latest.current.part);
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    begun = placeOf(event);
    over.setPointerCapture(event.pointerId);
  });
  over.addEventListener("pointermove", (event) => {
    // The nearest time that has a value, as shown by the points on the lines.
    latest.current.onCursor(latest.current.data.times[plot.posToIdx(placeOf(event))] ?? null);
    if (begun !== null) showPart(plot, spanTo(placeOf(event)));
  });
  over.addEventListener("pointerup", (event) => {
    if (begun === null) return;
    const place = placeOf(event);
    const dragged = Math.abs(place - begun) >= minDragPx ? spanTo(place) : null;
    end();
    if (dragged) latest.current.onPart(dragged);
  });
  over.addEventListener("pointercancel", end);
  over.addEventListener("pointerleave", () => latest.current.onCursor(null));
}

export function Plot(props: PlotProps) {
  const root = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const { data, window, format, looks, chosen, colours, part, cursor } = props;
  useEffect(() => {
    const place = root.current!;
    const made = (plot.current = makePlot(place, latest.current));
    followDrags(made, latest);
    const watch = new ResizeObserver(() => {
      made.setSize({ width: place.clientWidth, height: place.clientHeight });
      showPart(made, latest.current.part);
    });
    watch.observe(place);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [data, window.from, window.to, format, looks, chosen, colours]);
  useEffect(
    () => showPart(plot.current!, part),
    [part?.from, part?.to, data, looks, chosen, window.from, window.to],
  );
  useEffect(() => showCursor(plot.current!, cursor), [cursor]);
  return <div class="plot-lines" ref={root} />;
}
