/** Shows the sessions that were found, each in a row. */
import { useId, useState } from "preact/hooks";
import type { Session } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { bindingOf, deviceOf, msOf, nameBeside } from "./format.ts";
import { Beside, Given, GivenOrNot, Time } from "./parts.tsx";
import { SessionDetails } from "./session-details.tsx";

type Props = {
  readonly sessions: readonly Session[];
  /** Whether the sessions belong to several users. */
  readonly withSubject: boolean;
  readonly mayEnd: boolean;
  readonly onEnd: (session: Session) => void;
};

export function SessionTable({ sessions, withSubject, mayEnd, onEnd }: Props) {
  return (
    <div class="card scroll">
      <table class="sessions">
        <thead>
          <tr>
            <th scope="col">Device</th>
            {withSubject && <th scope="col">User</th>}
            <th scope="col">Place</th>
            <th scope="col">Application</th>
            <th scope="col">Created</th>
            <th scope="col">Last refresh</th>
            <th scope="col">Expires</th>
            <th scope="col">Device key</th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        {sessions.map((session) => (
          <SessionRow
            key={session.sessionId}
            session={session}
            withSubject={withSubject}
            mayEnd={mayEnd}
            onEnd={() => onEnd(session)}
          />
        ))}
      </table>
    </div>
  );
}

type RowProps = Omit<Props, "sessions" | "onEnd"> & { readonly session: Session; readonly onEnd: () => void };

function SessionRow({ session, withSubject, mayEnd, onEnd }: RowProps) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const { client, subject, clientId } = session;
  const device = deviceOf(client);
  return (
    <tbody class="session">
      <tr>
        <th scope="row">
          <Given text={device} />
          <span class="soft">
            <Beside text={nameBeside(client)} />
          </span>
        </th>
        {withSubject && (
          <td>
            <a class="subject" href={`#/sessions?${new URLSearchParams({ subject })}`}>
              <Given text={subject} />
            </a>
          </td>
        )}
        <td data-name="Place">
          <GivenOrNot text={client?.ipAddress} />
        </td>
        <td data-name="Application">
          <Given text={clientId} />
        </td>
        <td data-name="Created">
          <Time ms={msOf(session.createTime)} />
        </td>
        <td data-name="Last refresh">
          <Time ms={msOf(session.lastRefreshTime)} />
        </td>
        <td data-name="Expires">
          <Time ms={expiryOf(session)} />
        </td>
        <td data-name="Device key">
          <Binding session={session} />
        </td>
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
        <td colSpan={withSubject ? 9 : 8}>{open && <SessionDetails session={session} />}</td>
      </tr>
    </tbody>
  );
}

/** Returns when the session ends if it is not used any more. */
function expiryOf({ idleExpireTime, absoluteExpireTime }: Session): number | undefined {
  const times = [msOf(idleExpireTime), msOf(absoluteExpireTime)].filter((ms) => ms !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

function Binding({ session: { deviceBinding } }: { readonly session: Session }) {
  return <span class={deviceBinding?.bound ? "badge good" : "badge"}>{bindingOf(deviceBinding)}</span>;
}
