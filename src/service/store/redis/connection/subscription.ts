import { Redis } from "ioredis";
import { createWakers, type Wakers } from "../../wakers.ts";
import { parseEntries } from "../log-entry.ts";
import { type Client, disconnect, type RedisConnections } from "./connection.ts";

/**
 * lua/lib/hand_over.lua publishes this when a session has ended and sessions that are attached to it have to end as well. It is not an
 * entry of the log.
 */
const HAND_OVER = "^";

/**
 * Receives what the scripts publish when they append to the revocation log. It subscribes only while there are listeners.
 * @param name that of the channel
 */
export function subscribe(
  client: Client,
  { connectSubscriber }: Pick<RedisConnections, "connectSubscriber">,
  name: string,
): Pick<Wakers, "add"> & { addHandOver: (wake: () => void) => () => void; close(): void } {
  let subscriber: Client | undefined;
  // The client of a cluster opens a separate connection for subscriptions, and moves it when its node disappears.
  const open = () => {
    subscriber = client instanceof Redis ? connectSubscriber(client) : client;
    subscriber.on("error", ignore); // Errors are ignored here, because the main connection reports them.
    subscriber.on("message", onMessage);
    subscriber.on("ready", listen);
    if (subscriber.status === "ready") listen();
  };
  const listen = () => {
    // Messages that were published before the subscription are missed, so every listener is called, and reads the log.
    subscriber?.subscribe(name).then(() => {
      wakers.wake([]);
      handOvers.wake([]);
    }, ignore);
  };
  const onMessage = (channel: string, message: string) => {
    if (channel !== name) return;
    if (message === HAND_OVER) handOvers.wake([]);
    else wakers.wake(parseEntries(message.split("\n")));
  };
  const shut = () => {
    if (subscriber instanceof Redis) {
      disconnect(subscriber);
    } else if (subscriber !== undefined) {
      subscriber.off("message", onMessage).off("ready", listen).off("error", ignore);
      subscriber.unsubscribe(name).catch(ignore);
    }
    subscriber = undefined;
  };
  const wakers = createWakers(open, shut);
  let stop = ignore;
  // Listeners for endings that were handed over keep the subscription open, too.
  const handOvers = createWakers(
    () => {
      stop = wakers.add(ignore);
    },
    () => stop(),
  );
  return { add: wakers.add, addHandOver: handOvers.add, close: shut };
}

function ignore(): void {}
