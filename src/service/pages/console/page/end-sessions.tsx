import type { Session } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessions as api } from "./api.ts";
import { deviceOf, nameBeside } from "./format.ts";
import { Beside, Confirm, Given } from "./parts.tsx";

/** What is to be ended: the one session in `sessions`; or, with `all`, every session of a user. `sessions` then has those displayed. */
export type Asked = { readonly all: boolean; readonly sessions: readonly Session[] };

type Props = {
  readonly asked: Asked;
  readonly subject: string;
  /** Whether there are more sessions than the displayed ones. */
  readonly more: boolean;
  readonly onDone: (count: number, what: string) => void;
  readonly onCancel: () => void;
};

/** Describes which devices will be signed out, and signs them out after a confirmation. */
export function EndSessions({ asked: { all, sessions }, subject, more, onDone, onCancel }: Props) {
  const [first] = sessions;
  const user = all ? subject : (first?.subject ?? "");
  const count = `${sessions.length}${more && all ? " or more" : ""}`;
  const title = all ? `End all sessions of this user?` : "End this session?";

  async function confirm() {
    const { revokedCount } = all
      ? await api.revokeSubjectSessions({ subject: user })
      : await api.revokeSession({ sessionId: first?.sessionId ?? "" });
    onDone(revokedCount, revokedCount === 1 ? "1 session" : `${revokedCount} sessions`);
  }

  return (
    <Confirm
      title={title}
      action={all ? "End all sessions" : "End session"}
      doing="Ending…"
      onConfirm={confirm}
      onCancel={onCancel}
    >
      <p>
        <b class="subject">
          <Given text={user} />
        </b>{" "}
        is signed out on {all ? `${count} ${sessions.length === 1 && !more ? "device" : "devices"}` : "this device"}:
      </p>
      <ul class="devices">
        {sessions.slice(0, 8).map(({ sessionId, client }) => (
          <li key={sessionId}>
            <Given text={deviceOf(client)} />
            <Beside text={nameBeside(client)} />
            <Beside text={client?.ipAddress ?? ""} />
          </li>
        ))}
        {sessions.length > 8 && <li>and {sessions.length - 8} more</li>}
      </ul>
      <p class="soft">
        Refreshing stops at once. Access tokens are refused at once by services that follow the revocation feed,
        elsewhere when they expire.{all && " A login after this lives."} It cannot be undone.
      </p>
    </Confirm>
  );
}
