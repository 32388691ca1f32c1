/* selection_panel: one selection: query, time window and values over time. */
import type { ComponentChildren } from "preact";
import type { Selection } from "../model/continuous/explore_state.ts";
import { joinQuery, splitQuery } from "../model/continuous/selector.ts";
import { Button, ErrorLine, Loading, Select } from "../ui/kit.tsx";
import { MissingLine } from "./query_details.tsx";
import { Metrics } from "./metrics.tsx";
import { QueryBar } from "./query_bar.tsx";
import { TimeRange } from "./time_range.tsx";
import { typeLabels } from "./type_names.ts";
import type { Known } from "./use_selection.ts";

interface SelectionPanelProps {
  /** The side of a comparison; "" for a single selection. */
  side: "" | "Before" | "After";
  selection: Selection;
  known: Known;
  /** The graph is divided into lines by labels. */
  hasLines: boolean;
  /** Describes the stacks that are counted if a rule restricts them. */
  of: string;
  onChange: (patch: Partial<Selection>) => void;
  onRefresh: () => void;
  children?: ComponentChildren;
}

/** The full name of the query's type once it is known; the query may contain a part of the name. */
function chosenType({ types, range }: Known, type: string): string {
  const whole = range.isCurrent && range.value?.type;
  return whole && types.value?.some((one) => one.type === whole) ? whole : type;
}

function typeChoices({ types }: Known, type: string) {
  const known = types.value ?? [];
  const labels = typeLabels(known);
  const choices = known.map(({ type: value }, i) => ({ value, label: labels[i] }));
  if (!choices.some(({ value }) => value === type))
    choices.unshift({ value: type, label: type || "Profile type" });
  return choices;
}

export function SelectionPanel({
  side,
  selection,
  known,
  hasLines,
  of,
  onChange,
  onRefresh,
  children,
}: SelectionPanelProps) {
  const { types, range, part, window, queryError } = known;
  const failed = [types, range].find((one) => one.problem);
  const type = chosenType(known, splitQuery(selection.query).type);
  const word = side ? ` ${side.toLowerCase()}` : "";
  const onQuery = (query: string) => {
    onRefresh();
    onChange({ query, only: [] });
  };
  const zoom = () =>
    selection.part &&
    onChange({ from: String(selection.part.from), until: String(selection.part.to), part: null });
  return (
    <section class={`selection ${side.toLowerCase()}`} aria-label={side || "Selection"}>
      {side && <h2 class="side-word">{side}</h2>}
      <div class="selection-bar">
        <Select
          label={`Profile type${word}`}
          value={type}
          choices={typeChoices(known, type)}
          onChange={(chosen) =>
            onChange({ query: joinQuery(chosen, splitQuery(selection.query).matchers), only: [] })
          }
        />
        <QueryBar
          label={`Labels${word}`}
          query={selection.query}
          error={queryError}
          span={window}
          onQuery={onQuery}
        />
        <TimeRange label={`Time${word}`} span={window} {...{ selection, onChange, onRefresh }} />
        {children}
      </div>
      <div class={`metrics-place ${hasLines ? "lines" : ""}`}>
        {failed ? (
          !queryError && (
            <div class="metrics-problem">
              <ErrorLine error={failed.problem} />
              <Button onClick={failed.retry}>Try again</Button>
            </div>
          )
        ) : !range.value ? (
          <Loading label="Loading values over time" />
        ) : (
          <>
            <MissingLine warning={range.value.warning} />
            <Metrics
              response={range.value}
              isCurrent={range.isCurrent}
              part={part}
              window={window}
              selection={selection}
              of={of}
              onPart={(part) => onChange({ part })}
              onChoose={(only) => onChange({ only })}
              onZoom={zoom}
            />
          </>
        )}
      </div>
    </section>
  );
}
