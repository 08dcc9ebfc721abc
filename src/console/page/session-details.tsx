import type { ComponentChildren } from "preact";
import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { absolute, msOf, visible } from "./format.ts";
import { Given, GivenOrNot, Time } from "./parts.tsx";

/** Displays the details of a session for which its row has no room. */
export function SessionDetails({ session }: { readonly session: Session }) {
  const authTime = msOf(session.authTime);
  const claims = JSON.stringify(session.claims ?? {}, null, 2);
  return (
    <dl class="facts">
      <Fact name="Session id">
        <code>{session.sessionId}</code>
      </Fact>
      <Fact name="User agent">
        <GivenOrNot text={session.client?.userAgent} />
      </Fact>
      <Fact name="Expires if idle">
        <Time ms={msOf(session.idleExpireTime)} />
      </Fact>
      <Fact name="Expires in any case">
        <Time ms={msOf(session.absoluteExpireTime)} />
      </Fact>
      <Fact name="Audiences">
        <Given text={session.audiences.join(", ")} />
      </Fact>
      {authTime !== undefined && (
        <Fact name="Authenticated">
          <Given text={`${absolute(authTime)} ${session.amr.join(", ")} ${session.acr}`} />
        </Fact>
      )}
      {claims !== "{}" && (
        <Fact name="Claims">
          <pre>{claims.split("\n").map(visible).join("\n")}</pre>
        </Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
