import { authorizeUrl } from "./cases/authorize-url.js";
import { hostile } from "./table.js";

hostile("authorize url", authorizeUrl);
