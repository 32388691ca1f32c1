/*
 * use_part: what several people may change (team_api.ts), for all sections of the settings that show it: loaded once, and
 * loaded anew after each change. A change names the version that is shown; where it is refused since somebody else was
 * faster, what they changed is told, and what was typed stays. Changes that are asked for meanwhile wait for their turn,
 * unless the one before them is refused: whoever asked for them has not seen why.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/api.ts";
import { changesOf } from "../model/settings_changes.ts";
import { readPart, type Part } from "../api/team_api.ts";
import { asProblem, say } from "../ui/kit.tsx";
import { Icon } from "../ui/icons.tsx";
import { tellChanged } from "./changed.ts";

class Held<T> {
  value: T | null = null;
  version = "";
  turn: Promise<unknown> = Promise.resolve(); // one change after the other, so that each goes by what the last one left
  refusals = 0;
  first: Promise<void> | null = null;
  readonly watchers = new Set<() => void>();

  constructor(private readonly part: Part<T>) {}

  async load(): Promise<void> {
    ({ value: this.value, version: this.version } = await readPart(this.part));
    for (const redraw of this.watchers) redraw();
  }

  /** Loads it anew and tells what others changed. */
  async catchUp(): Promise<string[]> {
    const before = this.value;
    await this.load();
    return before && this.value
      ? changesOf(this.part.tell(before), this.part.tell(this.value))
      : [];
  }
}

const held = new Map<string, Held<unknown>>();

function heldOf<T>(part: Part<T>): Held<T> {
  if (!held.has(part.path)) held.set(part.path, new Held(part) as Held<unknown>);
  return held.get(part.path) as Held<T>;
}

/** Why something was not done, and what others changed meanwhile. */
export interface Refusal {
  problem: Problem;
  changes: string[];
}

/** The thing is gone, is there already, or is another by now: what the page shows is old. */
const isOld = ({ status }: Problem) => status === 404 || status === 409 || status === 412;

/** Asks for a change of what there is by then; null where it needs none. */
type Change<T, R> = (version: string, value: T | null) => Promise<R> | null;

export function usePart<T>(part: Part<T>) {
  const own = heldOf(part);
  const [, setDrawn] = useState(0);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const refuse = (caught: unknown, changes: string[] = []) =>
    setRefusal({ problem: asProblem(caught), changes });
  useEffect(() => {
    const redraw = () => setDrawn((count) => count + 1);
    own.watchers.add(redraw);
    own.first ??= own.load();
    // It may have come between this drawing and now, when nobody told this section yet.
    own.first.then(redraw, (caught) => {
      own.first = null; // whoever comes next tries again
      refuse(caught);
    });
    return () => void own.watchers.delete(redraw);
  }, []);
  const change = async <R,>(
    ask: Change<T, R>,
    done: string | ((answer: R) => string),
  ): Promise<{ answer: R } | undefined> => {
    setRefusal(null);
    try {
      const asked = ask(own.version, own.value);
      if (!asked) return undefined;
      const answer = await asked;
      say(typeof done === "string" ? done : done(answer));
      tellChanged();
      await own.load().catch(refuse);
      return { answer };
    } catch (caught) {
      own.refusals++;
      const problem = asProblem(caught);
      refuse(problem, isOld(problem) ? await own.catchUp().catch(() => []) : []);
      return undefined;
    }
  };
  /** Once those before it are done. What the server answered; undefined when it refused, which is then told. */
  const attempt = <R,>(
    ask: Change<T, R>,
    done: string | ((answer: R) => string),
  ): Promise<{ answer: R } | undefined> => {
    const seen = own.refusals;
    const turn = own.turn.then(() => (seen === own.refusals ? change(ask, done) : undefined));
    own.turn = turn;
    return turn;
  };
  /** Of a form: sent once more while it is on its way, it is the same wish and not another. */
  const [isSending, setSending] = useState(false);
  const sending = useRef(false);
  const submit: typeof attempt = async (ask, done) => {
    if (sending.current) return undefined;
    setSending((sending.current = true));
    try {
      return await attempt(ask, done);
    } finally {
      setSending((sending.current = false));
    }
  };
  return { value: own.value, refusal, attempt, submit, isSending };
}

/** Heard when it appears, since the place is always there. */
export function RefusalLine({ refusal, id }: { refusal: Refusal | null; id?: string }) {
  return (
    <div class="error-line" role="alert" id={id}>
      {refusal && (
        <>
          <Icon name="alert" />
          <div>
            {refusal.problem.message}
            {refusal.changes.length > 0 && (
              <>
                <p class="changes-head">Changed in the meantime:</p>
                <ul class="changes">
                  {refusal.changes.map((text) => (
                    <li key={text}>{text}</li>
                  ))}
                </ul>
              </>
            )}
          </div>
        </>
      )}
    </div>
  );
}
