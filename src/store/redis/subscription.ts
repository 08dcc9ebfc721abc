/** The wake hints: what the scripts publish as they append to the log. Subscribes while there are listeners. */
import { Redis } from "ioredis";
import { Wakers } from "../wakers.ts";
import { type Client, connectSubscriber, disconnect } from "./connection.ts";
import { parseEntries } from "./log-entry.ts";
import { CHANNEL } from "./permissions.ts";

export function subscribe(client: Client): Pick<Wakers, "add"> & { close(): void } {
  let subscriber: Client | undefined;
  // A cluster client keeps a connection of its own for subscriptions, and moves it when its node goes.
  const open = () => {
    subscriber = client instanceof Redis ? connectSubscriber(client) : client;
    subscriber.on("error", ignore); // reported by the main connection
    subscriber.on("message", onMessage);
    subscriber.on("ready", listen);
    if (subscriber.status === "ready") listen();
  };
  const listen = () => {
    // Messages that were published until now have been missed.
    subscriber?.subscribe(CHANNEL).then(() => wakers.wake([]), ignore);
  };
  const onMessage = (channel: string, message: string) => {
    if (channel === CHANNEL) wakers.wake(parseEntries(message.split("\n")));
  };
  const shut = () => {
    if (subscriber instanceof Redis) {
      disconnect(subscriber);
    } else if (subscriber !== undefined) {
      subscriber.off("message", onMessage).off("ready", listen).off("error", ignore);
      subscriber.unsubscribe(CHANNEL).catch(ignore);
    }
    subscriber = undefined;
  };
  const wakers = new Wakers(open, shut);
  return { add: (wake) => wakers.add(wake), close: shut };
}

function ignore(): void {}
