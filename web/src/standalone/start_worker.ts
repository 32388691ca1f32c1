/* start_worker: for the viewer in a file: the workers' texts stand in the page, and the policy allows what is made of them. */

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}

/** The element's id is the name without "perfolio-". */
export function startWorker(name: "perfolio-worker" | "perfolio-graph-worker"): Worker {
  const text = document.getElementById(name.slice("perfolio-".length))?.textContent ?? "";
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy(name, { createScriptURL: () => address });
  return new Worker(policy ? policy.createScriptURL(address) : address);
}
