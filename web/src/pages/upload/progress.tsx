/* progress: the progress, rate and remaining time of an upload. */
import { useEffect, useRef } from "preact/hooks";
import { formatBytes, formatValue } from "../../model/text/units.ts";
import { Button } from "../../ui/kit.tsx";
import type { Progress } from "./sending.ts";

/** The time over which the rate is averaged. */
const rateMs = 10_000;
/** A rate over a shorter time is not shown, because it varies too much. */
const leastRateMs = 500;

/** Bytes per second; 0 until it is known. */
function useRate({ sent, label }: Progress): number {
  const seen = useRef<{ label: string; marks: { at: number; sent: number }[] }>({
    label,
    marks: [],
  });
  if (seen.current.label !== label) seen.current = { label, marks: [] };
  const { marks } = seen.current;
  const now = performance.now();
  // The first mark is where the upload started or continued.
  if (marks.length === 0 || marks[marks.length - 1].sent !== sent) marks.push({ at: now, sent });
  while (marks.length > 2 && marks[0].at < now - rateMs) marks.shift();
  const [first, last] = [marks[0], marks[marks.length - 1]];
  return last.at - first.at < leastRateMs
    ? 0
    : ((last.sent - first.sent) / (last.at - first.at)) * 1000;
}

function progressText({ sent, total, waiting }: Progress, rate: number): string {
  if (waiting) return waiting;
  if (sent >= total) return "reading the file…";
  const done = `${formatBytes(sent)} of ${formatBytes(total)}`;
  return rate > 0
    ? `${done} · ${formatBytes(rate)}/s · ` +
        `${formatValue(Math.ceil((total - sent) / rate), "s")} left`
    : done;
}

export function ProgressBar({
  progress,
  isCancelled,
  onCancel,
}: {
  progress: Progress;
  isCancelled: boolean;
  onCancel: () => void;
}) {
  const isSent = progress.sent >= progress.total;
  const rate = useRate(progress);
  const cancel = useRef<HTMLDivElement>(null);
  useEffect(() => cancel.current?.querySelector("button")?.focus(), []);
  return (
    <div class="progress" ref={cancel}>
      <p>
        <span class="file-name">{progress.label}</span>
        <em>{isCancelled ? "cancelling…" : progressText(progress, rate)}</em>
      </p>
      <progress
        max={progress.total || 1}
        value={isSent ? undefined : progress.sent}
        aria-label="Upload"
      />
      <Button look="quiet" onClick={onCancel}>
        Cancel
      </Button>
    </div>
  );
}
