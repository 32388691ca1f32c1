/* how_to_send: how a team's first continuous profile comes here, as lines to copy. */
import type { Session } from "../api.ts";
import { CopyField, Empty } from "../ui/kit.tsx";
import { commandsFor, Trust } from "./commands.tsx";

export function HowToSend({ session, text }: { session: Session; text: string }) {
  const commands = commandsFor(session, location.origin);
  return (
    <Empty title="No profile came in yet">
      <p>{text} A token of the scope ingest is made in the <a href="/settings">settings</a>.</p>
      {commands.trust && <Trust line={commands.trust} />}
      <p>One profile, by hand:</p>
      <CopyField what="Command" text={commands.perfolio("push --series service_name=api cpu.pb.gz")} />
      <p>The same without the program:</p>
      <CopyField what="Command" text={commands.curl(`--data-binary @cpu.pb.gz '${location.origin}/api/v1/profiles?label=service_name%3Dapi'`)} />
      <p>All the time: agents of OpenTelemetry send to <code>{location.origin}/v1development/profiles</code>, those of Pyroscope to <code>{location.origin}</code>.</p>
    </Empty>
  );
}
