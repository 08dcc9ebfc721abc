import { Code, ConnectError } from "@connectrpc/connect";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { type Subscription, SubscriptionKind } from "../../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { type Me, signals } from "./api.ts";
import { msOf } from "./format.ts";
import { Empty, Forbidden, Given, Headings, Hint, Loading, Problem, Time } from "./parts.tsx";

type State = {
  readonly subscriptions: readonly Subscription[] | undefined;
  readonly error: unknown;
  /** The result of the last test of each subscription. */
  readonly tests: Readonly<Record<string, string>>;
};

/** Displays the receivers of signals and the state of their deliveries. An operator can test, pause and resume them here. */
export function SignalsView({ me }: { readonly me: Me }) {
  const mayRead = me.scopes.includes("signals:read");
  const [{ subscriptions, error, tests }, setState] = useState<State>({
    subscriptions: undefined,
    error: undefined,
    tests: {},
  });
  /** Calls the service, and lists the subscriptions again. */
  const act = useCallback(async (call: () => Promise<Readonly<Record<string, string>> | undefined>) => {
    try {
      const tested = await call();
      const listed = await signals.listSubscriptions({});
      setState((before) => ({
        subscriptions: listed.subscriptions,
        error: undefined,
        tests: { ...before.tests, ...tested },
      }));
    } catch (failure) {
      setState((before) => ({ ...before, error: failure }));
    }
  }, []);
  const read = useCallback(() => act(async () => undefined), [act]);
  useEffect(() => {
    if (mayRead) void read();
  }, [mayRead, read]);

  if (!mayRead) return <Forbidden title="Signals cannot be shown" scope="signals:read" />;
  if (ConnectError.from(error).code === Code.Unimplemented) {
    return <Hint title="Signals are off" text="SIGNALS=on turns them on." />;
  }
  return (
    <main>
      <div class="row">
        <h1>Signals</h1>
        <button type="button" class="quiet" onClick={read}>
          Read again
        </button>
      </div>
      {error !== undefined && <Problem error={error} retry={read} />}
      {subscriptions === undefined ? (
        error === undefined && <Loading what="Reading…" />
      ) : subscriptions.length === 0 ? (
        <Empty title="No subscriptions">session-service signals create makes one.</Empty>
      ) : (
        <Table subscriptions={subscriptions} tests={tests} mayManage={me.scopes.includes("signals:manage")} act={act} />
      )}
    </main>
  );
}

type TableProps = {
  readonly subscriptions: readonly Subscription[];
  readonly tests: State["tests"];
  readonly mayManage: boolean;
  readonly act: (call: () => Promise<Readonly<Record<string, string>> | undefined>) => Promise<void>;
};

const KINDS: Readonly<Record<number, string>> = {
  [SubscriptionKind.WEBHOOK]: "webhook",
  [SubscriptionKind.BACKCHANNEL]: "back-channel logout",
  [SubscriptionKind.SSF_PUSH]: "SSF, by push",
  [SubscriptionKind.SSF_POLL]: "SSF, by poll",
};

/** The cells of a row that have no buttons, by the headings of their columns. */
const CELLS: Readonly<Record<string, (one: Subscription) => ComponentChildren>> = {
  Kind: ({ kind, signingAlg }) => `${KINDS[kind] ?? "another"}${signingAlg === "" ? "" : ` (${signingAlg})`}`,
  State: (one) => <span class={`badge ${stateOf(one) === "active" ? "good" : "bad"}`}>{stateOf(one)}</span>,
  Delivered: ({ delivered }) => delivered.toLocaleString("en"),
  "Given up": ({ deadLetters }) => deadLetters.toLocaleString("en"),
  "Waiting since": ({ oldestWaitingTime }) => oldestWaitingTime && <Time ms={msOf(oldestWaitingTime)} />,
  "Last error": ({ lastError, lastErrorTime, failures }) => (
    <>
      {lastError.replaceAll("_", " ")} {lastErrorTime && <Time ms={msOf(lastErrorTime)} />}
      {failures > 1 && ` (${failures.toLocaleString("en")} in a row)`}
    </>
  ),
};

function Table({ subscriptions, tests, mayManage, act }: TableProps) {
  return (
    <div class="card scroll">
      <table class="labelled">
        <Headings names={["Receiver", ...Object.keys(CELLS), "Actions"]} />
        {subscriptions.map((one) => (
          <tbody key={one.subscriptionId}>
            <tr>
              <th scope="row" title={one.subscriptionId}>
                <Given text={one.endpoint || one.audience.join(", ")} />
              </th>
              {Object.entries(CELLS).map(([name, cell]) => (
                <td key={name} data-name={name}>
                  {cell(one)}
                </td>
              ))}
              <td class="actions">
                <Actions one={one} disabled={!mayManage} act={act} />
                <div role="status">{tests[one.subscriptionId] ?? ""}</div>
              </td>
            </tr>
          </tbody>
        ))}
      </table>
    </div>
  );
}

/** A single failure is retried within a second, and is not yet a failing receiver. */
function stateOf({ pausedBecause, failures }: Subscription): string {
  if (pausedBecause !== "") return `paused: ${pausedBecause}`;
  return failures > 1 ? "failing" : "active";
}

type ActionsProps = { readonly one: Subscription; readonly disabled: boolean; readonly act: TableProps["act"] };

function Actions({ one: { subscriptionId, pausedBecause, endpoint }, disabled, act }: ActionsProps) {
  const title = disabled ? "You do not have the scope signals:manage" : undefined;
  const given = { subscriptionId };
  const change = () =>
    act(async () => {
      await (pausedBecause === "" ? signals.pauseSubscription(given) : signals.resumeSubscription(given));
      return undefined;
    });
  const test = () =>
    act(async () => {
      const { accepted, error } = await signals.testSubscription(given);
      return { [subscriptionId]: accepted ? "test accepted" : `test failed: ${error.replaceAll("_", " ")}` };
    });
  return (
    <>
      <button type="button" class="quiet" disabled={disabled} title={title} onClick={change}>
        {pausedBecause === "" ? "Pause" : "Resume"}
      </button>{" "}
      <button type="button" class="quiet" disabled={disabled || endpoint === ""} title={title} onClick={test}>
        Send a test
      </button>{" "}
    </>
  );
}
