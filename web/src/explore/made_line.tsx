/* made_line: how the answer was made: by which rule, of what, in which time; and what of it is missing. */
import type { Made } from "../api/explore_api.ts";
import { formatBytes, formatCount, formatValue } from "../model/units.ts";
import { Icon } from "../ui/icons.tsx";

const rules: Record<string, string> = {
  sum: "Sum",
  mean: "Average over time",
  difference: "Difference of snapshots",
};
const counted = (count: number, word: string) =>
  `${formatCount(count)} ${count === 1 || word === "series" ? word : word + "s"}`;

export function MadeLine({ made }: { made: Made | null }) {
  const { profiles, series, blocks, rows, bytes, us } = made?.statistics ?? {};
  return (
    <div class="made">
      <p class="hint made-facts">
        {made?.rule &&
          `${rules[made.rule] ?? made.rule} of ${counted(profiles, "profile")} of ${counted(series, "series")}; read ${counted(rows, "row")} in ${counted(blocks, "block")}, ${formatBytes(bytes)}, in ${formatValue(us, "us")}`}
      </p>
      <MissingLine warning={made?.warning ?? ""} />
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
