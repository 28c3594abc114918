import { issuerBinding } from "./cases/issuer-binding.js";
import { hostile } from "./table.js";

hostile("issuer binding", issuerBinding);
