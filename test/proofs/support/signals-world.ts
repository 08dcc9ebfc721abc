/** Service processes that deliver signals to real receivers. */
import { onTestFinished } from "vitest";
import {
  SignalsAdminService,
  type Subscription,
  SubscriptionKind,
} from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { bearer, message } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { callersOf, deploy } from "./deployment.ts";
import { Endings } from "./endings.ts";
import { type Behaviour, Receiver } from "./receiver.ts";

const { createSubscription, listSubscriptions } = SignalsAdminService.method;
const ON = { SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", RATE_LIMIT_CREATE: "off" };

export async function deploySignals(instances: number, env: Readonly<Record<string, string>>) {
  const { services, adminToken } = await deploy(instances, { ...ON, ...env });
  const endings = new Endings(services, adminToken);
  const admin = () => callersOf(services.at(-1) as (typeof services)[number]).admin;
  const credential = bearer(adminToken);

  /** Subscribes a receiver with this behaviour. The receiver stops at the end of the test. */
  async function subscribe(behaviour: Behaviour = "accept") {
    const receiver = await new Receiver(behaviour).start();
    onTestFinished(() => receiver.stop());
    const wanted = { kind: SubscriptionKind.WEBHOOK, endpoint: receiver.url };
    const { subscription } = message(await admin().call(createSubscription, wanted, credential));
    return { receiver, id: subscription?.subscriptionId ?? "" };
  }

  /** Returns the reports of the service about its subscriptions, by id. A busy service may refuse this call for a moment. */
  async function reported(): Promise<ReadonlyMap<string, Subscription>> {
    const { subscriptions } = await until(async () => message(await admin().call(listSubscriptions, {}, credential)));
    return new Map(subscriptions.map((one) => [one.subscriptionId, one]));
  }

  /**
   * Resolves when every receiver has received a signal for each acknowledged end of a session. @param meanwhile called before each check
   */
  async function delivered(receivers: readonly Receiver[], meanwhile: () => unknown = () => {}): Promise<void> {
    await until(async () => {
      await meanwhile();
      if (receivers.some((receiver) => receiver.missing(endings.acknowledged).length > 0)) throw new Error("not yet");
    });
  }

  return { services, adminToken, endings, subscribe, reported, delivered };
}

export type SignalsWorld = Awaited<ReturnType<typeof deploySignals>>;
