import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { generateRing } from "../../../src/service/tokens/generate-key.ts";
import { type KeyRing, loadKeyRing, loadOrCreateKeyRing } from "../../../src/service/tokens/key-ring.ts";
import type { Keys } from "../../../src/service/tokens/keys.ts";
import { KeyRingFault, type Ring, writeRing } from "../../../src/service/tokens/ring.ts";
import { changeRingFile, createRingFile, readRing } from "../../../src/service/tokens/ring-file.ts";
import { NOW } from "../../support/tokens.ts";
import { untilTrue } from "../../support/until.ts";

let directories: string[] = [];
afterEach(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  directories = [];
});

function somewhere(): string {
  const directory = mkdtempSync(join(tmpdir(), "key-ring-"));
  directories.push(directory);
  return directory;
}

function fileWith(ring: Ring): string {
  const path = join(somewhere(), "keys.json");
  writeFileSync(path, writeRing(ring), { mode: 0o600 });
  return path;
}

describe("a ring on first start", () => {
  test("is made in a directory and a file that no other user can read", async () => {
    const path = join(somewhere(), "new", "keys.json");
    const ring = await loadOrCreateKeyRing(path, { alg: "EdDSA", now: NOW, hasSessions: () => false });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(path, ".."))).toEqual(["keys.json"]);
    expect(ring.isLost()).toBe(false);
    expect(
      (await loadOrCreateKeyRing(path, { alg: "ES256", now: NOW, hasSessions: () => false })).current.signing.kid,
    ).toBe(ring.current.signing.kid);
  });

  test("is one ring, however many processes start at once", async () => {
    const path = join(somewhere(), "new", "keys.json");
    const script = join(import.meta.dirname, "start-with-ring.ts");
    const starts = Array.from({ length: 5 }, () => spawn(process.execPath, [script, path]));
    await Promise.all(starts.map(({ stdout }) => once(stdout, "data")));
    const rings = starts.map(({ stdin, stdout }: ChildProcess) => {
      stdin?.write("go\n");
      return stdout === null ? [] : once(stdout, "data");
    });
    const kids = new Set((await Promise.all(rings)).map(String));
    expect([...kids]).toEqual([expect.stringMatching(/^[\w-]{43} \d+\n$/)]);
    expect(readdirSync(join(path, ".."))).toEqual(["keys.json"]);
  });

  test("is not made if the store has sessions, which were made with the ring that is gone", async () => {
    const path = join(somewhere(), "keys.json");
    await expect(loadOrCreateKeyRing(path, { alg: "ES256", now: NOW, hasSessions: () => true })).rejects.toThrow(
      `key ring ${path}: the file is gone, and the sessions in the store are of no use without it`,
    );
    expect(readdirSync(join(path, ".."))).toEqual([]);
  });

  test("is the one that another process made in the meantime, and it is refused if it is broken", async () => {
    const path = join(somewhere(), "keys.json");
    const meanwhile = (text: string) => ({
      ...({ alg: "ES256", now: NOW } as const),
      hasSessions: () => {
        writeFileSync(path, text, { mode: 0o600 });
        return true;
      },
    });
    await expect(loadOrCreateKeyRing(path, meanwhile("{"))).rejects.toThrow(`key ring ${path}: not JSON`);
    rmSync(path);
    const ring = generateRing("ES256", NOW);
    const loaded = await loadOrCreateKeyRing(path, meanwhile(writeRing(ring)));
    expect(loaded.current.signing.kid).toBe(ring.signing[0]?.kid);
  });

  test("is not made where one must exist", async () => {
    const path = join(somewhere(), "keys.json");
    await expect(loadKeyRing(path)).rejects.toThrow(
      `key ring ${path}: there is none; \`session-service keys create\` (in a clone: \`npm run keys -- create\`) makes one`,
    );
  });

  test("says why where it cannot be made", async () => {
    const path = join(fileWith(generateRing("ES256", NOW)), "keys.json");
    await expect(createRingFile(path, generateRing("ES256", NOW))).rejects.toThrow(
      `key ring ${path}: cannot be created (`,
    );
  });

  test("never replaces a broken one", async () => {
    const path = join(somewhere(), "keys.json");
    writeFileSync(path, "{", { mode: 0o600 });
    const hasSessions = () => {
      throw new Error("only a ring that is absent asks for sessions");
    };
    await expect(loadOrCreateKeyRing(path, { alg: "ES256", now: NOW, hasSessions })).rejects.toThrow(
      `key ring ${path}: not JSON`,
    );
    expect(await createRingFile(path, generateRing("ES256", NOW))).toBe(false);
    await expect(readRing(path)).rejects.toThrow(`key ring ${path}: not JSON`);
  });
});

