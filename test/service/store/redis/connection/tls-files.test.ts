/** A Redis that asks for client certificates. Certificates and authorities of both sides change while the store is open. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { TlsFiles } from "../../../../../src/service/config/redis-url.ts";
import { StoreUnavailable } from "../../../../../src/service/session/ports.ts";
import { createRedisStore } from "../../../../../src/service/store/redis/store.ts";
import { clientAuthority, selfSigned } from "../../../../support/certificate.ts";
import { freePort } from "../../../../support/free-port.ts";
import { scratch } from "../../../../support/service.ts";
import { redisOptions, target } from "../../../../support/store/backends.ts";
import { login, server } from "../../../../support/store/redis.ts";
import { until } from "../../../../support/until.ts";

/** Makes certificates for both sides, and writes them as files of Redis. Returns what a client needs. */
function certificates() {
  const directory = scratch();
  const write = (name: string, text: string) => {
    const path = join(directory, name);
    writeFileSync(path, text);
    return path;
  };
  const [own, clients] = [selfSigned(), clientAuthority()];
  const settings = {
    "tls-cert-file": write("cert.pem", own.cert),
    "tls-key-file": write("key.pem", own.key),
    "tls-ca-cert-file": write("clients.pem", clients.cert),
  };
  return { settings, ca: own.cert, ...clients.issue({ commonName: "session-service" }) };
}

test("the store has a client certificate, and uses changed files at its next connections", async () => {
  const [first, second] = [certificates(), certificates()];
  const tlsPort = await freePort();
  const settings = Object.entries(first.settings).flatMap(([name, path]) => [`--${name}`, path]);
  const redis = await server("--tls-port", `${tlsPort}`, "--tls-auth-clients", "yes", ...settings);
  const directory = scratch();
  const tlsFiles = { ca: join(directory, "ca"), cert: join(directory, "cert"), key: join(directory, "key") };
  const replace = (name: keyof typeof tlsFiles, text: string) => {
    writeFileSync(`${tlsFiles[name]}.new`, text);
    renameSync(`${tlsFiles[name]}.new`, tlsFiles[name]);
  };
  for (const name of ["ca", "cert", "key"] as const) replace(name, first[name]);
  const url = `rediss://127.0.0.1:${tlsPort}`;
  const lines: string[] = [];
  const open = async (files: TlsFiles) => {
    const log = (level: string, message: string) => void lines.push(`${level} ${message}`);
    const store = await createRedisStore(redisOptions(url, { target: { ...target(url), tlsFiles: files }, log }));
    onTestFinished(() => store.close());
    return store;
  };
  const store = await open(tlsFiles);
  await until(() => login(store));
  const nameless = await open({ ca: tlsFiles.ca });
  await expect(nameless.ping()).rejects.toThrow(StoreUnavailable);
  await nameless.close();

  const expectEarlierFiles = async () => {
    await until(() => expect(lines).toContainEqual(expect.stringMatching(/^error Redis: a TLS file is broken/)));
    await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await until(() => login(store));
  };
  // An empty file, as one is while it is rewritten in place: the earlier files stay in force, also for new connections.
  for (const name of ["ca", "cert", "key"] as const) {
    replace(name, "");
    await expectEarlierFiles();
    replace(name, first[name]);
    await until(() => expect(lines).toContain("info Redis: the TLS files are valid again"));
    lines.length = 0;
  }
  // Half of the files.
  replace("cert", second.cert);
  await expectEarlierFiles();

  for (const name of ["ca", "key"] as const) replace(name, second[name]);
  await redis.admin.config("SET", ...(Object.entries(second.settings).flat() as [string, string]));
  await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  await until(() => login(store));
  await until(() => expect(lines).toContain("info Redis: new connections use the changed TLS files"));
});
