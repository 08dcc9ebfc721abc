/** The certificate with which the gateway identifies itself to the upstream, and its replacement while the gateway runs. */
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { parseArguments, startGateway } from "../../src/connect-http-gateway/index.ts";
import { startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { relayRoutes } from "../connect-http-routes/support/relay-service.ts";
import { clientAuthority, type Pem, selfSigned, serverAuthority } from "../support/certificate.ts";
import { scratch } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Line, startRelay } from "./running.ts";

const { set } = startRelay();
const { authority, server: pem } = serverAuthority(["localhost"]);
const clients = clientAuthority();
const strangers = clientAuthority("strangers");
const demand = { ...pem, clientCa: clients.cert };

/** A server that serves only clients with a certificate of `clients`, and knows the name of the last one. */
type Backend = { readonly origin: string; peer(): string | undefined };

async function startGrpc(): Promise<Backend> {
  const server = await startGrpcServer(0, undefined, demand);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { origin: `https://127.0.0.1:${server.port}`, peer: server.lastPeer };
}

async function startConnect(): Promise<Backend> {
  let peer: string | undefined;
  const adapter = connectNodeAdapter({ routes: relayRoutes({}) });
  const server = createServer({ ...pem, ca: clients.cert, requestCert: true }, (request, response) => {
    peer = (request.socket as TLSSocket).getPeerCertificate().subject.CN?.toString();
    adapter(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  return { origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, peer: () => peer };
}

/** Writes the files of a certificate, its key and the authority of the upstream. Returns the options that name them. */
function files({ cert, key }: Pem, ca = authority) {
  const directory = scratch();
  const write = (name: string, text: string) => {
    writeFileSync(join(directory, `.${name}`), text);
    renameSync(join(directory, `.${name}`), join(directory, name));
    return join(directory, name);
  };
  const options = ["--upstream-ca", write("ca.pem", ca), "--upstream-cert", write("tls.crt", cert)];
  return { write, args: [...options, "--upstream-key", write("tls.key", key)] };
}

async function startFront(origin: string, args: readonly string[]) {
  const log: Line[] = [];
  const all = ["--upstream", origin, "--descriptors", set, "--listen", "127.0.0.1:0", ...args];
  const gateway = await startGateway(parseArguments(all), (line) => log.push(line));
  onTestFinished(() => gateway.close());
  const status = async () => (await fetch(`http://127.0.0.1:${gateway.port}/v1/items/a`)).status;
  return { log, status };
}

test.each<[name: string, start: () => Promise<Backend>, args: string[]]>([
  ["gRPC", startGrpc, []],
  ["Connect over HTTP/1.1", startConnect, ["--protocol", "connect", "--upstream-http", "1.1"]],
])("an upstream that demands a certificate gets that of the files, and a replaced one: %s", async (_, start, args) => {
  const backend = await start();
  const [first, second] = ["first", "second"].map((commonName) => clients.issue({ commonName })) as [Pem, Pem];
  const { write, args: paths } = files(first);
  const { log, status } = await startFront(backend.origin, [...args, ...paths]);
  expect([await status(), backend.peer()]).toEqual([200, "first"]);

  write("tls.crt", second.cert);
  write("tls.key", second.key);
  await until(async () => expect([await status(), backend.peer()]).toEqual([200, "second"]));
  expect(log).toContainEqual({ event: "upstream certificate changed" });

  write("tls.key", "no key");
  const refused = await until(() => {
    const line = log.find(({ event }) => event === "upstream certificate refused");
    expect(line).toBeDefined();
    return line;
  });
  expect(refused?.reason).toMatch(/^--upstream-key: .*tls.key holds no private key/);
  expect([await status(), backend.peer()]).toEqual([200, "second"]);
  expect(log.filter(({ event }) => event === "upstream error")).toEqual([]);
  const secrets = [first, second].flatMap(({ key }) => key.split("\n").filter((line) => /^[\w+/=]{20,}$/.test(line)));
  for (const secret of [...secrets, "no key"]) expect(JSON.stringify(log)).not.toContain(secret);
});

test.each([
  ["none", files(clients.issue({ commonName: "unused" })).args.slice(0, 2)],
  ["one of another authority", files(strangers.issue({ commonName: "stranger" })).args],
])("an upstream that demands a certificate and gets %s is unavailable", async (_, args) => {
  const { origin, peer } = await startGrpc();
  const { log, status } = await startFront(origin, args);
  expect([await status(), peer()]).toEqual([503, undefined]);
  expect(log.find(({ event }) => event === "upstream error")?.reason).toContain("connection");
});

const one = clients.issue({ commonName: "one" });
const expired = clients.issue({ commonName: "old" }, -60_000);

test.each<[name: string, args: readonly string[], text: RegExp]>([
  ["the key of another certificate", files({ ...one, key: expired.key }).args, /--upstream-key: .* is not the key of/],
  ["no key", files({ ...one, key: one.cert }).args, /--upstream-key: .* holds no private key/],
  ["no certificate", files({ ...one, cert: one.key }).args, /--upstream-cert: .* holds no certificate/],
  ["an expired certificate", files(expired).args, /--upstream-cert: the certificate in .* expired at/],
  ["no authority", files(one, "").args, /--upstream-ca: .* holds no certificate/],
  ["no authority alone", files(one, selfSigned().key).args.slice(0, 2), /--upstream-ca: .* holds no certificate/],
  ["no file", ["--upstream-cert", "/nowhere.pem", "--upstream-key", "/nowhere.pem"], /no such file.*nowhere/],
])("the gateway does not start with %s", async (_, args, text) => {
  await expect(startFront("https://127.0.0.1:1", args)).rejects.toThrow(text);
});
