/** Random changes of the proofs of the vectors, and of the requests that present them: some break the signature, others are signed again. */
import type { Random } from "../connect-http-routes/roundtrip/random.ts";
import { CLAIMS, HEAD, raw, type VectorCase } from "./format.ts";
import { ALPHABET, changeSome, JSON_PIECES, VALUES } from "./mutations.ts";
import {
  CLIENT,
  type ClientKey,
  ED25519_CLIENT,
  EDWARDS_CLIENT,
  METHOD,
  OTHER_CLIENT,
  type Prover,
  RSA_CLIENT,
  URL_OF_REQUEST,
} from "./prover.ts";

const CLIENTS = [CLIENT, CLIENT, CLIENT, CLIENT, EDWARDS_CLIENT, ED25519_CLIENT, OTHER_CLIENT, RSA_CLIENT];
const URL_PIECES = [
  ...[
    "/",
    "//",
    ".",
    "..",
    "/../",
    "/./",
    "%",
    "%2e",
    "%2E%2e",
    "%2f",
    "%41",
    "%7e",
    "%c3%a9",
    "%zz",
    "%c3",
    "%E9",
    "%0",
    "%25",
    "[::1]",
    "[0:0::1]",
    "api.example.",
    "xn--caf-dma",
    "?",
    "#",
    "\\",
    "@",
    ":",
  ],
  ...[
    ":443",
    ":80",
    ":0443",
    ":0",
    ":65536",
    "HTTP",
    "http://",
    "https://",
    "A",
    "é",
    "ſ",
    "K",
    "🎉",
    " ",
    "\t",
    "\n",
    "\0",
    "|",
    '"',
    "[",
    "]",
    "~",
  ],
];
const PROOF_PIECES = [
  ...JSON_PIECES,
  ...['"crit":[],', '"b64":true,', '"d":1,', '"alg":"ES256",', '"ath":1,', '"nonce":"n",', '"jti":"j",', '"iat":0,'],
  ...["dpop+jwt", "P-256", "Ed25519", "AQAB", "POST", "https://api.example/"],
];

/** @returns a function that makes a random case: a token, and one or two requests that present it */
export function createProofMutations(random: Random, prover: Prover, cases: readonly VectorCase[]) {
  const { bound, signed, headerOf, payloadOf, forge } = prover;
  const proofs = cases.flatMap(({ requests = [], feed }) => (feed ? [] : requests.map(({ proof }) => proof)));
  const pool = proofs.filter((proof) => proof.length < 4000);
  let count = 0;
  const change = (text: string, pieces: readonly string[]) => changeSome(random, text, pieces);

  const changeText = () =>
    change(random.pick(pool), [
      ...ALPHABET,
      ".",
      ",",
      "=",
      "+",
      "/",
      " ",
      "\n",
      "\0",
      "é",
      random.pick(pool).slice(0, 40),
    ]);
  const splice = () => [0, 1, 2].map((index) => random.pick(pool).split(".")[index] ?? "").join(".");

  /** Changes a segment, as a value or as JSON text. */
  function changeSegment(segment: string, names: readonly string[]): string {
    let text = Buffer.from(segment, "base64url").toString();
    if (random.chance(0.3)) {
      text = JSON.stringify({ ...JSON.parse(text), [random.pick(names)]: random.pick([...VALUES, "ES256", {}]) });
    }
    const times = random.below(3);
    for (let done = 0; done < times; done++) text = change(text, PROOF_PIECES);
    return raw(text);
  }

  function changeKey(header: string): string {
    const { jwk, ...rest } = JSON.parse(Buffer.from(header, "base64url").toString());
    const name = random.pick(["kty", "crv", "x", "y", "n", "e", "d", "alg", "use"]);
    const value = random.chance(0.5) ? change(String(jwk[name] ?? ""), [...ALPHABET, "="]) : random.pick(VALUES);
    return raw(JSON.stringify({ ...rest, jwk: { ...jwk, [name]: value } }));
  }

  function signAgain(key: ClientKey, token: string, htu: string): string {
    count++;
    const age = random.chance(0.1) ? random.pick([-61, -60, 60, 61, 0.5]) : 0;
    let header = headerOf(key);
    let payload = payloadOf(token, `mutation ${count}`, { htu, iat: CLAIMS.iat + age });
    const kind = random.next();
    if (kind < 0.2) header = changeSegment(header, ["typ", "alg", "jwk", "crit", "kid"]);
    else if (kind < 0.35) header = changeKey(header);
    else if (kind < 0.7) payload = changeSegment(payload, ["jti", "htm", "htu", "iat", "ath", "nonce", "x"]);
    return signed(header, payload, random.chance(0.05) ? random.pick(CLIENTS) : key);
  }

  function changeUrl(url: string): string {
    let changed = url;
    for (let times = random.below(4); times > 0; times--) changed = change(changed, URL_PIECES);
    return changed;
  }

  /** Returns a token that is bound to this key in most cases, and otherwise to another key or to none. */
  function tokenOf(key: ClientKey): string {
    const kind = random.next();
    if (kind < 0.9) return bound(key);
    if (kind < 0.94) return forge.token(HEAD, CLAIMS);
    return bound(key, { cnf: random.pick([...VALUES, { jkt: 1 }, { jkt: OTHER_CLIENT.thumbprint }]) });
  }

  return (): Required<Pick<VectorCase, "token" | "requests">> => {
    const key = random.pick(CLIENTS);
    const token = tokenOf(key);
    const base = random.chance(0.7) ? URL_OF_REQUEST : changeUrl(URL_OF_REQUEST);
    const url = random.chance(0.2) ? changeUrl(base) : base;
    const kind = random.next();
    const proof = kind < 0.15 ? changeText() : kind < 0.2 ? splice() : signAgain(key, token, base);
    const request = {
      method: random.chance(0.98) ? METHOD : "GET",
      url,
      proof: random.chance(0.97) ? proof : random.pick(["", `${proof}, ${proof}`]),
    };
    return { token, requests: random.chance(0.1) ? [request, request] : [request] };
  };
}
