import { embeddedBackend } from "../../../support/store/backends.ts";
import { expiryContract } from "../expiry.ts";

expiryContract("embedded", embeddedBackend);
