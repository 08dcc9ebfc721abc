import type { JSX } from "preact";
import type { Session } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { absolute, msOf, visible } from "./format.ts";
import { Given, GivenOrNot, Time } from "./parts.tsx";

/** Displays the details of a session for which its row has no room. */
export function SessionDetails({ session }: { readonly session: Session }) {
  const authTime = msOf(session.authTime);
  const claims = JSON.stringify(session.claims ?? {}, null, 2);
  const facts: Readonly<Record<string, JSX.Element | false>> = {
    "Session id": <code>{session.sessionId}</code>,
    "User agent": <GivenOrNot text={session.client?.userAgent} />,
    "Expires if idle": <Time ms={msOf(session.idleExpireTime)} />,
    "Expires in any case": <Time ms={msOf(session.absoluteExpireTime)} />,
    Audiences: <Given text={session.audiences.join(", ")} />,
    Authenticated: authTime !== undefined && (
      <Given text={`${absolute(authTime)} ${session.amr.join(", ")} ${session.acr}`} />
    ),
    Claims: claims !== "{}" && <pre>{claims.split("\n").map(visible).join("\n")}</pre>,
  };
  return (
    <dl class="facts">
      {Object.entries(facts).map(
        ([name, fact]) =>
          fact && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{fact}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
