import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { absolute, deviceOf, msOf, nameBeside, visible } from "./format.ts";
import { Beside, Given, Time } from "./parts.tsx";

type Props = {
  readonly session: Session;
  readonly withSubject: boolean;
  readonly mayEnd: boolean;
  readonly onEnd: () => void;
};

export function SessionCard({ session, withSubject, mayEnd, onEnd }: Props) {
  const { client, subject, clientId } = session;
  const device = deviceOf(client);
  return (
    <li class="card session">
      <div class="session-head">
        <div>
          <h2>
            <Given text={device} />
            <span class="soft">
              <Beside text={nameBeside(client)} />
            </span>
          </h2>
          {withSubject && (
            <a class="subject" href={`#/sessions?${new URLSearchParams({ subject })}`}>
              <Given text={subject} />
            </a>
          )}
        </div>
        <button
          type="button"
          class="quiet danger-text"
          disabled={!mayEnd}
          title={mayEnd ? undefined : "Needs the scope sessions:revoke"}
          aria-label={`End the session on ${device}`}
          onClick={onEnd}
        >
          End
        </button>
      </div>
      <dl class="facts">
        <Fact name="Last refresh">
          <Time ms={msOf(session.lastRefreshTime)} />
        </Fact>
        <Fact name="Created">
          <Time ms={msOf(session.createTime)} />
        </Fact>
        <Fact name="Expires if idle">
          <Time ms={msOf(session.idleExpireTime)} />
        </Fact>
        <Fact name="Expires in any case">
          <Time ms={msOf(session.absoluteExpireTime)} />
        </Fact>
        <Fact name="Place">
          <GivenOrNot text={client?.ipAddress} />
        </Fact>
        <Fact name="Application">
          <Given text={clientId} />
        </Fact>
        <Fact name="Device key">
          <Binding session={session} />
        </Fact>
      </dl>
      <Details session={session} />
    </li>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const GivenOrNot = ({ text = "" }: { readonly text: string | undefined }) =>
  text === "" ? <span class="soft">not given</span> : <Given text={text} />;

/** Sessions of a service without device binding have none. */
function Binding({ session: { deviceBinding } }: { readonly session: Session }) {
  if (deviceBinding === undefined) return <span class="badge">not bound</span>;
  return deviceBinding.bound ? <span class="badge good">bound</span> : <span class="badge">registered</span>;
}

function Details({ session }: { readonly session: Session }) {
  const authTime = msOf(session.authTime);
  const claims = JSON.stringify(session.claims ?? {}, null, 2);
  return (
    <details>
      <summary>Details</summary>
      <dl class="facts wide">
        <Fact name="Session id">
          <code>{session.sessionId}</code>
        </Fact>
        <Fact name="User agent">
          <GivenOrNot text={session.client?.userAgent} />
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
    </details>
  );
}
