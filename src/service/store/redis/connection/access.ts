/** What Redis asks of every connection: credentials and TLS. Their files may change while connections are open. */
import type { Cluster, Redis, RedisOptions } from "ioredis";
import { passwordOfUrl, type RedisTarget } from "../../../config/redis-url.ts";
import { createCredentials } from "./credentials.ts";
import type { LogLine } from "./failure.ts";
import { createCommandSender } from "./send.ts";
import { announcersOf } from "./sentinels.ts";
import { createTlsAccess } from "./tls.ts";

export type Access = {
  /** Returns the options of a new client for its connections to Redis. */
  options(): Pick<RedisOptions, "username" | "password" | "tls">;
  /** Returns the options of a new client for its connections to the Sentinels. */
  sentinelOptions(): Pick<RedisOptions, "sentinelUsername" | "sentinelPassword" | "sentinelTLS">;
  /** Makes a client use the files as they are at each of its connections, and authenticates its open connection when they change. */
  grant(client: Redis): void;
  /** Does the same for the connection on which the client of a cluster subscribes. */
  grantSubscriber(cluster: Cluster): void;
  /** Stops following the files. */
  close(): void;
};

/** @throws if a file of the target cannot be used */
export function createAccess(target: RedisTarget, commandTimeoutMs: number, log: LogLine): Access {
  const tls = createTlsAccess(target);
  const { urlFile } = target;
  const credentials = createCredentials(
    urlFile === undefined ? target : { ...target, passwordFile: urlFile, passwordIn: passwordOfUrl() },
  );
  const ofSentinels = createCredentials({
    username: target.sentinelUsername,
    password: target.sentinelPassword,
    passwordFile: target.sentinelPasswordFile,
  });
  const sender = createCommandSender(commandTimeoutMs);
  const open = new Set<Redis>();
  const clusters: Cluster[] = [];
  const stops = [
    tls.follow(log),
    credentials.follow(() => [...open, ...clusters.flatMap(subscriberOf)], sender, log),
    ofSentinels.follow(() => [...open].flatMap(announcersOf), sender, log),
    sender.close,
  ];
  return {
    options: () => ({ username: credentials.username, password: credentials.password, tls: tls.optionsFor() }),
    sentinelOptions: () => ({
      sentinelUsername: ofSentinels.username,
      sentinelPassword: ofSentinels.password,
      sentinelTLS: tls.optionsFor(),
    }),
    grant(client) {
      const { options } = client;
      if (options.tls !== undefined) options.tls = tls.optionsFor(options.host);
      credentials.renew(options);
      ofSentinels.renew(options, "sentinelPassword");
      client.on("connect", () => open.add(client)).on("close", () => open.delete(client));
    },
    grantSubscriber: (cluster) => void clusters.push(cluster),
    close() {
      for (const stop of stops) stop();
    },
  };
}

/** The part of ioredis that has the connection which the client of a cluster opens by itself: ioredis does not hand it out. */
type Inner = { readonly subscriber?: { getInstance(): Redis | null } };

function subscriberOf(cluster: Cluster): readonly Redis[] {
  const subscriber = (cluster as unknown as Inner).subscriber?.getInstance();
  return subscriber ? [subscriber] : [];
}
