/** The file of the keys that sign security event tokens. The file is followed, so that keys are rotated while the service runs. */
import { readFile } from "node:fs/promises";
import { errorCode } from "../platform/files/error-code.ts";
import { type Followed, loadFollowed } from "../platform/files/follow.ts";
import { protectionFault } from "../platform/files/protection.ts";
import { type EventKeys, EventKeysFault, parseEventKeys } from "./event-keys.ts";

type Reader = "service" | "operator";

export type EventKeyFile = Followed<EventKeys, EventKeysFault>;

/** Reads the file. An operator who is root may read the file of the service's user. @throws EventKeysFault */
export function loadEventKeys(path: string, reader: Reader = "service"): Promise<EventKeyFile> {
  return loadFollowed({
    path,
    read: () => readText(path, reader),
    parse: (text) => parseAt(path, text),
    faultOf: (error) => (error instanceof EventKeysFault ? error : faultAt(path, "cannot be used")),
  });
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
