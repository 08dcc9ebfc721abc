/**
 * From how many bytes on answers are compressed, on every protocol: never. Tokens hardly get shorter, each would take four times
 * as long to answer, and the size of what is compressed together with a secret can tell of it (BREACH).
 */
export const compressMinBytes = Number.POSITIVE_INFINITY;
