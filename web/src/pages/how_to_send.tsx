/* how_to_send: commands that send a team's first continuous profile. */
import type { Session } from "../api/api.ts";
import { CopyField, Empty } from "../ui/kit.tsx";
import { commandsFor, Trust } from "./commands.tsx";

/** How to start the agent with a token that was just created. */
export function StartAgent({ session }: { session: Session }) {
  const commands = commandsFor(session, location.origin);
  return (
    <>
      {commands.trust && <Trust line={commands.trust} />}
      <p>
        Save the token in <code>/etc/perfolio/token</code> on each host and profile all of its
        processes:
      </p>
      <CopyField what="Command" text={commands.agent} />
    </>
  );
}

function NeedToken({ session }: { session: Session }) {
  const scopes = (
    <>
      scopes <code>ingest, debuginfo</code>
    </>
  );
  if (!session.scopes.includes("ingest"))
    return (
      <p>You need a token with the preset Agent ({scopes}). Ask a member of the team for one.</p>
    );
  return (
    <p>
      First <a href="/settings?token=agent#tokens">create a token</a> with the preset Agent (
      {scopes}).
    </p>
  );
}

export function HowToSend({ session, text }: { session: Session; text: string }) {
  const commands = commandsFor(session, location.origin);
  return (
    <Empty title="No profiles received yet">
      <p>{text}</p>
      <NeedToken session={session} />
      <StartAgent session={session} />
      <p>
        Send one file, with the token in <code>PERFOLIO_TOKEN</code>:
      </p>
      <CopyField
        what="Command"
        text={commands.perfolio("push --series service_name=api cpu.pb.gz")}
      />
      <p>The same with curl:</p>
      <CopyField
        what="Command"
        text={commands.curl(
          `--data-binary @cpu.pb.gz '${location.origin}/api/v1/profiles?label=service_name%3Dapi'`,
        )}
      />
      <p>
        OpenTelemetry agents and collectors send to{" "}
        <code>{location.origin}/v1development/profiles</code>, Pyroscope SDKs to{" "}
        <code>{location.origin}</code>.
        {session.has_local_ca && (
          <>
            {" "}
            Programs need the server's <a href="/ca.crt">CA certificate</a>: set{" "}
            <code>SSL_CERT_FILE</code> for Go, <code>NODE_EXTRA_CA_CERTS</code> for Node.
          </>
        )}
      </p>
    </Empty>
  );
}
