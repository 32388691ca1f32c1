/* other: explains a kind of problem (/problems/<name>), and reports unknown paths. */
import { Problem, type Session } from "../api/api.ts";
import { formatList } from "../model/text/upload_formats.ts";
import { ProblemView, useTitle } from "../ui/kit.tsx";
import { Shell } from "../ui/shell.tsx";

const explanations: Record<string, string> = {
  invalid: "A parameter, its value or the file is invalid. The response names the cause.",
  unsupported: `Perfolio cannot read this format. Supported formats: ${formatList}.`,
  too_large:
    "The upload, its decompressed size or its number of samples exceeds a limit of this " +
    "server. If only the request was too long, upload in parts. Otherwise ask the operator.",
  not_found:
    "This page or profile does not exist, or only signed-in members of its team can see it.",
  gone: "The profile was deleted or has expired. It cannot be restored.",
  damaged:
    "The stored data exists, but its size or checksum is wrong, so it is not served. The " +
    "operator can restore it from a backup.",
  lost:
    "The server’s database contains this object, but its data is missing although it was not " +
    "deleted. The operator can restore it from a backup.",
  conflict:
    "It already exists, or someone changed it in the meantime. Reload it and repeat the change.",
  unauthenticated:
    "The credentials were missing, wrong or expired. Sign in, send a token, or enter the " +
    "profile’s password.",
  forbidden: "You are authenticated, but your role or token does not allow this.",
  rate_limited: "Too many requests. Try again after the time in Retry-After.",
  quota:
    "Your team has used up its storage quota. Delete profiles, or ask the operator for more " +
    "storage.",
  busy: "The server is overloaded. Try again after the time in Retry-After.",
  timeout: "The request took longer than the server allows. Narrow the request, or try again.",
};

/** The problem for an unknown path. */
function problemOf(path: string): Problem {
  try {
    decodeURIComponent(path);
    return new Problem(404, "not_found", "Not found", "", "", null);
  } catch {
    return new Problem(
      400,
      "invalid",
      "This address cannot be read",
      "It contains an invalid percent escape. Ask for the link again.",
      "",
      null,
    );
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
