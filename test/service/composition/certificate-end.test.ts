/** What an operator sees of certificates near their end. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { clientAuthority, type Pem, selfSigned } from "../../support/certificate.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const DAY = 86_400_000;
const METRIC = "session_certificate_expiration_timestamp_seconds";

const linesOf = (service: Service) =>
  service
    .stderr()
    .split("\n")
    .filter((line) => line.includes('"certificate_expires"'))
    .map((line) => JSON.parse(line) as { level: string; variable: string; expiresAt: number });

function withFiles() {
  const directory = scratch();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  let ca = Buffer.from("");
  const write = ({ cert, key }: Pem) => {
    ca = Buffer.from(cert);
    writeFileSync(TLS_CERT_FILE, cert);
    writeFileSync(TLS_KEY_FILE, key);
  };
  return { env: { TLS_CERT_FILE, TLS_KEY_FILE }, write, ca: () => ca };
}

/** @returns the end in whole seconds, as a certificate has it */
const endIn = (lifeMs: number) => Math.floor((Date.now() + lifeMs) / 1000);

test("a certificate near its end is recorded at the start and when it is replaced, and the metric follows", async () => {
  const { env, write, ca } = withFiles();
  const ADMIN_TLS_CLIENT_CA_FILE = join(scratch(), "clients.pem");
  writeFileSync(ADMIN_TLS_CLIENT_CA_FILE, clientAuthority("clients", 30 * DAY).cert);
  write(selfSigned({ lifeMs: 13 * DAY }));
  const service = await startService({ ...env, ADMIN_TLS_CLIENT_CA_FILE });
  const agrees = async (lifeMs: number) => {
    const { body } = await request(service.adminUrl, { path: "/metrics", ca: ca() });
    const values = [...body.matchAll(new RegExp(`^${METRIC}\\{listener="(\\w+)"\\} (\\S+)$`, "gm"))];
    expect(values.map(([, listener]) => listener)).toEqual(["public", "admin"]);
    for (const [, , value] of values) expect(Math.abs(Number(value) - endIn(lifeMs))).toBeLessThan(3600);
  };
  await agrees(13 * DAY);
  const msg = expect.stringMatching(/^a certificate in TLS_CERT_FILE expires on 20\d\d-\d\d-\d\d: renew it/);
  expect(linesOf(service)).toMatchObject([{ level: "warn", variable: "TLS_CERT_FILE", msg }]);

  write(selfSigned({ lifeMs: 15 * DAY }));
  await until(() => agrees(15 * DAY));
  await until(() => expect(service.stderr()).toContain('"certificate_changed"'));
  expect(linesOf(service)).toHaveLength(1);

  // The chain counts: its authority has ended, although the certificate has not.
  const next = selfSigned({ lifeMs: 15 * DAY });
  write({ ...next, cert: `${next.cert}${clientAuthority("old", -2 * 3_600_000).cert}` });
  await until(() => agrees(-2 * 3_600_000));
  writeFileSync(ADMIN_TLS_CLIENT_CA_FILE, clientAuthority("clients", DAY).cert);
  await until(() =>
    expect(linesOf(service)).toMatchObject([
      { variable: "TLS_CERT_FILE" },
      { level: "error", variable: "TLS_CERT_FILE" },
      { level: "error", variable: "TLS_CERT_FILE" },
      { level: "warn", variable: "ADMIN_TLS_CLIENT_CA_FILE" },
    ]),
  );
  const [{ expiresAt = 0 } = {}] = linesOf(service).slice(-1);
  expect(Math.abs(expiresAt / 1000 - endIn(DAY))).toBeLessThan(3600);
  await service.stop();
});

test("without a certificate there is no metric of it", async () => {
  const service = await startService();
  expect((await request(service.adminUrl, { path: "/metrics" })).body).not.toContain(METRIC);
  await service.stop();
});
