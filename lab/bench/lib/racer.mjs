// The main program of a racer in the refresh race: one request to an MCP server with the stored login.

/**
 * Runs a racer: gets ready, waits for the start signal, and prints whether it got an answer.
 *
 * @param open returns `login()` and `call()` for the server's address and the folder of the login; `call()` returns the
 * server's last response, or undefined if a login is needed
 */
export async function racer(open) {
  const [role, serverUrl, folder] = process.argv.slice(2);
  const client = open(serverUrl, folder);
  if (role === "login") return void (await client.login());
  process.stdout.write("ready\n");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  // On a busy machine the server closes idle connections, which does not concern the login.
  const again = (error) => {
    if (!["ECONNRESET", "UND_ERR_SOCKET"].includes(error.cause?.code)) throw error;
    return client.call();
  };
  const outcome = await client
    .call()
    .catch(again)
    .then(
      async (response) => {
        await response?.text();
        return response?.ok === true ? "answered" : `refused ${response?.status ?? "without a login"}`;
      },
      (error) => `failed: ${error.message}`,
    );
  console.log(outcome);
  process.exit();
}
