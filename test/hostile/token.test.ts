import { token } from "./cases/token.js";
import { hostile } from "./table.js";

hostile("token", token);
