/* other: what a kind of problem means (/problems/<name>), and paths that lead nowhere. */
import { Problem, type Session } from "../api/api.ts";
import { ProblemView, useTitle } from "../ui/kit.tsx";
import { Shell } from "../ui/shell.tsx";

const explanations: Record<string, string> = {
  invalid: "A parameter, its value or the file is not what it should be. The answer says which.",
  unsupported: "The format is not one that Perfolio reads: pprof, folded stacks, perf script, Chrome .cpuprofile and speedscope JSON.",
  too_large: "The upload, what it unpacks to or its samples are beyond a limit of this server. Upload in parts if only the request was too long; else ask the operator.",
  not_found: "There is no such page or profile, or only for members of its team who are signed in.",
  gone: "The profile was deleted or has expired. It cannot be restored.",
  damaged: "The stored data exists, but its size or checksum is wrong, so it is not served. The operator can restore it from a backup.",
  lost: "The server has a record of this, but its stored data is missing although it was not deleted. The operator can restore it from a backup.",
  conflict: "It exists already, or somebody changed it meanwhile. Load it again and repeat.",
  unauthenticated: "Sign in, send a token, or give the profile’s password. What was sent was missing, wrong or has expired.",
  forbidden: "You are known, but your role or token does not allow this.",
  rate_limited: "That was too often. The header Retry-After says when to go on.",
  quota: "Your team has used up what it may store. Delete profiles, or ask the operator for more.",
  busy: "The server is overloaded. Try again after the time in Retry-After.",
  timeout: "It took longer than the server allows. Narrow the request, or try again.",
};

/** Of a path that leads nowhere. */
function problemOf(path: string): Problem {
  try {
    decodeURIComponent(path);
    return new Problem(404, "not_found", "Not found", "", "", null);
  } catch {
    return new Problem(400, "invalid", "This address cannot be read", "It was cut or changed on its way: a percent sign begins no letter. Ask for it again.", "", null);
  }
}

export function OtherPage({ session }: { session: Session | null }) {
  const kind = /^\/problems\/([\w-]+)$/.exec(location.pathname)?.[1].replaceAll("-", "_");
  const text = kind ? explanations[kind] : undefined;
  const problem = problemOf(location.pathname);
  useTitle(kind && text ? kind.replaceAll("_", " ") : problem.title);
  if (!kind || !text)
    return (
      <Shell session={session}>
        <ProblemView problem={problem} />
      </Shell>
    );
  return (
    <Shell session={session}>
      <section class="card narrow">
        <p class="problem-status">Problem</p>
        <h1 class="first-up">{kind.replaceAll("_", " ")}</h1>
        <p>{text}</p>
      </section>
    </Shell>
  );
}
