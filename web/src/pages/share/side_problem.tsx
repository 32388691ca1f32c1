/*
 * side_problem: shown in place of a comparison if a side could not be read: which side, and a link
 * to the other one.
 */
import type { ComponentChildren } from "preact";
import type { Problem } from "../../api/api.ts";
import { ProblemView } from "../../ui/kit.tsx";
import { nameOf, ShareProblem, type Sharing } from "./share.tsx";

type Pair<Value> = [before: Value, after: Value];
const words = ["before", "after"];

/** The state of the share, to follow the name of its side. */
function fateOf({ status }: Problem): string {
  if (status === 410) return "gone";
  return status === 404 ? "not found" : status === 403 ? "not allowed" : "";
}

/** A heading that names the side, or both; undefined if the problem's own heading says more. */
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
  /** Shown in a frame of another site, which does not ask for passwords. */
  isFramed?: boolean;
  /** Renders the link to the side that can be read. */
  way: (id: string, text: string) => ComponentChildren;
}

export function SideProblem({ ids, sides, isFramed, way }: SideProblemProps) {
  const broken = sides.findIndex(({ problem }) => problem);
  const { share } = sides[1 - broken];
  const actions = share && way(share.id, `View the profile ${words[1 - broken]}: ${nameOf(share)}`);
  const said = {
    problem: sides[broken].problem!,
    onRetry: sides[broken].reload,
    heading: headingOf(sides),
    actions,
  };
  return isFramed ? <ProblemView {...said} /> : <ShareProblem id={ids[broken]} {...said} />;
}
