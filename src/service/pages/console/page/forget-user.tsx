import { sessions as api } from "./api.ts";
import { Confirm, Given } from "./parts.tsx";

type Props = {
  readonly subject: string;
  readonly onDone: (message: string) => void;
  readonly onCancel: () => void;
};

/** How long the call may take, in ms: receivers of signals have 10 s to learn that the sessions have ended. */
const TIMEOUT_MS = 60_000;

/** Removes what is stored of a user, after a confirmation. */
export function ForgetUser({ subject, onDone, onCancel }: Props) {
  async function confirm() {
    const { revokedCount, eventCount, subscriptionIds } = await api.forgetSubject(
      { subject },
      { timeoutMs: TIMEOUT_MS },
    );
    const rest =
      subscriptionIds.length === 0 ? "" : ` Subscriptions still name the user: ${subscriptionIds.join(", ")}.`;
    onDone(`The user is forgotten: sessions ended: ${revokedCount}, events removed: ${eventCount}.${rest}`);
  }

  return (
    <Confirm title="Forget this user?" action="Forget user" doing="Forgetting…" onConfirm={confirm} onCancel={onCancel}>
      <p>
        <b class="subject">
          <Given text={subject} />
        </b>{" "}
        is signed out on all devices, and what is stored of the user is removed: sessions, events and addresses.
      </p>
      <p class="soft">
        Backups and log files stay as they are. A login after this is a new session, and stays. It cannot be undone.
      </p>
    </Confirm>
  );
}
