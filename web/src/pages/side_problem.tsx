/* side_problem: what is shown in place of a comparison of which a side could not be read: which one, and the way to the other. */
import type { ComponentChildren } from "preact";
import type { Problem } from "../api/api.ts";
import { ProblemView } from "../ui/kit.tsx";
import { nameOf, ShareProblem, type Sharing } from "./share.tsx";

type Pair<Value> = [before: Value, after: Value];
const words = ["before", "after"];

/** What became of it, where its side is to be named. */
function fateOf({ status }: Problem): string {
  if (status === 410) return "gone";
  return status === 404 ? "not found" : status === 403 ? "not allowed" : "";
}

/** A heading that names the side, or both; undefined where the problem's own says more. */
function headingOf(sides: Pair<Sharing>): string | undefined {
  const fates = sides.map(({ problem }) => problem && fateOf(problem));
  const at = fates.findIndex((fate) => fate !== null);
  if (!fates[at]) return undefined;
  return fates[0] === fates[1]
    ? `Both profiles are ${fates[0]}`
    : `The profile ${words[at]} is ${fates[at]}`;
}

export interface SideProblemProps {
  ids: Pair<string>;
  sides: Pair<Sharing>;
  /** In a frame of another site, where nothing is asked for. */
  isFramed?: boolean;
  /** What leads to the living one. */
  way: (id: string, text: string) => ComponentChildren;
}

export function SideProblem({ ids, sides, isFramed, way }: SideProblemProps) {
  const broken = sides.findIndex(({ problem }) => problem);
  const { share } = sides[1 - broken];
  const ways = share && way(share.id, `View the profile ${words[1 - broken]}: ${nameOf(share)}`);
  const said = {
    problem: sides[broken].problem!,
    onRetry: sides[broken].reload,
    heading: headingOf(sides),
    ways,
  };
  return isFramed ? <ProblemView {...said} /> : <ShareProblem id={ids[broken]} {...said} />;
}
