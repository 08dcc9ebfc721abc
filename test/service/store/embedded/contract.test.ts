import { embeddedBackend } from "../../../support/store/backends.ts";
import { storeContract } from "../contract.ts";

storeContract("embedded", embeddedBackend);
