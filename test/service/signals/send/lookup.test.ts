import { createSocket } from "node:dgram";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import {
  createLookup,
  type Find,
  type LookupDeps,
  lookupFunction,
} from "../../../../src/service/signals/send/lookup.ts";
import { scratch } from "../../../support/service.ts";
import { until } from "../../../support/until.ts";

const closing: (() => unknown)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

const NOT_FOUND = 3;

/** Starts a name server. `reply` returns the IPv4 address of a name, a DNS error code, or undefined for no response. */
async function nameServer(reply: (name: string) => string | number | undefined): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    let end = 12;
    const labels: string[] = [];
    for (let length = query[end] as number; length > 0; length = query[end] as number) {
      labels.push(query.toString("latin1", end + 1, end + 1 + length));
      end += 1 + length;
    }
    const address = reply(labels.join("."));
    if (address === undefined) return;
    const isV4 = query.readUInt16BE(end + 1) === 1;
    const found = typeof address === "string" && isV4;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180 | (typeof address === "number" ? address : 0), 2);
    header.writeUInt16BE(found ? 1 : 0, 6);
    header.writeUInt16BE(0, 10);
    // The bytes of the record: a pointer to the name, type A, class IN, a TTL of 0 s, and the length 4.
    const record = found
      ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]
      : ([] as readonly number[]);
    socket.send(Buffer.concat([header, query.subarray(12, end + 5), Buffer.from(record)]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  closing.push(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

/** Returns a simulated system resolver, whose look-ups end when `finish` is called. */
function system() {
  const asked: { readonly name: string; finish(): void }[] = [];
  const bySystem: Find = (name) =>
    new Promise((resolve) => asked.push({ name, finish: () => resolve([{ address: "10.0.0.1", family: 4 }]) }));
  return { bySystem, asked, names: () => asked.map(({ name }) => name) };
}

function hosts(text: string): string {
  const path = join(scratch(), "hosts");
  writeFileSync(path, text);
  return path;
}

async function world(reply: Parameters<typeof nameServer>[0], options: Partial<LookupDeps> = {}) {
  const { bySystem, asked, names } = system();
  const servers = [await nameServer(reply)];
  const find = createLookup({
    bySystem,
    servers,
    hostsFile: hosts("127.0.0.1 localhost"),
    maxWaitMs: 60_000,
    ...options,
  });
  return { find, asked, names };
}

test("a name that DNS knows takes no thread, whatever other names its servers are silent about", async () => {
  let silent = 0;
  const { find, names } = await world((name) => {
    if (!name.startsWith("dead")) return "192.0.2.7";
    silent++;
    return undefined;
  });
  for (let at = 0; at < 64; at++) void find(`dead-${at}.example`).catch(() => {});
  await until(async () => expect(silent + names().length).toBeGreaterThan(64));
  expect(await find("healthy.example")).toEqual([{ address: "192.0.2.7", family: 4 }]);
  expect(names()).toEqual([]);
});

test("a name that cannot be resolved now is not left to the system", async () => {
  const { find, names } = await world(() => 2);
  await expect(find("receiver.example")).rejects.toMatchObject({ code: "ESERVFAIL" });
  expect(names()).toEqual([]);
});

test("the system is asked about names that DNS does not know, one at a time", async () => {
  const { find, asked, names } = await world(() => NOT_FOUND);
  const found = [find("app.default"), find("app.other")];
  await until(async () => expect(names()).toHaveLength(1));
  asked[0]?.finish();
  await until(async () => expect(names()).toHaveLength(2));
  asked[1]?.finish();
  expect(await Promise.all(found)).toEqual(Array.from({ length: 2 }, () => [{ address: "10.0.0.1", family: 4 }]));
});

test("the hosts file precedes DNS", async () => {
  const file = hosts("# 192.0.2.9 other.example\n10.0.0.1\tReceiver.example alias # a comment\n");
  const { find, asked, names } = await world(() => "192.0.2.7", { hostsFile: file });
  const found = find("receiver.example");
  await until(async () => expect(names()).toEqual(["receiver.example"]));
  asked[0]?.finish();
  expect(await found).toEqual([{ address: "10.0.0.1", family: 4 }]);
  expect(await find("other.example")).toEqual([{ address: "192.0.2.7", family: 4 }]);
});

test("names that have waited for the system too long, or that are too many, are given up", async () => {
  const { find, asked, names } = await world(() => NOT_FOUND, { maxWaitMs: 0 });
  await expect(find("late.example")).rejects.toThrow("waited too long");
  const patient = await world((name) => (name === "known" ? "192.0.2.7" : NOT_FOUND));
  const first = patient.find("first");
  await until(async () => expect(patient.names()).toHaveLength(1));
  const found = Array.from({ length: 65 }, (_, at) => patient.find(`app-${at}`).catch(({ message }) => message));
  expect(await Promise.race(found)).toBe("too many names are waiting");
  // When the look-up of this last name returns, DNS has also replied about all names before it.
  await patient.find("known");
  for (let at = 0; at < 65; at++) {
    await until(async () => expect(patient.asked.length).toBe(at + 1));
    patient.asked[at]?.finish();
  }
  await first;
  expect((await Promise.all(found)).filter((outcome) => typeof outcome === "string")).toHaveLength(1);
  expect([asked.length, names()]).toEqual([0, []]);
});

describe("the look-up of a connection", () => {
  const addresses = [
    { address: "10.0.0.1", family: 4 },
    { address: "fd00::1", family: 6 },
  ] as const;
  /** Returns what a connection is given. */
  const looked = (all: boolean, find: Find, refuse: Parameters<typeof lookupFunction>[1] = () => undefined) =>
    new Promise((resolve) => {
      lookupFunction(find, refuse)("receiver.example", { all }, (...given) => resolve(given));
    });

  test("is all addresses, or the first one", async () => {
    expect(await looked(true, async () => addresses)).toEqual([null, addresses]);
    expect(await looked(false, async () => addresses)).toEqual([null, "10.0.0.1", 4]);
  });

  test("is an error where the name has no address, an address is refused, or the look-up fails", async () => {
    expect(await looked(true, async () => [])).toEqual([new Error("no address"), "", 0]);
    expect(await looked(false, async () => [])).toEqual([new Error("no address"), "", 0]);
    const refused = new Error("refused");
    expect(
      await looked(
        true,
        async () => addresses,
        () => refused,
      ),
    ).toEqual([refused, "", 0]);
    expect(await looked(true, async () => Promise.reject(new Error("out")))).toEqual([new Error("out"), "", 0]);
  });
});

test("without a hosts file, names are looked up by DNS", async () => {
  const { find } = await world(() => "10.0.0.7", { hostsFile: join(scratch(), "none") });
  expect(await find("receiver.example")).toEqual([{ address: "10.0.0.7", family: 4 }]);
});
