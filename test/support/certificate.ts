/** Makes the certificates of a run. It encodes them itself, because Node has no function for this. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

/** Encodes one value in DER (ITU-T X.690): tag, length, contents. */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const body = Buffer.concat(contents);
  const { length: size } = body;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const sequence = (...contents: readonly Buffer[]) => der(0x30, ...contents);
const oid = (hex: string) => der(0x06, Buffer.from(hex, "hex"));
const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));

const ECDSA_WITH_SHA256 = sequence(oid("2a8648ce3d040302"));
const COMMON_NAME = oid("550403");
const SUBJECT_ALT_NAME = oid("551d11");
const DAY = 86_400_000;

const BASIC_CONSTRAINTS = oid("551d13");
const EXTENDED_KEY_USAGE = oid("551d25");
const SERVER_AUTH = oid("2b06010505070301");
const CLIENT_AUTH = oid("2b06010505070302");

export type Pem = { readonly cert: string; readonly key: string };

const extension = (id: Buffer, value: Buffer) => sequence(id, der(0x04, value));
const nameOf = (commonName: string) => sequence(der(0x31, sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))));

type Certificate = {
  readonly commonName: string;
  readonly issuer?: { readonly commonName: string; readonly key: KeyObject };
  readonly extensions: readonly Buffer[];
  /** Since when and until when the certificate is valid, counted from now, in ms. */
  readonly ageMs?: number;
  readonly lifeMs?: number;
};

/** Makes a certificate (RFC 5280 section 4.1) and its key, in PEM. Without an issuer it is self-signed. */
function certificate({
  commonName,
  issuer,
  extensions,
  ageMs = 2 * DAY,
  lifeMs = DAY,
}: Certificate): Pem & { privateKey: KeyObject } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serial = der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const validity = sequence(time(new Date(Date.now() - ageMs)), time(new Date(Date.now() + lifeMs)));
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const spki = publicKey.export({ type: "spki", format: "der" });
  const [from, to] = [nameOf(issuer?.commonName ?? commonName), nameOf(commonName)];
  const tail = extensions.length === 0 ? [] : [der(0xa3, sequence(...extensions))];
  const body = sequence(version, serial, ECDSA_WITH_SHA256, from, validity, to, spki, ...tail);
  const signature = der(0x03, Buffer.from([0]), sign("sha256", body, issuer?.key ?? privateKey));
  const bytes = sequence(body, ECDSA_WITH_SHA256, signature);
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${bytes
      .toString("base64")
      .match(/.{1,64}/g)
      ?.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    privateKey,
  };
}

type SelfSigned = Pick<Certificate, "ageMs" | "lifeMs"> & { readonly namesAddress?: boolean };

/** Makes a self-signed certificate for localhost, and for 127.0.0.1 unless that is left out. */
export function selfSigned({ namesAddress = true, ...validity }: SelfSigned = {}): Pem {
  const address = namesAddress ? [der(0x87, Buffer.from([127, 0, 0, 1]))] : [];
  const names = sequence(...address, der(0x82, Buffer.from("localhost")));
  const extensions = [extension(SUBJECT_ALT_NAME, names)];
  return certificate({ commonName: "session service test", extensions, ...validity });
}

/**
 * Makes a certificate authority that a browser can be configured to trust, and a server certificate of it for 127.0.0.1 and these names.
 */
export function serverAuthority(names: readonly string[]): { readonly authority: string; readonly server: Pem } {
  const isAuthority = extension(BASIC_CONSTRAINTS, sequence(der(0x01, Buffer.from([0xff]))));
  const commonName = "test servers";
  const { cert, privateKey: key } = certificate({ commonName, extensions: [isAuthority] });
  const addresses = der(0x87, Buffer.from([127, 0, 0, 1]));
  const alternative = sequence(addresses, ...names.map((name) => der(0x82, Buffer.from(name))));
  const extensions = [extension(EXTENDED_KEY_USAGE, sequence(SERVER_AUTH)), extension(SUBJECT_ALT_NAME, alternative)];
  return { authority: cert, server: certificate({ commonName: "server", issuer: { commonName, key }, extensions }) };
}

export type ClientNames = { readonly commonName: string; readonly dns?: string; readonly uri?: string };

/** Makes an authority for client certificates. @param lifeMs the life of the authority from now on; negative for an expired one */
export function clientAuthority(commonName = "test clients", lifeMs = DAY) {
  const isAuthority = extension(BASIC_CONSTRAINTS, sequence(der(0x01, Buffer.from([0xff]))));
  const { cert, privateKey } = certificate({ commonName, extensions: [isAuthority], lifeMs });
  return {
    cert,
    /** @param issuedLifeMs the life from now on; negative for an expired certificate */
    issue({ commonName: name, dns, uri }: ClientNames, issuedLifeMs = DAY): Pem {
      const names = [
        ...(dns === undefined ? [] : [der(0x82, Buffer.from(dns))]),
        ...(uri === undefined ? [] : [der(0x86, Buffer.from(uri))]),
      ];
      const alternative = names.length === 0 ? [] : [extension(SUBJECT_ALT_NAME, sequence(...names))];
      const extensions = [extension(EXTENDED_KEY_USAGE, sequence(CLIENT_AUTH)), ...alternative];
      return certificate({
        commonName: name,
        issuer: { commonName, key: privateKey },
        extensions,
        lifeMs: issuedLifeMs,
      });
    },
  };
}
