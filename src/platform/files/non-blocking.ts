import { constants } from "node:fs";

/**
 * The flags with which a followed file is read again. Without `O_NONBLOCK`, opening a FIFO that has replaced the file would wait for a
 * writer, and the file would not be followed any more. The first reading may wait, for example for a process substitution of a shell.
 */
export const NON_BLOCKING = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
