/** The file of the keys that sign security event tokens. The file is followed, so that keys are rotated while the service runs. */
import { readFile } from "node:fs/promises";
import { errorCode } from "../files/error-code.ts";
import { followFile, type Taken } from "../files/follow.ts";
import { protectionFault } from "../files/protection.ts";
import { type EventKeys, EventKeysFault, parseEventKeys } from "./event-keys.ts";

type FileEvents = {
  /** Called when the keys of a changed file are in use. */
  readonly onChange: (keys: EventKeys) => void;
  /** Called when the file is broken or missing; the earlier keys stay in use. Each fault is reported once. */
  readonly onRefusal: (fault: EventKeysFault) => void;
};

type Reader = "service" | "operator";

export interface EventKeyFile {
  readonly current: EventKeys;
  /** Follows the file until the returned function is called. It does not keep the process running. */
  watch(events: FileEvents, everyMs?: number): () => void;
}

/**
 * Reads the file. An operator who is root may read the file of the service's user.
 *
 * @throws EventKeysFault
 */
export async function loadEventKeys(path: string, reader: Reader = "service"): Promise<EventKeyFile> {
  let inForce = await readText(path, reader);
  let current = parseAt(path, inForce);

  const take = async ({ onChange }: FileEvents): Promise<Taken<EventKeysFault>> => {
    try {
      const text = await readText(path, reader);
      if (text === inForce) return { ok: true };
      current = parseAt(path, text);
      inForce = text;
    } catch (error) {
      return { ok: false, reason: error instanceof EventKeysFault ? error : faultAt(path, "cannot be used") };
    }
    onChange(current);
    return { ok: true };
  };

  return {
    get current() {
      return current;
    },
    watch: (events, everyMs) => followFile({ path, take: () => take(events), onRefusal: events.onRefusal, everyMs }),
  };
}

async function readText(path: string, reader: Reader): Promise<string> {
  let fault: string | undefined;
  try {
    fault = await protectionFault(path, { forbids: "read", mode: 0o600, rootUsesAny: reader === "operator" });
    if (fault === undefined) return await readFile(path, "utf8");
  } catch (error) {
    throw faultAt(path, `cannot be read (${errorCode(error)})`);
  }
  throw faultAt(path, fault);
}

function parseAt(path: string, text: string): EventKeys {
  try {
    return parseEventKeys(text);
  } catch (error) {
    throw error instanceof EventKeysFault ? faultAt(path, error.message) : error;
  }
}

function faultAt(path: string, what: string): EventKeysFault {
  return new EventKeysFault(`the file ${path} ${what}`);
}
