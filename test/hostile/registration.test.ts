import { registration } from "./cases/registration.js";
import { hostile } from "./table.js";

hostile("registration", registration);
