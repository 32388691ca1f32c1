/*
 * commands: lines for a shell that reach this server as they are pasted.
 *
 * Where its certificate is of its own authority, no tool trusts it: the certificate of the authority is then
 * fetched once, and every line names the file. With any other certificate lines are short.
 */
import type { Session } from "../api/api.ts";
import { CopyField } from "../ui/kit.tsx";

const caFile = "perfolio-ca.crt";

/** Lines by tool. */
export function commandsFor(session: Session, origin: string) {
  const isLocal = session.has_local_ca;
  // Without one it is refused, or an anonymous share that is not in the team's list.
  const needsToken = session.user !== undefined || !session.anonymous_sharing;
  const settings = isLocal ? `PERFOLIO_URL=${origin} PERFOLIO_CA_FILE=${caFile} ` : "";
  return {
    perfolio: (rest: string) => `${settings}perfolio ${rest}`,
    needsToken,
    /** The agent reads its token from a file of root's. */
    agent: `sudo perfolio-agent --server=${origin} --token-file=/etc/perfolio/token${isLocal ? ` --ca-file=${caFile}` : ""}`,
    /** With the token where it is wanted: the shell puts it in. */
    curl: (rest: string) =>
      `curl ${needsToken ? '-H "Authorization: Bearer $PERFOLIO_TOKEN" ' : ""}${isLocal ? `--cacert ${caFile} ` : ""}${rest}`,
    pprof: (address: string) =>
      `${isLocal ? `SSL_CERT_FILE=${caFile} ` : ""}go tool pprof ${address}`,
    /** Keeps the server, and the token that it asks for. */
    login: `perfolio login ${needsToken ? "" : "--anonymous "}${isLocal ? `--ca-file ${caFile} ` : ""}${origin}`,
    /** Fetches the file and shows what to compare; "" where none is needed. */
    trust: isLocal
      ? `curl -kfsSo ${caFile} ${origin}/ca.crt && openssl x509 -in ${caFile} -noout -fingerprint -sha256`
      : "",
  };
}

export function Trust({ line }: { line: string }) {
  return (
    <>
      <p>
        This server uses its own certificate authority, which tools do not trust yet. Download its
        CA certificate once, and compare the fingerprint with the one that the server printed at
        startup. The other commands use the file.
      </p>
      <CopyField what="Command" text={line} />
    </>
  );
}