describe("the mode of a ring file", () => {
  test.each([0o644, 0o604, 0o620, 0o602, 0o666])(
    "is refused when others could read or change it (%o)",
    async (mode) => {
      const path = fileWith(generateRing("ES256", NOW));
      chmodSync(path, mode);
      await expect(loadKeyRing(path)).rejects.toThrow(/chmod 600/);
    },
  );

  test.each([0o600, 0o400, 0o440])("is fine for the owner, and for a group that may read (%o)", async (mode) => {
    const path = fileWith(generateRing("ES256", NOW));
    chmodSync(path, mode);
    expect((await loadKeyRing(path)).current.jwks.keys).toHaveLength(2);
  });
});

describe("changing a ring file", () => {
  test("writes the new ring at one stroke, with the same mode", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const next = generateRing("ES256", NOW);
    await changeRingFile(path, () => next);
    expect(await readRing(path)).toEqual(next);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, ".."))).toEqual(["keys.json"]);
  });

  test("keeps owner, mode and link of the file, so that root does not lock the service out", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const owner = process.getuid?.() === 0 ? 12_345 : statSync(path).uid;
    chownSync(path, owner, statSync(path).gid);
    chmodSync(path, 0o640);
    const elsewhere = join(somewhere(), "link.json");
    symlinkSync(path, elsewhere);
    const isOthers = owner !== process.getuid?.();
    if (isOthers) await expect(loadKeyRing(path)).rejects.toThrow(`key ring ${path}: `);
    const next = await changeRingFile(elsewhere, () => generateRing("ES256", NOW));
    expect(await readRing(path)).toEqual(next);
    expect(statSync(path)).toMatchObject({ uid: owner, mode: 0o100640 });
    expect(lstatSync(elsewhere).isSymbolicLink()).toBe(true);
  });

  test("leaves the ring as it was when the change is refused or makes no ring", async () => {
    const ring = generateRing("ES256", NOW);
    const path = fileWith(ring);
    const refuse = () => {
      throw new Error("no");
    };
    await expect(changeRingFile(path, refuse)).rejects.toThrow("no");
    await expect(changeRingFile(path, () => ({ signing: [], mac: [] }))).rejects.toThrow(KeyRingFault);
    expect(await readRing(path)).toEqual(ring);
    expect(readdirSync(join(path, ".."))).toEqual(["keys.json"]);
  });

  test("is refused while another does it, so that no change is lost", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const lock = `${path}.lock`;
    const refusal = `another command is changing it; if none is, remove ${lock}`;
    writeFileSync(lock, "");
    await expect(changeRingFile(path, (ring) => ring)).rejects.toThrow(`key ring ${path}: ${refusal}`);
    rmSync(lock);
    await changeRingFile(path, (ring) => {
      expect(existsSync(lock)).toBe(true);
      rmSync(lock); // An operator may do what the message says too early.
      return ring;
    });
    const nowhere = join(somewhere(), "none", "keys.json");
    await expect(changeRingFile(nowhere, (ring) => ring)).rejects.toThrow(
      `key ring ${nowhere}: cannot be locked (ENOENT)`,
    );
    const changes = Array.from({ length: 8 }, () => changeRingFile(path, () => generateRing("ES256", NOW)));
    const outcomes = await Promise.allSettled(changes);
    const done = outcomes.filter((outcome) => outcome.status === "fulfilled");
    expect(done.map((outcome) => outcome.value)).toContainEqual(await readRing(path));
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(String(outcome.reason)).toMatch(/another command is changing it/);
    }
    expect(await changeRingFile(path, (ring) => ring)).toEqual(await readRing(path));
  });
});

