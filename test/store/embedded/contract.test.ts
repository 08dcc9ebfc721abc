import { embeddedBackend } from "../backends.ts";
import { storeContract } from "../contract.ts";

storeContract("embedded", embeddedBackend);
