import { callback } from "./cases/callback.js";
import { shortLink } from "./cases/short-link.js";
import { hostile } from "./table.js";

hostile("callback", [...callback, ...shortLink]);
