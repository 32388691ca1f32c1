/*
 * query_details: how the result was computed: aggregation rule, input, time taken, and what is
 * missing.
 */
import type { QueryDetails } from "../api/explore_api.ts";
import { formatBytes, formatCount, formatValue } from "../model/text/units.ts";
import { Icon } from "../ui/icons.tsx";

const aggregations: Record<string, string> = {
  sum: "Sum",
  mean: "Average over time",
  difference: "Counter delta",
};
const counted = (count: number, word: string) =>
  `${formatCount(count)} ${count === 1 || word === "series" ? word : word + "s"}`;

export function QueryDetailsLine({ details }: { details: QueryDetails | null }) {
  const { profiles, series, blocks, rows, bytes, us } = details?.statistics ?? {};
  const aggregation = details?.aggregation;
  return (
    <div class="made">
      <p class="hint made-facts">
        {aggregation &&
          `${aggregations[aggregation] ?? aggregation} of ${counted(profiles, "profile")} of ` +
            `${counted(series, "series")}; read ${counted(rows, "row")} in ` +
            `${counted(blocks, "block")}, ${formatBytes(bytes)}, in ${formatValue(us, "us")}`}
      </p>
      <MissingLine warning={details?.warning ?? ""} />
    </div>
  );
}

export function MissingLine({ warning }: { warning: string }) {
  if (!warning) return null;
  return (
    <p class="warning" role="status">
      <Icon name="alert" />
      <span>Incomplete result: {warning}</span>
    </p>
  );
}
