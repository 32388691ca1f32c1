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

/**
 * The state of a share that cannot be read, as the end of "The profile before is"; "" if unknown.
 */
function stateOf({ status }: Problem): string {
  if (status === 410) return "gone";
  return status === 404 ? "not found" : status === 403 ? "not allowed" : "";
}

/** A heading that names the side, or both; undefined if the problem's own heading is clearer. */
function headingOf(sides: Pair<Sharing>): string | undefined {
  const states = sides.map(({ problem }) => problem && stateOf(problem));
  const at = states.findIndex((state) => state !== null);
  if (!states[at]) return undefined;
  return states[0] === states[1]
    ? `Both profiles are ${states[0]}`
    : `The profile ${words[at]} is ${states[at]}`;
}

export interface SideProblemProps {
  ids: Pair<string>;
  sides: Pair<Sharing>;
  /** Shown in a frame of another site, which does not ask for passwords. */
  isFramed?: boolean;
  /** Renders the link to the side that can be read. */
  linkTo: (id: string, text: string) => ComponentChildren;
}

export function SideProblem({ ids, sides, isFramed, linkTo }: SideProblemProps) {
  const broken = sides.findIndex(({ problem }) => problem);
  const { share } = sides[1 - broken];
  const actions =
    share && linkTo(share.id, `View the profile ${words[1 - broken]}: ${nameOf(share)}`);
  const view = {
    problem: sides[broken].problem!,
    onRetry: sides[broken].reload,
    heading: headingOf(sides),
    actions,
  };
  return isFramed ? <ProblemView {...view} /> : <ShareProblem id={ids[broken]} {...view} />;
}
