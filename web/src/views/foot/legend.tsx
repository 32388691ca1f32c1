/*
 * legend: the meaning of the colours and signs of boxes, the share of the profile for each, and the
 * summary of a comparison.
 */
import { useEffect, useState } from "preact/hooks";
import {
  diffFills,
  diffSteps,
  heatFills,
  heatShares,
  type Palette,
} from "../../model/colours/colour.ts";
import { FrameFlag, hasSigns, type Flame } from "../../model/tree/flame.ts";
import type { ColourMode, FrameColours } from "../../model/colours/frame_colours.ts";
import { Fold } from "../../ui/kit.tsx";
import { formatChange, formatPercent, formatSigned } from "../../model/text/units.ts";

export const colourNames: Record<ColourMode, string> = {
  package: "package",
  binary: "binary",
  runtime: "runtime",
  value: "own value",
};

/** The maximum number of parts in the list; most of it is folded. */
const shownParts = 60;
/** Parts with less than this share of the picture and without self value are hardly visible. */
const leastShare = 0.001;
const signNames = [
  [FrameFlag.Kernel, "kernel"],
  [FrameFlag.Inlined, "inlined"],
  [FrameFlag.Interpreted, "interpreted"],
  [FrameFlag.NotSymbolised, "no symbols"],
] as const;

/**
 * Parts with one of their frames and the self value of their functions; sorted by their share of
 * the picture.
 */
export function heaviestParts(
  flame: Flame,
  colours: FrameColours,
): [string, { value: number; frame: number }][] {
  const { frame: frameOf, self, width, nodeCount } = flame;
  const own = new Float64Array(flame.frames.count);
  const painted = new Float64Array(flame.frames.count);
  for (let i = 1; i < nodeCount; i++) {
    own[frameOf[i]] += self[i];
    painted[frameOf[i]] += width[i];
  }
  const sums = new Map<string, { value: number; frame: number; area: number }>();
  const least = leastShare * width[0];
  for (let frame = 0; frame < own.length; frame++) {
    if (own[frame] === 0 && painted[frame] <= least) continue;
    const part = colours.part(frame) || `(no ${colours.mode})`;
    const sum = sums.get(part);
    if (sum) {
      sum.value += own[frame];
      sum.area += painted[frame];
    } else sums.set(part, { value: own[frame], frame, area: painted[frame] });
  }
  return [...sums].sort(([, a], [, b]) => b.area - a.area).slice(0, shownParts);
}

function Swatch({ colour }: { colour: string }) {
  return <span class="swatch" style={{ background: colour }} />;
}

function Parts({
  flame,
  colours,
  palette,
}: {
  flame: Flame;
  colours: FrameColours;
  palette: Palette;
}) {
  const [top, setTop] = useState<ReturnType<typeof heaviestParts>>([]);
  useEffect(() => {
    // Reads every name, so it runs after the picture is painted.
    const timer = setTimeout(() => setTop(heaviestParts(flame, colours)), 30);
    return () => clearTimeout(timer);
  }, [flame, colours]);
  return (
    <>
      {top.map(([part, sum]) => (
        <li key={part}>
          <Swatch colour={palette.fills[colours.fill(sum.frame)]} />
          <span class="legend-name">{part}</span>{" "}
          {sum.value !== 0 && <em>{formatPercent(sum.value, flame.total)}</em>}
        </li>
      ))}
    </>
  );
}

const shareName = (share: number) => `${share * 100}%`;
const heatNames = heatShares.map((share, step) =>
  step === 0
    ? "0"
    : step === 1
      ? `below ${shareName(heatShares[2])}`
      : step === heatShares.length - 1
        ? `${shareName(share)} and more`
        : shareName(share),
);

const BelowZero = () => (
  <>
    <span class="sign negative" />
    <span class="legend-name">below zero</span>
  </>
);

function Signs({ shown, isSigned }: { shown: number; isSigned: boolean }) {
  return (
    <>
      {isSigned && (
        <li>
          <BelowZero />
        </li>
      )}
      {signNames.map(([flag, name]) =>
        shown & flag ? (
          <li key={name}>
            <span class={`sign ${name}`} />
            <span class="legend-name">{name}</span>
          </li>
        ) : null,
      )}
    </>
  );
}

function DiffColours({ palette, isSigned }: { palette: Palette; isSigned: boolean }) {
  return (
    <div
      class="legend diff-legend"
      role="img"
      aria-label={
        "Colours: blue decreased, orange increased, hatched is gone" +
        (isSigned ? " or below zero" : "")
      }
    >
      <span>gone</span>
      <span class="diff-scale">
        {diffFills(palette).map((colour, i) => (
          <i key={i} class={i === diffSteps ? "middle" : ""} style={{ background: colour }} />
        ))}
      </span>
      <span>new</span>
      {isSigned && <BelowZero />}
      <span class="legend-note">Width is the larger of before and after.</span>
    </div>
  );
}

export function Legend({
  flame,
  colours,
  palette,
}: {
  flame: Flame;
  colours: FrameColours;
  palette: Palette;
}) {
  if (flame.isDiff) return <DiffColours palette={palette} isSigned={hasSigns(flame)} />;
  const isValue = colours.mode === "value";
  return (
    <Fold label="All colours">
      <ul
        class="legend"
        aria-label={
          isValue
            ? "Colours: self share of each function"
            : `Colours: ${colours.mode}, with the self value of its functions`
        }
      >
        <Signs shown={colours.signs} isSigned={hasSigns(flame)} />
        {isValue ? (
          heatFills(palette).map((colour, step) => (
            <li key={step}>
              <Swatch colour={colour} />
              <em>{heatNames[step]}</em>
            </li>
          ))
        ) : (
          <Parts flame={flame} colours={colours} palette={palette} />
        )}
      </ul>
    </Fold>
  );
}

/** The summary of a comparison. */
export function DiffSummary({ flame, isNormalised }: { flame: Flame; isNormalised: boolean }) {
  const unit = flame.metadata.unit ?? "";
  const delta = flame.total - flame.baseTotal;
  const tone = delta > 0 ? "more" : delta < 0 ? "less" : "";
  if (isNormalised)
    return (
      <p class="verdict">
        <strong>Normalised</strong>{" "}
        <span>both sides have the same total, so only shares are compared</span>
      </p>
    );
  return (
    <p class={`verdict ${tone}`}>
      <strong>{formatChange(flame.baseTotal, flame.total)}</strong>{" "}
      <span>{formatSigned(delta, unit)} in all</span>
    </p>
  );
}
