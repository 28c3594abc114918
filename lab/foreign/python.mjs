// Python packages for peers. pip installs them where it can reach its index; else they come from Debian's unstable suite,
// unpacked into a folder of this lab and run by its own loader: nothing of the system changes, and no rights are needed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folder, NotHere } from "./peer.mjs";

const SUITE = "sid";
const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * A Python with a package, as the command and the environment to run it with.
 *
 * @param requirement for pip, with its version, and what else is needed after a blank
 * @param debian names of Debian's packages
 */
export function pythonWith(requirement, debian) {
  const name = requirement.split("==")[0];
  const venv = join(folder, ".python", name);
  const root = join(folder, ".debian", name);
  const isInstalled = () =>
    existsSync(join(venv, "requirement.txt")) && readFileSync(join(venv, "requirement.txt"), "utf8") === requirement;
  if (!isInstalled() && !existsSync(root) && !installByPip(venv, requirement)) {
    const problem = unpackFromDebian(root, debian);
    if (problem !== undefined) throw new NotHere(`${requirement} cannot be installed: ${problem}`);
  }
  return isInstalled() ? { command: [join(venv, "bin", "python")], env: {} } : pythonBelow(root);
}

function installByPip(venv, requirement) {
  rmSync(venv, { recursive: true, force: true });
  const install = [
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--retries",
    "0",
    "--timeout",
    "10",
    ...requirement.split(" "),
  ];
  const isInstalled = isDone("python3", "-m", "venv", venv) && isDone(join(venv, "bin", "pip"), ...install);
  if (isInstalled) writeFileSync(join(venv, "requirement.txt"), requirement);
  else rmSync(venv, { recursive: true, force: true });
  return isInstalled;
}

function pythonBelow(root) {
  const lib = findIn(join(root, "usr", "lib"), /-linux-gnu$/);
  const python = findIn(join(root, "usr", "bin"), /^python3\.\d+$/);
  const env = { PYTHONHOME: join(root, "usr"), PYTHONPATH: join(root, "usr", "lib", "python3", "dist-packages") };
  return { command: [findIn(lib, /^ld-linux.*\.so/), "--library-path", lib, python], env };
}

function findIn(path, pattern) {
  return join(path, readdirSync(path).find((name) => pattern.test(name)) ?? "");
}

/** Downloads packages with all that they need, and unpacks them. Returns why it cannot. */
function unpackFromDebian(root, packages) {
  const sites = spawnSync("apt-get", ["indextargets", "--format", "$(SITE)", "Created-By: Packages"], {
    encoding: "utf8",
  });
  const site = (sites.stdout ?? "").split("\n").find((line) => line.endsWith("/debian"));
  if (site === undefined || !existsSync(KEYS)) return "there is no pip with an index, and no Debian";
  const work = `${root}.work`;
  rmSync(work, { recursive: true, force: true });
  for (const path of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(work, path), { recursive: true });
  writeFileSync(join(work, "sources.list"), `deb [signed-by=${KEYS}] ${site} ${SUITE} main\n`);
  const settings = { "Dir::State": "state", "Dir::Cache": "cache", "Dir::Etc::sourcelist": "sources.list" };
  const options = [
    ...Object.entries(settings).map(([option, path]) => `${option}=${join(work, path)}`),
    // As on an empty machine, since nothing of this one is used.
    "Dir::Etc::sourceparts=/dev/null",
    "Dir::State::status=/dev/null",
    "APT::Sandbox::User=root",
  ].flatMap((option) => ["-o", option]);
  const install = ["install", "--download-only", "--no-install-recommends", "--yes", ...packages];
  if (!isDone("apt-get", ...options, "update")) return `${site} has no suite ${SUITE}, or cannot be reached`;
  if (!isDone("apt-get", ...options, ...install)) return `${site} has no ${packages.join(", ")}`;
  const archives = join(work, "cache", "archives");
  const target = join(work, "root");
  for (const file of readdirSync(archives).filter((one) => one.endsWith(".deb")))
    if (!isDone("dpkg-deb", "--extract", join(archives, file), target)) return `${file} cannot be unpacked`;
  renameSync(target, root);
  rmSync(work, { recursive: true, force: true });
  return undefined;
}

function isDone(command, ...args) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}
