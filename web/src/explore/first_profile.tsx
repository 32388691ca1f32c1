/* first_profile: what stands in place of a graph where there is nothing to draw: how profiles come here, or where to look. */
import type { Session } from "../api.ts";
import { hasProfiles } from "../explore_api.ts";
import { commandsFor, Trust } from "../pages/commands.tsx";
import { Button, CopyField, Empty, Loading, ProblemView } from "../ui/kit.tsx";
import { useLoaded } from "./use_selection.ts";

function HowToSend({ session }: { session: Session }) {
  const commands = commandsFor(session, location.origin);
  return (
    <Empty title="No profile came in yet">
      <p>Targets send theirs all the time; here they are merged, drawn over time and compared. A token of the scope ingest is made in the <a href="/settings">settings</a>.</p>
      {commands.trust && <Trust line={commands.trust} />}
      <p>One profile, by hand:</p>
      <CopyField what="Command" text={commands.perfolio("push --series service_name=api cpu.pb.gz")} />
      <p>The same without the program:</p>
      <CopyField what="Command" text={commands.curl(`--data-binary @cpu.pb.gz '${location.origin}/api/v1/profiles?label=service_name%3Dapi'`)} />
      <p>All the time: agents of OpenTelemetry send to <code>{location.origin}/v1development/profiles</code>, those of Pyroscope to <code>{location.origin}</code>.</p>
    </Empty>
  );
}

interface FirstProfileProps {
  session: Session;
  nowMs: number;
  onLookBack: () => void;
}

export function FirstProfile({ session, nowMs, onLookBack }: FirstProfileProps) {
  const any = useLoaded(String(nowMs), (signal) => hasProfiles(nowMs, signal));
  if (any.problem) return <ProblemView problem={any.problem} onRetry={any.retry} />;
  if (any.value === null) return <Loading label="Looking for profiles" />;
  if (!any.value) return <HowToSend session={session} />;
  return (
    <Empty title="No profiles in this time">
      <p>There are some at other times.</p>
      <Button look="primary" onClick={onLookBack}>Look at the last 30 days</Button>
    </Empty>
  );
}
