/** One rule, every door, and every store behind it. */
import { afterAll, beforeAll, describe } from "vitest";
import type { Caller, DoorKind } from "./clients.ts";
import { type Service, startService } from "./service.ts";

/** A service that runs while the tests of a `describe` do. */
export function aService(env: Readonly<Record<string, string>> = {}): Service {
  let service: Service;
  beforeAll(async () => {
    service = await startService(env);
  });
  afterAll(() => service.stop());
  return new Proxy({} as Service, { get: (_, name) => Reflect.get(service, name) });
}

/** The same rules once per door; the caller is open while they run. */
export function throughEvery(kinds: readonly DoorKind[], url: () => string, rules: (caller: Caller) => void): void {
  describe.each(kinds)("$name", (kind) => {
    let open: Caller;
    beforeAll(() => {
      open = kind.open(url());
    });
    afterAll(() => open.close());
    rules({ call: (...given) => open.call(...given), stream: (...given) => open.stream(...given), close: () => {} });
  });
}
