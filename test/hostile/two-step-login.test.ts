import { twoStepLogin } from "./cases/two-step-login.js";
import { hostile } from "./table.js";

hostile("login in two steps", twoStepLogin);
