import { afterAll, afterEach } from "vitest";
import { checkShownSecrets, forgetSecrets } from "./canaries.js";

// Vitest runs this for each test file; a module that the files of a worker share would register its hooks for the first only.
afterEach(checkShownSecrets);
afterAll(() => {
  checkShownSecrets();
  forgetSecrets();
});
