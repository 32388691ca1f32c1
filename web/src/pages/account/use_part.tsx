/*
 * use_part: a part of the settings that several people may change (team_api.ts), shared by all
 * sections that show it. It is loaded once and again after each change. A change contains the
 * version that is shown. If it is refused because someone else changed the part, the other changes
 * are listed, and the typed text stays. Changes that are requested while one is being sent wait for
 * its end. If it is refused, they are discarded, because the user requested them without seeing the
 * changes of others.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/api.ts";
import { changesOf } from "../../model/account/settings_changes.ts";
import { readPart, type Part } from "../../api/team_api.ts";
import { asProblem, showMessage } from "../../ui/kit.tsx";
import { Icon } from "../../ui/icons.tsx";

class PartStore<T> {
  value: T | null = null;
  version = "";
  // changes run one after the other, so that each sees the result of the previous one
  lastChange: Promise<unknown> = Promise.resolve();
  /** Counts refused changes, so that changes requested before one can be discarded after it. */
  refusals = 0;
  /** The first load; null before it and after it failed. */
  first: Promise<void> | null = null;
  readonly watchers = new Set<() => void>();

  constructor(private readonly part: Part<T>) {}

  async load(): Promise<void> {
    ({ value: this.value, version: this.version } = await readPart(this.part));
    for (const redraw of this.watchers) redraw();
  }

  /** Loads the part again and describes what differs from the value shown before. */
  async catchUp(): Promise<string[]> {
    const before = this.value;
    await this.load();
    return before && this.value
      ? changesOf(this.part.entriesOf(before), this.part.entriesOf(this.value))
      : [];
  }
}

const stores = new Map<string, PartStore<unknown>>();

function storeOf<T>(part: Part<T>): PartStore<T> {
  if (!stores.has(part.path)) stores.set(part.path, new PartStore(part) as PartStore<unknown>);
  return stores.get(part.path) as PartStore<T>;
}

/** The reason why a change was refused, and the changes of others meanwhile. */
export interface Refusal {
  problem: Problem;
  changes: string[];
}

/** The object is gone, exists already, or has changed: the page shows an old version. */
const isOld = ({ status }: Problem) => status === 404 || status === 409 || status === 412;

/** Requests a change of the current value; null if none is needed. */
type Change<T, R> = (version: string, value: T | null) => Promise<R> | null;

/**
 * The value of a part, null until it is loaded; the last refusal; and functions that change it.
 * done: the message after a success. submit is like attempt, for a form.
 */
export function usePart<T>(part: Part<T>) {
  const own = storeOf(part);
  const [, setDrawn] = useState(0);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const refuse = (caught: unknown, changes: string[] = []) =>
    setRefusal({ problem: asProblem(caught), changes });
  useEffect(() => {
    const redraw = () => setDrawn((count) => count + 1);
    own.watchers.add(redraw);
    own.first ??= own.load();
    // The value may have arrived between this render and now, before this section was subscribed.
    own.first.then(redraw, (caught) => {
      own.first = null; // the next section tries again
      refuse(caught);
    });
    return () => void own.watchers.delete(redraw);
  }, []);
  const change = async <R,>(
    request: Change<T, R>,
    done: string | ((response: R) => string),
  ): Promise<{ response: R } | undefined> => {
    setRefusal(null);
    try {
      const promise = request(own.version, own.value);
      if (!promise) return undefined;
      const response = await promise;
      showMessage(typeof done === "string" ? done : done(response));
      notifyChanged();
      await own.load().catch(refuse);
      return { response };
    } catch (caught) {
      own.refusals++;
      const problem = asProblem(caught);
      refuse(problem, isOld(problem) ? await own.catchUp().catch(() => []) : []);
      return undefined;
    }
  };
  /**
   * Runs after the changes before it. Returns the response; undefined if the server refused, which
   * is then shown, if one of the changes before it was refused, or if no change is needed.
   */
  const attempt = <R,>(
    request: Change<T, R>,
    done: string | ((response: R) => string),
  ): Promise<{ response: R } | undefined> => {
    const seen = own.refusals;
    const result = own.lastChange.then(() =>
      seen === own.refusals ? change(request, done) : undefined,
    );
    own.lastChange = result;
    return result;
  };
  /** True while a form is sent; submit then does nothing and returns undefined. */
  const [isSending, setSending] = useState(false);
  const sending = useRef(false);
  const submit: typeof attempt = async (request, done) => {
    if (sending.current) return undefined;
    setSending((sending.current = true));
    try {
      return await attempt(request, done);
    } finally {
      setSending((sending.current = false));
    }
  };
  return { value: own.value, refusal, attempt, submit, isSending };
}

/** A screen reader reads it when it appears, because the element always exists. */
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

const watchers = new Set<() => void>();

/** To be called after each change of the settings: the audit log then loads its new entries. */
export function notifyChanged(): void {
  for (const watcher of watchers) watcher();
}

export function useChangeListener(watcher: () => void): void {
  useEffect(() => {
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
}
