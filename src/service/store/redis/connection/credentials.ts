/**
 * The user and the password for Redis or for its Sentinels. A password in a file is read at every connection. When it changes, the open
 * connections authenticate again, so that they outlive the password before: rented Redis servers close connections whose password has
 * expired. Redis keeps a connection as it is if that fails, and it is tried again every second.
 */
import type { Redis, RedisOptions } from "ioredis";
import { type FileValue, valueOfFiles } from "../../../../platform/files/file-value.ts";
import { followFile, type Taken } from "../../../../platform/files/follow.ts";
import type { LogLine } from "./failure.ts";
import type { CommandSender } from "./send.ts";

type Account = {
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The file with the password, in place of `password`. */
  readonly passwordFile?: string | undefined;
  /** Reads the password from the content of the file. Default: the content is the password. @throws if there is none */
  readonly passwordIn?: (text: string) => string;
};

type Credentials = {
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Makes a client use the present password at its next connections. */
  renew(options: RedisOptions, option?: "password" | "sentinelPassword"): void;
  /** Follows the file of the password, until the returned function is called. @param open returns the connections to authenticate */
  follow(open: () => readonly Redis[], sender: CommandSender, log: LogLine): () => void;
};

/** @throws if the file cannot be read */
export function createCredentials({ username, password, passwordFile, passwordIn = trimmed }: Account): Credentials {
  const file = passwordFile === undefined ? undefined : valueOfFiles([passwordFile], ([text = ""]) => passwordIn(text));
  const credentials: Credentials = {
    username,
    get password() {
      return file === undefined ? password : file.current();
    },
    renew(options, option = "password") {
      // ioredis reads the option for every connection, and so calls the getter.
      const descriptor = { get: () => credentials.password, enumerable: true, configurable: true };
      if (file !== undefined) Object.defineProperty(options, option, descriptor);
    },
    follow(open, sender, log) {
      if (file === undefined || passwordFile === undefined) return () => {};
      const take = () => authenticateAll(credentials, file, open, sender, log);
      const onRefusal = ({ message }: Error) =>
        log("error", `Redis: the password of ${passwordFile} cannot be used: ${message}`);
      const onRecovery = () => log("info", "Redis: the password is valid again");
      return followFile({ path: passwordFile, take, onRefusal, onRecovery });
    },
  };
  return credentials;
}

/** Returns the password in the contents of a file, without white space around it. @throws if there is none */
function trimmed(text: string): string {
  const password = text.trim();
  if (password === "") throw new Error("the file holds no password");
  return password;
}

/** Authenticates the open connections that have used another password than the one in the file. */
async function authenticateAll(
  credentials: Credentials,
  file: FileValue<string>,
  open: () => readonly Redis[],
  sender: CommandSender,
  log: LogLine,
): Promise<Taken<Error>> {
  try {
    const password = file.read();
    const stale = open().filter((redis) => redis.status === "ready" && passwordOf(redis) !== password);
    await Promise.all(stale.map((redis) => authenticate(redis, credentials, password, sender)));
    if (stale.length > 0) log("info", `Redis: ${stale.length} open connections use the changed password`);
    return { ok: true };
  } catch (error) {
    // The error of a command has its arguments as a property, but not in its message.
    return { ok: false, reason: new Error(error instanceof Error ? error.message : String(error)) };
  }
}

/** Returns the password with which the open connection has authenticated. ioredis makes a new condition for every connection. */
function passwordOf({ condition }: Redis): string | undefined {
  return Array.isArray(condition?.auth) ? condition.auth[1] : condition?.auth;
}

async function authenticate(
  redis: Redis,
  credentials: Credentials,
  password: string,
  sender: CommandSender,
): Promise<void> {
  const { condition } = redis;
  const { username } = credentials;
  credentials.renew(redis.options);
  await sender.send(redis, "auth", username === undefined ? [password] : [username, password]);
  if (condition !== null) condition.auth = username === undefined ? password : [username, password];
}
