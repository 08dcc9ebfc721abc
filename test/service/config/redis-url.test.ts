import { describe, expect, test } from "vitest";
import { parseRedisUrl } from "../../../src/service/config/redis-url.ts";

const target = { kind: "single", tls: false, username: undefined, password: undefined, db: 0, master: undefined };
const a = { host: "a", port: 6379 };
const b = { host: "b", port: 7001 };

describe("REDIS_URL", () => {
  test.each([
    ["redis://a", { ...target, nodes: [a] }],
    ["rediss://a:7000/3", { ...target, tls: true, nodes: [{ host: "a", port: 7000 }], db: 3 }],
    ["redis://a/", { ...target, nodes: [a] }],
    ["redis://[::1]:7000", { ...target, nodes: [{ host: "::1", port: 7000 }] }],
    ["redis://u:p%40%2C%3A@a", { ...target, nodes: [a], username: "u", password: "p@,:" }],
    ["redis://:secret@a", { ...target, nodes: [a], password: "secret" }],
    ["redis://u:p@a,b:7001", { ...target, kind: "cluster", nodes: [a, b], username: "u", password: "p" }],
    ["redis+cluster://u:p@a", { ...target, kind: "cluster", nodes: [a], username: "u", password: "p" }],
    ["rediss+cluster://a,b:7001", { ...target, kind: "cluster", tls: true, nodes: [a, b] }],
    ["rediss://a,rediss://b:7001", { ...target, kind: "cluster", tls: true, nodes: [a, b] }],
    [
      "redis+sentinel://u:p@a:1,b/main/2",
      {
        ...target,
        kind: "sentinel",
        nodes: [
          { host: "a", port: 1 },
          { host: "b", port: 26379 },
        ],
        username: "u",
        password: "p",
        master: "main",
        db: 2,
      },
    ],
    [
      "rediss+sentinel://a/main",
      { ...target, kind: "sentinel", tls: true, nodes: [{ host: "a", port: 26379 }], master: "main" },
    ],
  ])("%s is understood", (text, expected) => {
    expect(parseRedisUrl(text)).toEqual({ ok: true, value: expected });
  });

  test.each([
    ["hunter2", "start with redis://"],
    ["http://u:hunter2@a", "start with redis://"],
    ["redis://u:hunter2@", "name every node"],
    ["redis://u:hunter2@a:b", "name every node"],
    ["redis://u:hunter2@a,,b", "name every node"],
    ["redis://u:hunter2@a:0", "ports between"],
    ["redis://u:hunter2@a:65536", "ports between"],
    ["redis://hunter2@a", "user:password@"],
    ["redis://u:hunter2@a,u:hunter2@b", "once, at the front"],
    ["redis://u:hunter2/@a", "percent-encoded"],
    ["redis://u:hunter2%@a", "percent-encoded"],
    ["redis://u:hunter2@a/x", "number of a database"],
    ["redis://u:hunter2@a/1/2", "number of a database"],
    ["redis://u:hunter2@a,b/1", "only one"],
    ["redis://u:hunter2@a?db=1", "no query"],
    ["redis://u:hunter2@a,rediss://b", "same scheme"],
    ["redis+cluster://u:hunter2@a/1", "only one"],
    ["redis+other://u:hunter2@a", "start with redis://"],
    ["redis+sentinel://u:hunter2@a", "name the master"],
  ])("%s is refused, and the password is not repeated", (text, fault) => {
    const parsed = parseRedisUrl(text);
    expect(parsed).toEqual({ ok: false, reason: expect.stringContaining(fault) });
    expect(JSON.stringify(parsed)).not.toContain("hunter2");
  });
});
