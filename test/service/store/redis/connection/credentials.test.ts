import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createRedisStore } from "../../../../../src/service/store/redis/store.ts";
import { scratch } from "../../../../support/service.ts";
import { redisOptions, target } from "../../../../support/store/backends.ts";
import { login, server } from "../../../../support/store/redis.ts";
import { until } from "../../../../support/until.ts";

test("a changed password that Redis refuses is logged, open connections serve on, and it is used once Redis accepts it", async () => {
  const redis = await server();
  await redis.admin.call("ACL", "SETUSER", "service", "on", ">first", "~*", "&*", "+@all");
  const passwordFile = join(scratch(), "password");
  writeFileSync(passwordFile, "first\n");
  const lines: string[] = [];
  const log = (level: string, message: string) => void lines.push(`${level} ${message}`);
  const account = { username: "service", passwordFile };
  const store = await createRedisStore(redisOptions(redis.url, { target: { ...target(redis.url), ...account }, log }));
  onTestFinished(() => store.close());
  await until(() => login(store));

  writeFileSync(passwordFile, "second\n");
  await until(() => expect(lines).toContainEqual(expect.stringMatching(/^error .*cannot be used: WRONGPASS/)));
  await login(store);
  await redis.admin.call("ACL", "SETUSER", "service", ">second", "<first");
  await until(() => expect(lines).toContainEqual(expect.stringMatching(/^info .* open connections use the changed/)));
  await login(store);

  writeFileSync(passwordFile, "\n");
  await until(() => expect(lines).toContainEqual(expect.stringMatching(/^error .*holds no password/)));
  await redis.admin.call("CLIENT", "KILL", "USER", "service");
  await until(() => login(store)); // The last password that could be used is kept.
  expect(lines.join("\n")).not.toMatch(/first|second/);
});
