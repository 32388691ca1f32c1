/* later: a component of another chunk, which is asked for when it is first shown, or a little before. */
import type { ComponentType, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { lostScript, type Problem } from "../api/api.ts";
import { Loading, ProblemView } from "./kit.tsx";

export interface Later<Props> {
  Component: ComponentType<Props>;
  /** Asks for the chunk now, since it will be shown soon. */
  preload: () => void;
}

/** around: what stands around the component's place until it is there. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  around: (content: VNode, props: Props) => VNode = (content) => content,
): Later<Props> {
  let loaded: ComponentType<Props> | null = null;
  let loading: Promise<ComponentType<Props>> | null = null;
  const get = () => {
    loading ??= load().then(
      (made) => (loaded = made),
      async () => {
        loading = null; // the network may be back at the next try
        throw await lostScript();
      },
    );
    return loading;
  };
  function Component(props: Props) {
    const [Made, setMade] = useState(() => loaded);
    const [problem, setProblem] = useState<Problem | null>(null);
    useEffect(() => {
      if (Made || problem) return;
      get().then((made) => setMade(() => made), setProblem);
    }, [problem]);
    if (Made) return <Made {...props} />;
    return around(
      problem ? <ProblemView problem={problem} onRetry={() => setProblem(null)} /> : <Loading />,
      props,
    );
  }
  return { Component, preload: () => void get().catch(() => undefined) };
}
