/**
 * The groups of source files (rooms) that are mutated, and the tests of each, in an order in which the first ones kill most mutants
 * quickly.
 */
import { EDGES } from "./rooms/edges.ts";
import { HTTP } from "./rooms/http.ts";
import { OPERATORS } from "./rooms/operators.ts";
import type { Room } from "./rooms/room.ts";
import { SERVICE } from "./rooms/service.ts";

/** All rooms (groups of source files). A file belongs to the first room whose pattern matches. */
export const ROOMS: readonly Room[] = [...EDGES, ...SERVICE, ...HTTP, ...OPERATORS];

export const roomOf = (file: string): Room | undefined => ROOMS.find(({ files }) => files.test(file));
