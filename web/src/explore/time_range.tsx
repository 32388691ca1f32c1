/* time_range: chooses the time window: up to now, which "Refresh" moves, or between two times. */
import { useState } from "preact/hooks";
import type { Selection } from "../model/continuous/explore_state.ts";
import {
  formatLength,
  toLocal,
  windowOfLocal,
  type Span,
} from "../model/continuous/time_window.ts";
import { Button, Dialog, ErrorLine, Field, IconButton, Select } from "../ui/kit.tsx";
import { Problem } from "../api/api.ts";

const presets: [string, string][] = [
  ["now-15m", "Last 15 minutes"],
  ["now-1h", "Last hour"],
  ["now-6h", "Last 6 hours"],
  ["now-24h", "Last 24 hours"],
  ["now-7d", "Last 7 days"],
  ["now-30d", "Last 30 days"],
];

function TimeRangeDialog({
  span,
  onSpan,
  onClose,
}: {
  span: Span;
  onSpan: (span: Span) => void;
  onClose: () => void;
}) {
  const [from, setFrom] = useState(toLocal(span.from));
  const [to, setTo] = useState(toLocal(span.to));
  const [error, setError] = useState<Problem | null>(null);
  const send = (event: Event) => {
    event.preventDefault();
    const chosen = windowOfLocal(from, to, span);
    if (!chosen)
      return setError(new Problem(0, "invalid", "", "The start must be before the end.", "", null));
    onSpan(chosen);
    onClose();
  };
  return (
    <Dialog title="Custom range" onClose={onClose}>
      <form onSubmit={send}>
        <div class="field-row">
          <Field label="From">
            {(id) => (
              <input
                id={id}
                type="datetime-local"
                step={1}
                required
                value={from}
                onInput={(event) => setFrom(event.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Until">
            {(id) => (
              <input
                id={id}
                type="datetime-local"
                step={1}
                required
                value={to}
                onInput={(event) => setTo(event.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <p class="hint">Times are in this browser’s time zone.</p>
        <ErrorLine error={error} />
        <div class="actions">
          <Button look="primary" type="submit">
            Apply
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface TimeRangeProps {
  selection: Selection;
  span: Span;
  label: string;
  onChange: (patch: Partial<Selection>) => void;
  onRefresh: () => void;
}

export function TimeRange({ selection, span, label, onChange, onRefresh }: TimeRangeProps) {
  const [isChoosing, setChoosing] = useState(false);
  const preset =
    selection.until === "now" && presets.some(([from]) => from === selection.from)
      ? selection.from
      : "";
  const choices = presets.map(([value, label]) => ({ value, label }));
  if (!preset)
    choices.unshift({
      value: "",
      label:
        formatLength(span.to - span.from) + (selection.until === "now" ? " until now" : ", fixed"),
    });
  const choose = (value: string) => {
    if (value === "fixed") setChoosing(true);
    else if (value) onChange({ from: value, until: "now", part: null });
  };
  const setSpan = ({ from, to }: Span) =>
    onChange({ from: String(from), until: String(to), part: null });
  return (
    <span class="time-range">
      <Select
        key={preset + isChoosing}
        label={label}
        value={preset}
        choices={[...choices, { value: "fixed", label: "Custom range…" }]}
        onChange={choose}
      />
      <IconButton icon="refresh" label="Refresh" onClick={onRefresh} />
      {isChoosing && (
        <TimeRangeDialog span={span} onSpan={setSpan} onClose={() => setChoosing(false)} />
      )}
    </span>
  );
}
