/* start_worker: for the viewer in a file: the worker's text stands in the page, and the policy names it. */

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): string };
}

export function startWorker(): Worker {
  const text = document.getElementById("worker")?.textContent ?? "";
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy("perfolio-worker", { createScriptURL: () => address });
  return new Worker(policy ? policy.createScriptURL(address) : address);
}
