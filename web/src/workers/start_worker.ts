/* start_worker: starts a worker script of this site under Trusted Types. */

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}

/** name: the meta element with the worker's address; no other address may become a script. */
export function startWorker(name: `perfolio-${"" | "local-" | "graph-"}worker`): Worker {
  const address = document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
  const trusted = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = trusted?.createPolicy(name, {
    createScriptURL: (url) => {
      if (url !== address) throw new TypeError("not the worker's address");
      return url;
    },
  });
  return new Worker(policy ? policy.createScriptURL(address) : address, { type: "module" });
}
