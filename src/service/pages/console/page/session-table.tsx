import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { Session } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { absolute, bindingOf, deviceOf, kindOf, msOf, nameBeside, visible } from "./format.ts";
import { Beside, Given, GivenOrNot, Headings, Time } from "./parts.tsx";
import { addressOf } from "./search.tsx";

type Props = {
  readonly sessions: readonly Session[];
  /** Whether a column shows the user of each session, because the sessions may belong to several users. */
  readonly withSubject: boolean;
  readonly mayEnd: boolean;
  readonly onEnd: (session: Session) => void;
};

/** The cells of a row that have neither links nor buttons, by the headings of their columns. */
const CELLS: Readonly<Record<string, (session: Session) => JSX.Element>> = {
  Place: ({ client }) => <GivenOrNot text={client?.ipAddress} />,
  Application: ({ clientId }) => <Given text={clientId} />,
  Created: ({ createTime }) => <Time ms={msOf(createTime)} />,
  "Last refresh": ({ lastRefreshTime }) => <Time ms={msOf(lastRefreshTime)} />,
  Expires: (session) => <Time ms={expiryOf(session)} />,
  "Device key": ({ deviceBinding: binding }) => (
    <span class={binding?.bound ? "badge good" : "badge"}>{bindingOf(binding)}</span>
  ),
};

/** Whether the login named the application. Otherwise its client id is the audience, which most often is the issuer. */
const namesApplication = ({ clientId, audiences }: Session) => clientId !== audiences[0];

export function SessionTable({ sessions, withSubject, mayEnd, onEnd }: Props) {
  const columns = Object.keys(CELLS).filter((name) => name !== "Application" || sessions.some(namesApplication));
  return (
    <div class="card scroll">
      <table class="labelled">
        <Headings names={["Device", ...(withSubject ? ["User"] : []), ...columns]}>
          <th scope="col">
            <span class="hidden">Actions</span>
          </th>
        </Headings>
        {sessions.map((session) => (
          <SessionRow
            key={session.sessionId}
            session={session}
            columns={columns}
            withSubject={withSubject}
            mayEnd={mayEnd}
            onEnd={() => onEnd(session)}
          />
        ))}
      </table>
    </div>
  );
}

type RowProps = Omit<Props, "sessions" | "onEnd"> & {
  readonly session: Session;
  readonly columns: readonly string[];
  readonly onEnd: () => void;
};

function SessionRow({ session, columns, withSubject, mayEnd, onEnd }: RowProps) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const { client, subject, actor } = session;
  const device = deviceOf(client);
  return (
    <tbody class="session">
      <tr>
        <th scope="row">
          <Given text={device} />
          <span class="soft">
            <Beside text={nameBeside(client)} />
            <Beside text={kindOf(client)} />
          </span>
          {actor && (
            <span class="badge">
              used by <Given text={actor.subject} />
            </span>
          )}
        </th>
        {withSubject && (
          <td>
            <a class="subject" href={addressOf(subject)}>
              <Given text={subject} />
            </a>
          </td>
        )}
        {columns.map((name) => (
          <td key={name} data-name={name}>
            {CELLS[name]?.(session)}
          </td>
        ))}
        <td class="actions">
          <button type="button" class="quiet" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
            Details
          </button>
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
        </td>
      </tr>
      <tr id={id} hidden={!open}>
        <td colSpan={columns.length + (withSubject ? 3 : 2)}>{open && <SessionDetails session={session} />}</td>
      </tr>
    </tbody>
  );
}

/** Returns when the session ends if it is not used any more. */
function expiryOf({ idleExpireTime, absoluteExpireTime }: Session): number | undefined {
  const times = [msOf(idleExpireTime), msOf(absoluteExpireTime)].filter((ms) => ms !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Displays the details of a session for which its row has no room. */
function SessionDetails({ session }: { readonly session: Session }) {
  const authTime = msOf(session.authTime);
  const claims = JSON.stringify(session.claims ?? {}, null, 2);
  const facts: Readonly<Record<string, JSX.Element | false | undefined>> = {
    "Session id": <code>{session.sessionId}</code>,
    "User agent": <GivenOrNot text={session.client?.userAgent} />,
    "Last user agent": session.lastSeenClient && <GivenOrNot text={session.lastSeenClient.userAgent} />,
    "Last place": session.lastSeenClient && <GivenOrNot text={session.lastSeenClient.ipAddress} />,
    "Expires if idle": <Time ms={msOf(session.idleExpireTime)} />,
    "Expires in any case": <Time ms={msOf(session.absoluteExpireTime)} />,
    Audiences: <Given text={session.audiences.join(", ")} />,
    Authenticated: authTime !== undefined && (
      <Given text={`${absolute(authTime)} ${session.amr.join(", ")} ${session.acr}`} />
    ),
    Actor: session.actor && <Given text={session.actor.subject} />,
    "Reason of the actor": session.actor && session.actor.reason !== "" && <Given text={session.actor.reason} />,
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
