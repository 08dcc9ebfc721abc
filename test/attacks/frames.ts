/** HTTP/2 frames as bytes (RFC 9113 section 4, RFC 7541 section 6.2.2), for misbehaving clients, which no library supports. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
};
export const END_STREAM = 1;
export const END_HEADERS = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes header fields as literals without an index. */
export function block(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).map(([name, value]) => Buffer.concat([Buffer.from([0x10]), text(name), text(value)])),
  );
}

/** Encodes a text with its length, an integer with a prefix of 7 bits (RFC 7541 section 5.1). */
function text(value: string): Buffer {
  const length = value.length < 127 ? [value.length] : [127];
  for (let rest = value.length - 127; rest >= 0; rest = rest < 128 ? -1 : rest >> 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128);
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(value)]);
}

export const requestBlock = (method: string, path: string, more: Readonly<Record<string, string>> = {}) =>
  block({ ":method": method, ":path": path, ":scheme": "http", ":authority": "x", ...more });

/** Encodes a SETTINGS frame. @param values pairs of identifier and value, such as 4 (INITIAL_WINDOW_SIZE) and 0 */
export function settings(...values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [at, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return frame(FRAME.settings, 0, 0, payload);
}
