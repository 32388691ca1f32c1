/*
 * start_worker: replaces workers/start_worker.ts in an exported page: starts a worker from a text
 * in the page, which the policy allows as a blob.
 */

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}

/** The id of the element is the name without "perfolio-". */
export function startWorker(name: "perfolio-worker" | "perfolio-graph-worker"): Worker {
  const text = document.getElementById(name.slice("perfolio-".length))?.textContent ?? "";
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy(name, { createScriptURL: () => address });
  return new Worker(policy ? policy.createScriptURL(address) : address);
}
