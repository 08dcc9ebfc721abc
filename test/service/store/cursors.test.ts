/** Cursors that callers send back. They must be exactly as they were returned, or are refused. */
import { describe, expect, test } from "vitest";
import { InvalidCursor, type SessionStore } from "../../../src/service/session/ports.ts";
import { type Backend, embeddedBackend, redisBackend } from "../../support/store/backends.ts";
import { newSession, nonce, subject } from "../../support/store/sessions.ts";

describe.each([
  ["embedded", embeddedBackend],
  ["redis", redisBackend],
])("%s store", (_, start) => {
  async function over(use: (store: SessionStore) => Promise<void>) {
    const backend: Backend = await start();
    try {
      await use(await backend.open());
    } finally {
      await backend.stop();
    }
  }
  const around = (good: string) => [
    `${good}x`,
    `${good} `,
    `${good}\n`,
    `x${good}`,
    ` ${good}`,
    `${good}.`,
    `${good}-1`,
  ];

  test("a cursor of the log with anything before or behind it is none", () =>
    over(async (store) => {
      const { cursor } = await store.revocations(undefined);
      await store.revocations(cursor);
      for (const bad of [...around(cursor), ""])
        await expect(store.revocations(bad), bad).rejects.toThrow(InvalidCursor);
    }));

  test("a page token with anything before or behind it is none", () =>
    over(async (store) => {
      const user = subject();
      for (let count = 0; count < 3; count++) await store.create(newSession(user), nonce(), { cap: 10 });
      const { next = "" } = await store.list(user, 1, undefined);
      expect((await store.list(user, 1, next)).sessions).toHaveLength(1);
      for (const bad of around(next)) await expect(store.list(user, 1, bad), bad).rejects.toThrow(InvalidCursor);
    }));
});
