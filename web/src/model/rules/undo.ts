/*
 * undo: undo and redo of rules and label filters, which also change with the address bar's history.
 *
 * A change made here is pushed. After a change from elsewhere (back, forward, a link within the
 * page), a step to the previous or next known filters counts as an undo or a redo. If the history
 * of the filters is unknown, as after a reload, undo removes the last filter.
 */
import { formatChain, type Rule } from "./chain.ts";

export interface Filters {
  rules: readonly Rule[];
  labels: readonly string[];
}

const isSame = (a: Filters | undefined, b: Filters) => a !== undefined && keyOf(a) === keyOf(b);

export const keyOf = ({ rules, labels }: Filters): string =>
  JSON.stringify([formatChain(rules), ...labels]);

function withoutLast({ rules, labels }: Filters): Filters | undefined {
  if (rules.length > 0) return { rules: rules.slice(0, -1), labels };
  return labels.length > 0 ? { rules, labels: labels.slice(0, -1) } : undefined;
}

export class Undo {
  private past: Filters[] = [];
  private future: Filters[] = [];
  constructor(private now: Filters) {}

  push(next: Filters): void {
    this.past.push(this.now);
    this.future = [];
    this.now = next;
  }
  follow(next: Filters): void {
    if (isSame(this.now, next)) return;
    if (isSame(this.past.at(-1), next)) this.undo();
    else if (isSame(this.future.at(-1), next)) this.redo();
    else this.push(next);
  }
  /** The filters to return to; undefined if there are none. */
  undo(): Filters | undefined {
    const to = this.past.pop() ?? withoutLast(this.now);
    if (!to) return undefined;
    this.future.push(this.now);
    return (this.now = to);
  }
  redo(): Filters | undefined {
    const to = this.future.pop();
    if (!to) return undefined;
    this.past.push(this.now);
    return (this.now = to);
  }
}