describe("a running instance", () => {
  const EVERY = 20; // How often the ring file is read, in ms. No verdict depends on it, because the tests wait for events.

  /** Watches a ring and returns its events one by one. */
  function follow(ring: KeyRing) {
    const events: (Keys | KeyRingFault)[] = [];
    let wake = () => {};
    const record = (what: Keys | KeyRingFault) => {
      events.push(what);
      wake();
    };
    const stop = ring.watch({ onChange: record, onRefusal: record }, EVERY);
    onTestFinished(stop);
    const next = async () => {
      while (events.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return events.shift();
    };
    return { next, events, stop };
  }

  test("takes a replaced ring into force", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const ring = await loadKeyRing(path);
    const { next } = follow(ring);
    for (let round = 0; round < 3; round += 1) {
      const other = await changeRingFile(path, () => generateRing("ES256", NOW));
      expect(await next()).toBe(ring.current);
      expect(ring.current.signing.kid).toBe(other.signing[0]?.kid);
    }
  });

  test("keeps the old ring while the new one is written in pieces, and takes it when it is whole", async () => {
    const first = generateRing("ES256", NOW);
    const path = fileWith(first);
    const ring = await loadKeyRing(path);
    const { next } = follow(ring);
    const other = generateRing("EdDSA", NOW);
    const text = writeRing(other);
    for (let length = 0; length < text.length - 2; length += 40) {
      writeFileSync(path, text.slice(0, length));
      await new Promise(setImmediate); // The watcher of the file is called within a turn of the event loop.
      expect(ring.current.signing.kid).toBe(first.signing[0]?.kid);
    }
    writeFileSync(path, text);
    let event = await next();
    while (event instanceof KeyRingFault) event = await next();
    expect(ring.current.signing.kid).toBe(other.signing[0]?.kid);
  });

  test("refuses a broken ring once, with a report, keeps the old one, and takes the fixed one", async () => {
    const first = generateRing("ES256", NOW);
    const path = fileWith(first);
    const ring = await loadKeyRing(path);
    const { next, events } = follow(ring);
    writeFileSync(path, '{"version":9}');
    expect(String(await next())).toContain(`key ring ${path}: the ring: signing is missing`);
    rmSync(path);
    expect(ring.isLost()).toBe(false);
    expect(String(await next())).toContain("there is none");
    expect(ring.isLost()).toBe(true);
    writeFileSync(path, writeRing(first), { mode: 0o600 });
    chmodSync(path, 0o644);
    expect(String(await next())).toContain("chmod 600");
    expect(ring.current.signing.kid).toBe(first.signing[0]?.kid);
    const fixed = generateRing("ES256", NOW);
    chmodSync(path, 0o600);
    writeFileSync(path, writeRing(fixed));
    expect(await next()).toBe(ring.current);
    expect(ring.isLost()).toBe(false);
    expect(ring.current.signing.kid).toBe(fixed.signing[0]?.kid);
    expect(events).toEqual([]);
  });

  test("misses a ring that is gone, until the same one is back", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const ring = await loadKeyRing(path);
    const { next } = follow(ring);
    renameSync(path, `${path}.away`);
    expect(await next()).toBeInstanceOf(KeyRingFault);
    expect(ring.isLost()).toBe(true);
    renameSync(`${path}.away`, path);
    await untilTrue(() => !ring.isLost());
  });

  test("sees a ring behind a link that is turned elsewhere, as orchestrators mount secrets", async () => {
    const directory = somewhere();
    const rings = [generateRing("ES256", NOW), generateRing("ES256", NOW)];
    for (const [index, each] of rings.entries()) {
      mkdirSync(join(directory, `data${index}`));
      writeFileSync(join(directory, `data${index}`, "keys.json"), writeRing(each), { mode: 0o400 });
    }
    mkdirSync(join(directory, "mount"));
    symlinkSync(join(directory, "data0"), join(directory, "current"));
    symlinkSync(join(directory, "current", "keys.json"), join(directory, "mount", "keys.json"));
    const ring = await loadKeyRing(join(directory, "mount", "keys.json"));
    const { next } = follow(ring);
    symlinkSync(join(directory, "data1"), join(directory, "turned"));
    renameSync(join(directory, "turned"), join(directory, "current"));
    expect(await next()).toBe(ring.current);
    expect(ring.current.signing.kid).toBe(rings[1]?.signing[0]?.kid);
  });

  test("gets no event after it has stopped watching", async () => {
    const path = fileWith(generateRing("ES256", NOW));
    const ring = await loadKeyRing(path);
    const stopped = follow(ring);
    stopped.stop();
    const other = await loadKeyRing(path);
    const { next } = follow(other);
    await changeRingFile(path, () => generateRing("ES256", NOW));
    await next();
    expect(stopped.events).toEqual([]);
  });
});
