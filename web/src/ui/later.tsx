/* later: a component of another chunk, which is asked for when it is first shown, or a little before. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { asProblem, Loading, ProblemView } from "./kit.tsx";

export interface Later<Props> {
  Component: ComponentType<Props>;
  /** Asks for the chunk now, since it will be shown soon. */
  preload: () => void;
}

export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): Later<Props> {
  let loaded: ComponentType<Props> | null = null;
  let loading: Promise<ComponentType<Props>> | null = null;
  const get = () => {
    loading ??= load().then(
      (made) => (loaded = made),
      (error) => {
        loading = null; // the network may be back at the next try
        throw error;
      },
    );
    return loading;
  };
  function Component(props: Props) {
    const [Made, setMade] = useState(() => loaded);
    const [problem, setProblem] = useState<unknown>(null);
    useEffect(() => {
      if (Made || problem) return;
      get().then((made) => setMade(() => made), setProblem);
    }, [problem]);
    if (problem) return <ProblemView problem={asProblem(problem)} onRetry={() => setProblem(null)} />;
    return Made ? <Made {...props} /> : <Loading />;
  }
  return { Component, preload: () => void get().catch(() => undefined) };
}
