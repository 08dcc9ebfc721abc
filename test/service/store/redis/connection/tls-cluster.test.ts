/** A cluster over TLS whose certificates name the host alone, as those of rented clusters do. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { TlsFiles } from "../../../../../src/service/config/redis-url.ts";
import { StoreUnavailable } from "../../../../../src/service/session/ports.ts";
import { createRedisConnections, disconnect } from "../../../../../src/service/store/redis/connection/connection.ts";
import type { LogLine } from "../../../../../src/service/store/redis/connection/failure.ts";
import { createRedisStore } from "../../../../../src/service/store/redis/store.ts";
import { selfSigned } from "../../../../support/certificate.ts";
import { type RedisCluster, startRedisCluster } from "../../../../support/redis.ts";
import { scratch } from "../../../../support/service.ts";
import { redisOptions, target } from "../../../../support/store/backends.ts";
import { login } from "../../../../support/store/redis.ts";
import { until } from "../../../../support/until.ts";

let cluster: RedisCluster;
let ca: string;

beforeAll(async () => {
  const directory = scratch();
  const [certFile, keyFile] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const { cert, key } = selfSigned({ namesAddress: false });
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  ca = certFile;
  const tls = ["--tls-cert-file", certFile, "--tls-key-file", keyFile, "--tls-ca-cert-file", certFile];
  const names = ["--cluster-announce-hostname", "localhost"];
  cluster = await startRedisCluster("--tls-cluster", "yes", ...tls, "--tls-auth-clients", "no", ...names);
});
afterAll(() => cluster.stop());

const urlOf = (host: string) => `rediss+cluster://${host}:${cluster.nodes[0]?.tlsPort}`;
const targetOf = (host: string, files: TlsFiles = { ca }) => ({ ...target(urlOf(host)), tlsFiles: files });

async function open(host: string, log: LogLine = () => {}, files?: TlsFiles) {
  const store = await createRedisStore(redisOptions(urlOf(host), { target: targetOf(host, files), log }));
  onTestFinished(() => store.close());
  return store;
}

/** @param type what CLUSTER SLOTS and redirections name: `hostname` or `ip` */
async function listNodesBy(type: string): Promise<void> {
  for (const { admin } of cluster.nodes) await admin.config("SET", "cluster-preferred-endpoint-type", type);
}

test.each(["hostname", "ip"])("one endpoint is enough, whether the cluster lists its nodes by %s", async (type) => {
  await listNodesBy(type);
  const store = await open("localhost");
  await until(() => store.ping());
  const revoked: string[] = [];
  onTestFinished(store.onRevocation((entries) => revoked.push(...entries.map(({ sid }) => sid))));
  const logout = async () => {
    const { sid } = await login(store);
    await store.end(sid, "logout");
    return sid;
  };
  await until(async () => {
    await logout();
    expect(revoked).not.toEqual([]); // The store is subscribed from now on.
  });
  // These are enough sessions for every node to have some of them.
  const ended = await Promise.all(Array.from({ length: 12 }, logout));
  await until(() => expect(revoked).toEqual(expect.arrayContaining(ended)));
});

test("a node is refused if its certificate names neither its address nor the endpoint", async () => {
  await listNodesBy("ip");
  await expect((await open("127.0.0.1")).ping()).rejects.toThrow(StoreUnavailable);
});

test.each([
  { problem: "names another host", host: "127.0.0.1", files: () => ({ ca }), reported: /^Redis: .*altnames/ },
  {
    problem: "is of an unknown authority",
    host: "localhost",
    files: () => ({}),
    reported: /^Redis: self-signed certificate/,
  },
])("a certificate that $problem is reported, once", async ({ host, files, reported }) => {
  await listNodesBy("ip");
  const lines: string[] = [];
  await open(host, (_level, line) => lines.push(line), files());
  await until(() => expect(lines.filter((line) => reported.test(line))).not.toEqual([]));
  expect(new Set(lines).size).toBe(lines.length);
});

test("a second error of a socket, such as an alert after a refused certificate, does not end the process", async () => {
  const connections = createRedisConnections(targetOf("127.0.0.1"), 500);
  const client = connections.connect();
  onTestFinished(() => {
    disconnect(client);
    connections.close();
  });
  client.on("error", () => {});
  const [node] = await once(client, "+node");
  await once(node, "error");
  expect(() => node.stream.emit("error", new Error("alert"))).not.toThrow();
});
