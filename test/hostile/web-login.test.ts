import { webLogin } from "./cases/web-login.js";
import { hostile } from "./table.js";

hostile("web login", webLogin);
